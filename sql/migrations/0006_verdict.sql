-- What broke an attempt is decided in one place, wlb_attempt_settle, from the faults recorded, whatever their source
-- and order. A job whose launcher or script was killed is queued again, a bounded number of times.
--
-- Replaces wlb_fault_add (by wlb_fault_put), wlb_attempt_end, wlb_attempt_exited, wlb_attempt_blame, wlb_run_end,
-- wlb_run_end_by, wlb_record_attempt_end, wlb_run_history (which takes the asker now), wlb_runs_open, wlb_run_announce,
-- wlb_record and wlb_deliver.

alter table faults drop constraint faults_kind_check;
alter table faults add constraint faults_kind_check check (kind in ('rank_lost', 'node_lost', 'step_failed',
	'launcher_lost', 'script_lost', 'hang', 'slow_rank', 'slow_link'));
alter table faults add column proof jsonb; -- what wlbd decides by; `evidence` is what clients reported
drop index faults_loss_once;
create unique index faults_loss_once on faults (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
	where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost');

alter table runs drop constraint runs_ended_by_check;
alter table runs add constraint runs_ended_by_check check (ended_by in ('launcher', 'attempt', 'coordinator', 'slurm'));
alter table runs add column requeues integer not null default 0; -- how often wlbd had the job queued again
alter table runs add column requeued_at timestamptz;             -- when it last did
alter table attempts add column told text not null default '';   -- the reason that was given for its end
alter table attempts add column launcher_told boolean not null default false; -- its launcher reported how it ended
update attempts set launcher_told = true where launched and exit_code is not null;

-- ---- what broke an attempt ---------------------------------------------------------------------------------------

-- The keys of faults.proof, which decide between the faults of an attempt:
--   exit_code    rank_lost: how its process ended, 128 + signal; absent if that was concluded from its connection
--   first        rank_lost: srun saw that rank end before all others
--   alive_at     node_lost: when wlbd last knew that the node was alive, seconds since 1970
--   step_broken  step_failed: srun or a slurmstepd was killed
--   during       launcher_lost, script_lost: seconds since 1970; absent if the time is not known
--
-- The strongest fault is the cause: a rank that had ended while every lost node was still alive, a lost node, a rank
-- that ended by itself, a killed launcher, script, srun or slurmstepd, a rank that is not there, a step that failed. A
-- rank that ended after one of these was killed did not end by itself, nor one that Slurm's signals ended (SIGTERM,
-- SIGKILL) in the two seconds before, since a closed connection or a rank's end may be noticed first.
create function wlb_attempt_cause(p_attempt bigint) returns bigint language sql stable as $$
	with f as (
		select id, kind, detected_at, coalesce(proof, '{}') as e from faults where attempt_id = p_attempt
	), killed as (
		select min(case when kind = 'step_failed' then detected_at
			else coalesce(to_timestamp((e->>'during')::float8), '-infinity') end) as at
		from f where kind in ('launcher_lost', 'script_lost') or (kind = 'step_failed' and e ? 'step_broken')
	), nodes as (
		select min(coalesce(to_timestamp((e->>'alive_at')::float8), '-infinity')) as alive_at
		from f where kind = 'node_lost'
	), placed as (
		select f.*, kind = 'rank_lost' and e ? 'exit_code' and not (killed.at is not null
				and (detected_at >= killed.at or (e->>'exit_code')::integer in (137, 143)
					and detected_at > killed.at - interval '2 s'))
			as ended_by_itself, nodes.alive_at
		from f, killed, nodes
	)
	select id from placed order by case
			when ended_by_itself and detected_at < alive_at - interval '0.5 s' then 0
			when kind = 'node_lost' then 1
			when ended_by_itself then 2
			when kind in ('launcher_lost', 'script_lost') or (kind = 'step_failed' and e ? 'step_broken') then 3
			when kind <> 'step_failed' then 4
			else 5 end,
		coalesce((e->>'first')::boolean, false) desc,
		-- A launcher that Slurm killed with its script was closed shortly before the job's end is recorded.
		detected_at - case kind when 'script_lost' then interval '3 s' else '0' end, id
	limit 1
$$;

create function wlb_fault_text(f faults) returns text language sql immutable as $$
	select case f.kind
		when 'node_lost' then format('node %s is lost', f.node)
		when 'rank_lost' then format('rank %s on %s ', f.rank, f.node) || case
			when (f.proof->>'exit_code')::integer > 128
				then format('was killed by signal %s', (f.proof->>'exit_code')::integer - 128)
			when f.proof ? 'exit_code' then format('ended with exit code %s', f.proof->>'exit_code')
			else 'is lost' end
		when 'launcher_lost' then 'wlb run' || coalesce(' on ' || f.node, '') || ' was killed'
		when 'script_lost' then f.detail
		when 'step_failed' then f.detail
		else f.kind || coalesce(': ' || nullif(f.detail, ''), '') end
$$;

-- Every change of an attempt locks its run first, as deliveries do: otherwise two statements could deadlock.
create function wlb_attempt_lock(p_attempt bigint) returns void language sql as $$
	select from runs where id = (select run_id from attempts where id = p_attempt) for no key update;
	select from attempts where id = p_attempt for no key update
$$;

-- Marks the cause of an attempt, and sets the reasons of attempt and run to it.
create function wlb_attempt_settle(p_attempt bigint) returns void language plpgsql as $$
declare
	a attempts;
	c faults;
	reason_now text;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	select * into c from faults where id = wlb_attempt_cause(p_attempt);
	if c.id is null then
		return;
	end if;
	update faults set cause = false where attempt_id = p_attempt and cause and id <> c.id;
	update faults set cause = true where id = c.id and not cause;
	reason_now := wlb_fault_text(c);
	if a.state not in ('failed', 'ended', 'lost') or reason_now = a.reason
		or (c.kind = 'step_failed' and a.reason <> '' and not coalesce(c.proof ? 'step_broken', false)) then
		return; -- for a step that failed, its launcher reports more than that
	end if;
	update attempts set reason = reason_now where id = p_attempt;
	update runs set reason = case
		when a.reason <> '' and strpos(reason, a.reason) > 0 then replace(reason, a.reason, reason_now)
		when a.told <> '' and strpos(reason, a.told) > 0 then replace(reason, a.told, reason_now)
		when a.reason = '' and ended_by = 'slurm' then concat_ws('; ', reason_now, nullif(reason, ''))
		else reason end
	where id = a.run_id and ended_at is not null;
end $$;

drop function wlb_fault_add(bigint, text, integer, text, bigint, text, jsonb, timestamptz);

-- A loss that is reported again is stored once, with what wlbd knows of it added. Call wlb_attempt_settle afterwards.
create function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, rank, node, step, detail, evidence, proof, detected_at)
	select run_id, id, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time
	from attempts where id = p_attempt
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
		where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost')
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step)
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;

create function wlb_fault_put(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	perform wlb_attempt_lock(p_attempt);
	perform wlb_fault_insert(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time);
	perform wlb_attempt_settle(p_attempt);
end $$;

-- A fault that wlbd has found.
create function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_fault_put(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null, p_proof, p_time)
$$;

-- The first final state of an attempt's end stays; `lost` and `ended` are replaced when more is known.
create or replace function wlb_attempt_end(p_attempt bigint, p_state text, p_exit_code integer, p_reason text,
	p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set
		state = case when state in ('complete', 'failed') then state else p_state end,
		reason = case when p_reason = '' or (reason <> '' and state in ('complete', 'failed')) then reason
			else p_reason end,
		told = case when p_reason = '' then told else p_reason end,
		exit_code = coalesce(p_exit_code, exit_code),
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt;
	select wlb_attempt_settle(p_attempt)
$$;

-- The step of an attempt has ended, according to its launcher.
create or replace function wlb_attempt_exited(p_attempt bigint, p_exit_code integer, p_slurm_step text,
	p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set slurm_step = coalesce(p_slurm_step, slurm_step), launcher_told = true where id = p_attempt;
	select wlb_attempt_end(p_attempt, case p_exit_code when 0 then 'complete' when 75 then 'ended' else 'failed' end,
		p_exit_code, '', p_time)
$$;

-- wlbd has found the faults that broke the attempt, and recorded them; p_reason is for an attempt without any.
create or replace function wlb_attempt_blame(p_attempt bigint, p_reason text, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set state = 'failed', reason = case when reason = '' then p_reason else reason end,
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt and state <> 'complete';
	select wlb_attempt_settle(p_attempt)
$$;

-- ---- the end of a run ----------------------------------------------------------------------------------------------

-- p_by 'slurm': the job is over, and its launcher has not reported how the run ended. The cause of the last attempt
-- is then part of the reason.
create or replace function wlb_run_end(p_run bigint, p_state text, p_reason text, p_by text)
returns text language plpgsql as $$
declare
	last attempts;
	result text;
begin
	perform from runs where id = p_run for no key update;
	perform wlb_attempt_end(id, case when p_state = 'complete' then 'complete' else 'lost' end, null, '', now())
	from attempts where run_id = p_run and state in ('starting', 'running');
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	update runs set state = p_state, ended_by = p_by, ended_at = coalesce(ended_at, now()), reason = case
		when p_by = 'slurm' and p_state <> 'complete'
			then concat_ws('; ', case when last.state <> 'complete' then nullif(last.reason, '') end, p_reason)
		when last.told <> '' and last.reason <> '' then replace(p_reason, last.told, last.reason)
		else p_reason end
	where id = p_run and (ended_by is null or (p_by = 'launcher' and ended_by <> 'launcher'));
	select state into result from runs where id = p_run;
	return result;
end $$;

-- p_attempt: the last attempt of the launcher that reports the end, if it states it; the report of a launcher that
-- Slurm has replaced by another (the job was requeued) is ignored.
create or replace function wlb_run_end_by(p_name text, p_uid bigint, p_attempt uuid, p_state text, p_reason text)
returns text language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
begin
	if p_attempt is not null and (
		exists (select from attempts where run_id = r.id and launched and number > (
			select number from attempts where uuid = p_attempt))
		or r.requeued_at > (select created_at from attempts where uuid = p_attempt)) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is not the newest of run %s: another wlb run goes on with it', p_attempt, p_name);
	end if;
	return wlb_run_end(r.id, p_state, p_reason, 'launcher');
end $$;

create or replace function wlb_record_attempt_end(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
declare
	newest boolean := not exists (select from attempts where run_id = a.run_id and number > a.number);
begin
	perform wlb_attempt_end(a.id, d->>'state', (d->>'exit_code')::integer, coalesce(d->>'reason', ''), p_time);
	update attempts set launcher_told = true where id = a.id and p_source = 'run';
	if not newest or (d->>'state') not in ('complete', 'failed') then
		return;
	end if;
	-- Without `wlb run` nothing else reports how the run ended. With it, this corrects an inference: a job that
	-- Slurm calls COMPLETED may be a script that ignores what its launcher returned.
	update runs set state = d->>'state', ended_by = 'attempt', ended_at = coalesce(ended_at, p_time),
		reason = case when (d->>'state') = 'complete' then '' else (select reason from attempts where id = a.id) end
	where id = a.run_id and ended_by is distinct from 'launcher' and (not a.launched
		or (ended_by in ('coordinator', 'slurm') and state = 'failed' and (d->>'state') = 'complete')
		or (ended_by = 'slurm' and state = 'complete' and (d->>'state') = 'failed'));
end $$;

-- ---- queued again ------------------------------------------------------------------------------------------------------

-- Notes that the job of the run is queued again, for p_reason. Returns how many times that makes; 0 if it was p_most
-- times already or the run is over; -1 if it has just been done. An attempt that is open ends.
create function wlb_run_requeue(p_run bigint, p_attempt bigint, p_reason text, p_most integer)
returns integer language plpgsql as $$
declare
	r runs;
begin
	select * into r from runs where id = p_run for no key update;
	if r.requeued_at > now() - interval '10 s' then
		return -1;
	elsif r.ended_by is not null or r.requeues >= p_most then
		return 0;
	end if;
	update runs set requeues = requeues + 1, requeued_at = now(), state = 'restarting' where id = p_run;
	perform wlb_attempt_end(id, 'lost', null, p_reason, now()) from attempts
	where run_id = p_run and state in ('starting', 'running');
	perform wlb_event_add(p_run, p_attempt, 'job_requeued', format('%s; job %s is queued again, %s of at most %s times',
		p_reason, r.job_id, r.requeues + 1, p_most), now());
	return r.requeues + 1;
end $$;

-- The data for judging an open run by its Slurm job. `told`: the launcher has reported how the last attempt ended.
create or replace function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0),
		'total_nodes', coalesce(cardinality(a.nodes) + cardinality(a.spares), 0),
		'node_names', a.nodes || a.spares,
		'resized_to', coalesce((select min(substring(e.detail from 'may start on ([0-9]+) to')::integer) from events e
			where e.attempt_id = a.id and e.kind = 'job_resized'), 0),
		'attempt_pk', a.id, 'launched', coalesce(a.launched, false),
		'told', coalesce(a.launcher_told, false),
		'launcher_lost', exists (select from faults f
			where f.attempt_id = a.id and f.kind in ('launcher_lost', 'script_lost')),
		'lost_nodes', (select count(distinct node) from faults f where f.attempt_id = a.id and f.kind = 'node_lost'),
		'complete', coalesce(a.state = 'complete', false)) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	where r.state in ('starting', 'running', 'restarting')
$$;

-- ---- what the next decision needs to know of the past -------------------------------------------------------------------

-- How many attempts in a row, the newest first, ended without a new step. One that lost a node, its launcher or its
-- script does not count against the program.
create function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	with ended as (
		select a.number, a.new_steps = 0 and not exists (select from faults f where f.attempt_id = a.id
			and (f.kind = 'node_lost' or (f.cause and f.kind in ('launcher_lost', 'script_lost')))) as no_progress
		from attempts a where a.run_id = p_run and a.uuid <> p_next and a.state <> 'complete'
	)
	select count(*) from ended where number > coalesce((select max(number) from ended where not no_progress), 0)
$$;

-- The ranks whose death broke the run, the newest first: where, at which step (-1: not reported; a trainer that reports
-- none is at 0), how long ago.
create function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', node, 'step', coalesce(nullif(step, 0), -1),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select node, step, detected_at from faults
		where run_id = p_run and cause and kind = 'rank_lost' and node is not null
		order by detected_at desc limit p_most) as newest
$$;

drop function wlb_run_history(text, uuid);

-- p_uid is the account that asks; p_admin: it is root or SlurmUser.
create function wlb_run_history(p_name text, p_uuid uuid, p_uid bigint, p_admin boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_admin);
begin
	if exists (select from attempts where uuid = p_uuid and run_id <> r.id) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is of another run than %s; make a new attempt_id', p_uuid, p_name);
	end if;
	return (with node_losses as (
		select node, count(*) as losses from faults
		where run_id = r.id and node is not null and cause and kind = 'node_lost' group by node
	), newest as (
		select step, path from checkpoints where run_id = r.id order by step desc, id desc limit 1
	)
	select json_build_object(
		'run_pk', r.id, 'uid', r.uid, 'confirmed', r.confirmed, 'job_id', r.job_id, 'state', r.state, 'reason', r.reason,
		'closed', coalesce(r.ended_by = 'launcher', false),
		'attempts', (select count(*) from attempts where run_id = r.id),
		'decision', (select decision from attempts where uuid = p_uuid),
		'newest', (select uuid from attempts where run_id = r.id and launched order by number desc limit 1),
		-- The job has been queued again since, and its next launcher has not asked yet.
		'requeued', coalesce(r.requeued_at > (select max(created_at) from attempts where run_id = r.id and launched),
			false),
		'first_total', coalesce((select cardinality(nodes) + cardinality(spares) from attempts
			where run_id = r.id and launched order by number limit 1), 0),
		'attempts_without_progress', wlb_attempts_without_progress(r.id, p_uuid),
		'node_losses', (select coalesce(json_object_agg(node, losses), '{}') from node_losses),
		'crashes', wlb_run_crashes(r.id, 256),
		'checkpoint', (select json_build_object('step', step, 'path', path) from newest)));
end $$;

-- ---- a requeued job continues its run ------------------------------------------------------------------------------

-- Finds or makes the run that a job announces. p_launch is null when the plugin asks. A provisional run of somebody
-- else is not looked at.
create or replace function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text,
	p_cluster text, p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	over boolean;
	again boolean;
begin
	select * into r from runs where job_id = p_job_id and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		return wlb_run_create(p_job_id, 1, p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, p_policy);
	end if;
	over := r.state in ('complete', 'failed', 'out_of_nodes', 'cancelled');
	if over and p_launch is not null and p_restart_count <= r.restart_count then
		return wlb_run_create(p_job_id, r.launch + 1, p_uid, p_user, p_cluster, p_job_name,
			coalesce(p_submitted, r.submitted_at), p_restart_count, p_policy);
	end if;
	if over and p_launch is not null then -- requeued: the script begins again, and so does its p_launch-th run
		select * into r from runs where job_id = p_job_id and uid = r.uid and launch <= p_launch
			and submitted_at is not distinct from r.submitted_at order by launch desc limit 1;
	end if;
	again := over and p_restart_count > r.restart_count and p_launch is not null;
	update runs set
		confirmed = runs.confirmed or p_submitted is not null,
		submitted_at = coalesce(runs.submitted_at, p_submitted),
		-- When a requeued job begins the plugin announces it first; the requeue must still be visible when `wlb run` asks.
		restart_count = case when over and p_launch is null then runs.restart_count
			else greatest(runs.restart_count, p_restart_count) end,
		job_name = case when p_job_name <> '' then p_job_name else runs.job_name end,
		cluster = case when p_cluster <> '' then p_cluster else runs.cluster end,
		policy = runs.policy || p_policy,
		state = case when again then 'restarting' else runs.state end,
		ended_by = case when again then null else runs.ended_by end,
		ended_at = case when again then null else runs.ended_at end
	where id = r.id returning * into r;
	return r;
end $$;

-- ---- records ------------------------------------------------------------------------------------------------------

drop function wlb_record(attempts, text, jsonb);

create function wlb_record(a attempts, p_source text, p_record jsonb) returns wlb_added language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := to_timestamp((p_record->>'time')::float8);
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, d, at);
	when 'step' then
		return wlb_record_step(a, d, at);
	when 'checkpoint' then
		insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, recorded_at)
		values (a.run_id, a.id, (d->>'step')::bigint, d->>'path', (d->>'bytes')::bigint, (d->>'duration_s')::float8, at);
	when 'fault' then
		perform wlb_fault_insert(a.id, d->>'kind', (d->>'rank')::integer, d->>'node', (d->>'step')::bigint,
			coalesce(d->>'detail', ''), d->'evidence', null, at);
	when 'event' then
		if d->>'kind' = 'step_started' then
			perform wlb_attempt_begun(a, at);
		end if;
		perform wlb_event_add(a.run_id, a.id, d->>'kind', coalesce(d->>'detail', ''), at);
	when 'attempt_end' then
		perform wlb_record_attempt_end(a, p_source, d, at);
	end case;
	return (0, 0, 0, 0, true)::wlb_added;
end $$;

-- Stores the records of one request that are not stored yet. The sequence number moves in the same transaction. Several
-- connections deliver: the run's row is locked first, so that deliveries of a run are stored one after the other. Which
-- fault is the cause is settled once, after the last: a delivery may bring 1,000.
create or replace function wlb_deliver(p_attempt bigint, p_source text, p_body jsonb)
returns json language plpgsql as $$
declare
	a attempts;
	stored bigint;
	record jsonb;
	one wlb_added;
	added wlb_added := (0, 0, 0, 0, false);
begin
	select * into strict a from attempts where id = p_attempt;
	perform from runs where id = a.run_id for no key update;
	insert into sources (attempt_id, source) values (p_attempt, p_source) on conflict do nothing;
	select last_seq into stored from sources where attempt_id = p_attempt and source = p_source for update;
	if (p_body->>'first_seq')::bigint > stored + 1 then
		return json_build_object('acked_seq', stored, 'gap', true);
	end if;
	for record in select value from jsonb_array_elements(p_body->'records') where (value->>'seq')::bigint > stored loop
		one := wlb_record(a, p_source, record);
		added := (added.steps + one.steps, added.repeated + one.repeated, added.tokens + one.tokens,
			added.seconds + one.seconds, added.trimmed or one.trimmed)::wlb_added;
		stored := (record->>'seq')::bigint;
	end loop;
	if added.steps + added.repeated > 0 then
		perform wlb_run_total(a, added);
	end if;
	if p_body->'records' @> '[{"type": "fault"}]' then
		perform wlb_attempt_settle(a.id);
	end if;
	if added.trimmed then
		perform wlb_run_trim(a.run_id);
	end if;
	update sources set last_seq = stored, updated_at = now() where attempt_id = p_attempt and source = p_source;
	return json_build_object('acked_seq', stored, 'gap', false);
end $$;
