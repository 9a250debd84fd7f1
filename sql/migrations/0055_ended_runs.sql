-- A run that is over gets no further attempt: what a process reports of one that wlbd does not know is refused, and where records of
-- one arrive late, it has ended with its run.
--
-- Replaces: functions wlb_attempt_create, wlb_attempt_ensure (which know whether the job is over, and whether a report or a record
-- asks), wlb_attempt_card (which says whether the run is over), wlb_attempt_end (an attempt whose end is recorded late as complete
-- has no reason why it was thought to be lost).

-- p_is_late: the run is over; its attempt has ended.
drop function wlb_attempt_create(bigint, uuid);
create function wlb_attempt_create(p_run bigint, p_uuid uuid, p_is_late boolean default false) returns attempts language plpgsql as $$
declare
	r runs;
	a attempts;
	newest integer;
	attempts_most constant integer := 10000;
begin
	select * into r from runs where id = p_run for no key update;
	select coalesce(max(number), 0) into newest from attempts where run_id = p_run;
	if newest >= attempts_most then
		raise exception using errcode = 'WL409', message = format(
			'run %s: has %s attempts, and can have %s; begin another run with a new `wlb run`', r.name, newest, attempts_most);
	end if;
	if p_is_late then
		insert into attempts (run_id, number, uuid, state, reason, ended_at)
		values (p_run, newest + 1, p_uuid, 'lost', 'its run was over when its first record arrived', now()) returning * into a;
		return a;
	end if;
	-- An attempt that begins says that the run is not over, unless its launcher said so.
	if wlb_run_is_over(r.state) and r.ended_by is distinct from 'launcher' then
		perform wlb_open_runs_check(r.job_id, r.uid, r.user_name);
	end if;
	insert into attempts (run_id, number, uuid) values (p_run, newest + 1, p_uuid) returning * into a;
	update runs set state = case when a.number = 1 then 'starting' else 'restarting' end, reason = '',
		ended_by = null, ended_at = null
	where id = p_run and ended_by is distinct from 'launcher';
	return a;
end $$;

-- p_is_job_over: Slurm says that the job has ended, or does not know it any more. p_is_report: a process reports that it lives, and no
-- record of it is to be stored.
drop function wlb_attempt_ensure(text, uuid, bigint, bigint, text, text, text, timestamptz, integer, boolean);
create function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_is_queued boolean,
	p_is_job_over boolean default false, p_is_report boolean default false)
returns json language plpgsql as $$
declare
	r runs;
	known runs;
	a attempts;
	is_late boolean;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_card(a.id);
	end if;
	select * into r from runs where name = p_name and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null and p_is_report and p_is_job_over and p_submitted is not null then
		raise exception using errcode = 'WL409', message = format('job %s has ended, and run %s was not announced', p_job_id, p_name);
	end if;
	if r.id is null then
		select * into known from runs where job_id = p_job_id and uid = p_uid order by id desc limit 1;
	end if;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		r := wlb_run_create(p_job_id,
			case when p_name ~ '\.[0-9]{1,6}$' then substring(p_name from '\.([0-9]+)$')::integer else 1 end,
			p_uid, p_user, p_cluster, p_job_name,
			case when known.id is null or wlb_job_is_another(known, p_uid, p_submitted, p_restart_count) then p_submitted
				else coalesce(known.submitted_at, p_submitted) end,
			p_restart_count, '{}');
	elsif p_submitted is not null then
		perform wlb_run_confirm(r.id, p_submitted, p_restart_count, p_job_name, p_cluster);
		if p_restart_count > r.restart_count and r.ended_by is distinct from 'launcher' and not p_is_queued then
			perform wlb_earlier_attempts_end(r.id, wlb_run_last_sign(r.id));
			update runs set restart_count = p_restart_count where id = r.id and restart_count < p_restart_count;
		end if;
	end if;
	is_late := wlb_run_is_over(r.state) and (p_is_job_over or coalesce(r.ended_by = 'launcher', false));
	if is_late and p_is_report then
		raise exception using errcode = 'WL409', message = format('run %s has ended (%s), and gets no further attempt', r.name, r.state);
	end if;
	a := wlb_attempt_create(r.id, p_uuid, is_late);
	update runs set is_not_reached = false where id = r.id and is_not_reached;
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'runs_on', wlb_attempt_runs_on(a), 'is_run_over', wlb_run_is_over(r.state),
		'exit_code', coalesce(a.exit_code, case a.state when 'complete' then 0 when 'ended' then 75 end),
		'reason', a.reason, 'slurm_step', a.slurm_step, 'node_reported', a.node_reported, 'nodes', to_json(a.nodes),
		'is_explained', exists (select from faults f where f.attempt_id = a.id and f.cause),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'on_fault', r.policy->>'on_fault',
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0), 'spares', cardinality(a.spares),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

create or replace function wlb_attempt_end(p_attempt bigint, p_state text, p_exit_code integer, p_reason text, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set
		state = case when state in ('complete', 'failed') then state else p_state end,
		reason = case when p_state = 'complete' and state = 'lost' then p_reason
			when p_reason = '' or (reason <> '' and state in ('complete', 'failed')) then reason
			else p_reason end,
		told = case when p_reason = '' then told else p_reason end,
		exit_code = coalesce(p_exit_code, exit_code),
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt;
	select wlb_attempt_settle(p_attempt)
$$;

update attempts a set state = 'lost', ended_at = now(),
	reason = case when a.reason = '' then 'its run was over when its first record arrived' else a.reason end
from runs r where r.id = a.run_id and wlb_run_is_over(r.state) and a.state in ('starting', 'running');
