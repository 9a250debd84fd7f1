-- What a run is where Slurm starts its job again: which run a launcher continues, when the wait in the queue began, and which
-- attempts count against the program. A suspension ends with the job's requeue, or with the run. A job that wlbd has requeued after
-- its run was complete may start on fewer nodes, as one of an open run.
--
-- Replaces: functions wlb_run_announce, wlb_runs_open, wlb_run_job_without_script, wlb_run_end, wlb_attempt_ensure (which takes whether the job is in the queue),
-- wlb_attempt_requeued, wlb_attempt_has_lasted, wlb_last_progress.

-- ---- which run a launcher continues ----------------------------------------------------------------------------------------

-- The job has started again since the newest attempt, and its script has come to an earlier run only: what is known of the
-- attempt's launcher says nothing of the script that runs now.
alter table runs add column is_not_reached boolean not null default false;

create function wlb_run_is_over(p_state text) returns boolean language sql immutable as $$
	select p_state in ('complete', 'failed', 'out_of_nodes', 'cancelled')
$$;

-- The p_launch-th run of a script that has begun again is its p_launch-th run of before, also where the script had come
-- further: to a later run, which may be open still. Where that run is over in the same start of the job, the launcher has no right
-- count of its launches, and continues the newest run.
create or replace function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	same runs;
	over boolean;
	again boolean;
begin
	select * into r from runs where job_id = p_job_id and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		return wlb_run_create(p_job_id, 1, p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, p_policy);
	end if;
	over := wlb_run_is_over(r.state);
	if over and p_launch is not null and p_restart_count <= r.restart_count then
		-- Slurm gives a job that is requeued another time of submission; runs of one job have the first.
		return wlb_run_create(p_job_id, r.launch + 1, p_uid, p_user, p_cluster, p_job_name,
			coalesce(r.submitted_at, p_submitted), p_restart_count, p_policy);
	end if;
	if p_launch is not null and (over or p_launch < r.launch) then
		select * into same from runs where job_id = p_job_id and uid = r.uid and launch <= p_launch
			and submitted_at is not distinct from r.submitted_at order by launch desc limit 1;
		if same.id is not null and (not wlb_run_is_over(same.state) or p_restart_count > same.restart_count) then
			update runs set is_not_reached = true where job_id = p_job_id and uid = r.uid and launch > same.launch
				and submitted_at is not distinct from r.submitted_at and not wlb_run_is_over(state);
			r := same;
			over := wlb_run_is_over(r.state);
		end if;
	end if;
	again := over and p_restart_count > r.restart_count and p_launch is not null;
	update runs set
		confirmed = runs.confirmed or p_submitted is not null,
		submitted_at = coalesce(runs.submitted_at, p_submitted),
		-- When a requeued job begins the plugin announces it first; the requeue must still be visible when `wlb run` asks.
		restart_count = case when over and p_launch is null then runs.restart_count
			else greatest(runs.restart_count, p_restart_count) end,
		is_not_reached = runs.is_not_reached and p_launch is null,
		job_name = case when p_job_name <> '' then p_job_name else runs.job_name end,
		cluster = case when p_cluster <> '' then p_cluster else runs.cluster end,
		policy = runs.policy || p_policy,
		state = case when again then 'restarting' else runs.state end,
		ended_by = case when again then null else runs.ended_by end,
		ended_at = case when again then null else runs.ended_at end
	where id = r.id returning * into r;
	return r;
end $$;

-- The number of the attempt after which the node of the job's script was lost, when the run was complete; null: none.
alter table runs add column script_node_lost_after integer;

-- The job is queued again or ended, since the node of its script is down. One that is queued again starts the script anew, with
-- the run in it.
create or replace function wlb_run_job_without_script(p_run bigint, p_restart_count bigint, p_kind text, p_detail text)
returns void language plpgsql as $$
declare
	last attempts;
begin
	perform from runs where id = p_run for no key update;
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	perform wlb_event_add(p_run, last.id, p_kind, p_detail, now());
	perform wlb_run_job_over(p_run, p_restart_count);
	update runs set state = 'restarting', ended_by = null, ended_at = null, requeued_at = now(), script_node_lost_after = last.number
	where id = p_run and state = 'complete' and p_kind = 'job_requeued';
end $$;

-- The data for judging an open run by its Slurm job. `launched`: the newest attempt was started in this start of the job, as far
-- as is known; `told`: the launcher has reported how it ended. `is_waiting`, `is_suspended`: it is recorded that the job is in the
-- queue, or suspended, now.
create or replace function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'restart_count', r.restart_count,
		'is_waiting', exists (select from queue_waits q where q.run_id = r.id and q.ended_at is null),
		'is_suspended', exists (select from suspensions s where s.run_id = r.id and s.ended_at is null),
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0),
		'total_nodes', coalesce(cardinality(given.nodes), 0),
		'node_names', given.nodes,
		'lost_before', (select coalesce(json_agg(distinct f.node), '[]')
			from attempts b join faults f on f.attempt_id = b.id
			where b.run_id = r.id and b.number < a.number and f.kind = 'node_lost' and f.proof ? 'seen'
				and f.node <> all (given.nodes)),
		'resized_to', coalesce(a.resized_to, 0),
		'attempt_pk', a.id, 'launched', coalesce(a.launched and not r.is_not_reached, false),
		'told', coalesce(a.launcher_told and not r.is_not_reached, false),
		'launcher_lost', exists (select from faults f
			where f.attempt_id = a.id and not r.is_not_reached and f.kind in ('launcher_lost', 'script_lost')),
		'lost_nodes', (select count(distinct node) from faults f
			where f.attempt_id = a.id and f.kind = 'node_lost' and f.proof ? 'seen')
			+ coalesce(r.script_node_lost_after = a.number, false)::integer,
		'complete', coalesce(a.state = 'complete', false)) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	left join lateral (select wlb_attempt_given(a::attempts) as nodes where a.id is not null) given on true
	where r.state in ('starting', 'running', 'restarting')
$$;

-- ---- what ends a suspension --------------------------------------------------------------------------------------------------

-- A suspension of which wlbd saw no end was over when the next step was recorded, and at the latest when the run ended.
create function wlb_suspensions_end(p_run bigint, p_ended timestamptz) returns void language sql as $$
	update suspensions u set ended_at = greatest(u.began_at, least(p_ended,
		(select min(s.recorded_at) from steps s where s.run_id = p_run and s.recorded_at > u.began_at)))
	where u.run_id = p_run and u.ended_at is null
$$;

-- p_by 'slurm': the job is over since p_ended (null: it is not known since when), and its launcher has not reported how the run
-- ended. The cause of the last attempt is then part of the reason.
create or replace function wlb_run_end(p_run bigint, p_state text, p_reason text, p_by text, p_ended timestamptz default null)
returns text language plpgsql as $$
declare
	last attempts;
	result text;
	over_at timestamptz;
begin
	perform from runs where id = p_run for no key update;
	over_at := case when p_by = 'slurm' then wlb_run_over_at(p_run, p_ended) else now() end;
	perform wlb_suspensions_end(p_run, over_at);
	perform wlb_attempt_end(id, case when p_state = 'complete' then 'complete' else 'lost' end, null, '', over_at)
	from attempts where run_id = p_run and state in ('starting', 'running');
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	update runs set state = p_state, ended_by = p_by, ended_at = coalesce(ended_at, over_at), reason = case
		when p_by = 'slurm' and p_state <> 'complete'
			then concat_ws('; ', case when last.state <> 'complete' then nullif(last.reason, '') end, p_reason)
		when last.told <> '' and last.reason <> '' then wlb_reason_with(p_reason, last.told, last.reason)
		else p_reason end
	where id = p_run and (ended_by is null or (p_by = 'launcher' and ended_by <> 'launcher'));
	select state into result from runs where id = p_run;
	return result;
end $$;

-- ---- when a wait in the queue began ------------------------------------------------------------------------------------------

-- Slurm says that the job of the attempt is queued, which it was not when the attempt began; p_restart_count is of the job now.
-- p_time: when it was queued, as Slurm says, or now. It is no such time where it is not after the begin of the attempt, nor where it
-- is after now: it may be of a host whose clock is ahead, and the next attempt begins after it. A launcher that has reported the
-- order as the end of the run did not know that the job is to start again.
create or replace function wlb_attempt_requeued(p_attempt bigint, p_restart_count integer, p_reason text, p_time timestamptz)
returns void language plpgsql as $$
declare
	a attempts;
	queued timestamptz;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	queued := case when p_time > coalesce(a.started_at, a.created_at) then least(p_time, now()) else now() end;
	if a.state in ('starting', 'running', 'ended', 'lost') then
		perform wlb_attempt_end(p_attempt, 'ended', null, p_reason, queued);
		update attempts set queued_again = true where id = p_attempt
			and not exists (select from faults where attempt_id = p_attempt and cause);
	end if;
	-- It may have started again meanwhile. A client's time of the end may be before the attempt, by its clock.
	update runs set state = 'restarting', reason = '', ended_by = null, ended_at = null,
		requeued_at = greatest(requeued_at, least(now(), case when a.ended_at > a.created_at then a.ended_at else queued end))
	where id = a.run_id and restart_count < p_restart_count
		and (ended_by is null or (ended_by = 'launcher' and state = 'cancelled'))
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number);
end $$;

-- The job of a run has started again since: an attempt that is open has ended, and was last known at p_time.
create function wlb_earlier_attempts_end(p_run bigint, p_time timestamptz) returns void language sql as $$
	select wlb_attempt_end(id, 'lost', null, 'its job has started again', p_time)
	from attempts where run_id = p_run and state in ('starting', 'running')
$$;

drop function wlb_attempt_ensure(text, uuid, bigint, bigint, text, text, text, timestamptz, integer);

-- An attempt that began while wlbd was away, known from its first record or report. The job is announced too; where it has
-- started again meanwhile, its count of restarts says so. p_is_queued: it is in the queue now, and the attempt is of the start before.
create function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_is_queued boolean)
returns json language plpgsql as $$
declare
	r runs;
	a attempts;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_card(a.id);
	end if;
	select * into r from runs where name = p_name and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		r := wlb_run_create(p_job_id,
			case when p_name ~ '\.[0-9]{1,6}$' then substring(p_name from '\.([0-9]+)$')::integer else 1 end,
			p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, '{}');
	elsif p_submitted is not null then
		perform wlb_run_confirm(r.id, p_submitted, p_restart_count, p_job_name, p_cluster);
		if p_restart_count > r.restart_count and r.ended_by is distinct from 'launcher' and not p_is_queued then
			perform wlb_earlier_attempts_end(r.id, wlb_run_last_sign(r.id));
			update runs set restart_count = p_restart_count where id = r.id and restart_count < p_restart_count;
		end if;
	end if;
	a := wlb_attempt_create(r.id, p_uuid);
	update runs set is_not_reached = false where id = r.id and is_not_reached;
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

-- ---- which attempts count against the program --------------------------------------------------------------------------------

-- Whether an attempt of a trainer that records nothing has lasted so long that it has worked. What it did is not known: 45
-- minutes stand for a new step. PyTorch ends a collective that does not end after 10 minutes, or 30, by its version and backend.
create or replace function wlb_attempt_has_lasted(a attempts) returns boolean language sql stable as $$
	select a.ended_at - coalesce(a.started_at, a.created_at) >= interval '45 minutes' and not wlb_run_is_recorded(a.run_id)
$$;

-- The number of the newest attempt before p_next that does not count as one without a new step; 0: there is none. One that
-- lost a node, its launcher or its script does not count against the program, nor does one that has saved and stopped (its next
-- has fewer steps to repeat), or whose job was queued again. The third loss of one node counts: it would be lost for ever.
create or replace function wlb_last_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	with losses as materialized (
		select attempt_id, count(*) over (partition by node order by detected_at, id) as nth from faults
		where run_id = p_run and kind = 'node_lost'
	)
	select coalesce(max(number), 0) from attempts a
	where run_id = p_run and uuid is distinct from p_next and not wlb_has_completed(state, exit_code)
		and (new_steps > 0 or wlb_attempt_has_lasted(a::attempts) or queued_again or wlb_has_saved_and_stopped(state, exit_code)
			or exists (select from losses l where l.attempt_id = a.id and l.nth <= 2)
			or exists (select from faults f where f.attempt_id = a.id and f.cause and f.kind in ('launcher_lost', 'script_lost')))
$$;
