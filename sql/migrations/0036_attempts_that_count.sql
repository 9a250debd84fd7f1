-- Which attempts count against the program, and which launcher continues a run.
--
-- Replaces: functions wlb_attempt_requeued, wlb_last_progress, wlb_attempts_without_progress, wlb_run_crashes, wlb_run_history and
-- wlb_run_past (which take the attempt that the launcher had before), wlb_run_announce, wlb_fault_insert.

-- ---- attempts in a row ---------------------------------------------------------------------------------------------------

alter table attempts add column queued_again boolean not null default false; -- Slurm ended it for that, and no fault did

-- Slurm says that the job of the attempt is queued, which it was not when the attempt began; p_restart_count is of the job now.
-- A launcher that has reported the order as the end of the run did not know that the job is to start again. The time is not
-- after now: it may be of a host whose clock is ahead, and the next attempt begins after it.
create or replace function wlb_attempt_requeued(p_attempt bigint, p_restart_count integer, p_reason text, p_time timestamptz)
returns void language plpgsql as $$
declare
	a attempts;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	if a.state in ('starting', 'running', 'ended', 'lost') then
		perform wlb_attempt_end(p_attempt, 'ended', null, p_reason, p_time);
		update attempts set queued_again = true where id = p_attempt
			and not exists (select from faults where attempt_id = p_attempt and cause);
	end if;
	-- It may have started again meanwhile. A client's time of the end may be before the attempt, by its clock.
	update runs set state = 'restarting', reason = '', ended_by = null, ended_at = null,
		requeued_at = greatest(requeued_at, least(now(), case when a.ended_at > a.created_at then a.ended_at else p_time end))
	where id = a.run_id and restart_count < p_restart_count
		and (ended_by is null or (ended_by = 'launcher' and state = 'cancelled'))
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number);
end $$;

-- Whether an attempt has completed its training and then ended without an error. Ranks may die after rank 0 has recorded the
-- end of the training, each time that the command is started again.
create function wlb_has_completed(p_state text, p_exit_code integer) returns boolean language sql immutable as $$
	select p_state = 'complete' and coalesce(p_exit_code, 0) = 0
$$;

-- Whether an attempt of a trainer that records nothing has lasted so long that it has worked. What it did is not known: ten
-- minutes, longer than most take to start, stand for a new step.
create function wlb_attempt_has_lasted(a attempts) returns boolean language sql stable as $$
	select a.ended_at - coalesce(a.started_at, a.created_at) >= interval '10 minutes' and not wlb_run_is_recorded(a.run_id)
$$;

-- The number of the newest attempt before p_next that does not count as one without a new step; 0: there is none. One that
-- lost a node, its launcher or its script does not count against the program, nor does one that has saved and stopped (its next
-- has fewer steps to repeat), or whose job was queued again.
create or replace function wlb_last_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	select coalesce(max(number), 0) from attempts a
	where run_id = p_run and uuid is distinct from p_next and not wlb_has_completed(state, exit_code)
		and (new_steps > 0 or wlb_attempt_has_lasted(a::attempts) or queued_again or wlb_has_saved_and_stopped(state, exit_code)
			or exists (select from faults f where f.attempt_id = a.id
				and (f.kind = 'node_lost' or (f.cause and f.kind in ('launcher_lost', 'script_lost')))))
$$;

-- How many attempts in a row, the newest first, ended without a new step.
create or replace function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint
language sql stable as $$
	select count(*) from attempts
	where run_id = p_run and uuid <> p_next and not wlb_has_completed(state, exit_code)
		and number > (select wlb_last_progress(p_run, p_next))
$$;

-- ---- crashes -------------------------------------------------------------------------------------------------------------

-- Deaths of ranks, and steps that failed for the sake of one node, such as a launch there, which says nothing of the program:
-- its step is not known. in_row: its attempt is one of those in a row without progress; later_progress: how many attempts after
-- it had a new step.
create or replace function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	with newest as (
		select attempt_id, kind, node, step, detected_at from faults
		where run_id = p_run and cause and node is not null
			and (kind = 'rank_lost' or (kind = 'step_failed' and coalesce(proof ? 'step_broken', false)))
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most
	), progress as materialized (
		select number from attempts where run_id = p_run and new_steps > 0
	), last as materialized (
		select wlb_last_progress(p_run, null) as number
	)
	select coalesce(json_agg(json_build_object('node', c.node,
		'step', case when c.kind = 'rank_lost' then wlb_crash_step(a, c.step) else -1 end,
		'age_s', greatest(extract(epoch from now() - c.detected_at), 0), 'in_row', a.number > last.number,
		'later_progress', (select count(*) from progress p where p.number > a.number)) order by c.detected_at desc), '[]')
	from newest c join attempts a on a.id = c.attempt_id cross join last
$$;

-- ---- what a decision needs to know of the past -----------------------------------------------------------------------------

drop function wlb_run_past(text, uuid, bigint, boolean);
drop function wlb_run_history(text, uuid, bigint, boolean);

-- p_previous: the attempt that the launcher which asks has had before; null: none. A node that was lost and has passed a check
-- since is not counted as lost.
create function wlb_run_history(p_name text, p_uuid uuid, p_previous uuid, p_uid bigint, p_admin boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_admin);
	previous attempts;
begin
	if exists (select from attempts where uuid = p_uuid and run_id <> r.id) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is of another run than %s; make a new attempt_id', p_uuid, p_name);
	end if;
	select * into previous from attempts where uuid = p_previous and run_id = r.id;
	return (with node_losses as (
		select node, count(*) as losses from faults
		where run_id = r.id and node is not null and cause and kind = 'node_lost'
			and not wlb_run_node_passed(r.id, node, detected_at) group by node
	), newest as (
		select step, path from checkpoints where run_id = r.id order by step desc, id desc limit 1
	)
	select json_build_object(
		'run_pk', r.id, 'uid', r.uid, 'confirmed', r.confirmed, 'job_id', r.job_id, 'state', r.state, 'reason', r.reason,
		'closed', coalesce(r.ended_by = 'launcher', false),
		'attempts', (select count(*) from attempts where run_id = r.id),
		'decision', (select decision from attempts where uuid = p_uuid),
		-- The newest attempt after the launcher's that wlbd let a launcher start.
		'newer', (select uuid from attempts where run_id = r.id and launched and number > previous.number
			order by number desc limit 1),
		-- The job has been queued again since, and its next launcher has not asked yet.
		'requeued', coalesce(r.requeued_at > previous.created_at, false),
		'first_total', coalesce((select cardinality(nodes) + cardinality(spares) from attempts
			where run_id = r.id and launched order by number limit 1), 0),
		'attempts_without_progress', wlb_attempts_without_progress(r.id, p_uuid),
		'has_lasted', exists (select from attempts a where a.run_id = r.id and wlb_attempt_has_lasted(a)),
		'node_losses', (select coalesce(json_object_agg(node, losses), '{}') from node_losses),
		'crashes', wlb_run_crashes(r.id, 256), 'evictions', wlb_run_evictions(r.id, 256),
		'checkpoint', (select json_build_object('step', step, 'path', path) from newest)));
end $$;

create function wlb_run_past(p_name text, p_uuid uuid, p_previous uuid, p_uid bigint, p_admin boolean) returns json
language sql stable as $$
	with past as (
		select wlb_run_history(p_name, p_uuid, p_previous, p_uid, p_admin) as fields
	)
	select json_object_agg(key, value) from (
		select key, value from past, json_each(past.fields)
		union all
		select 'on_fault', to_json(r.policy->>'on_fault')
		from past join runs r on r.id = (past.fields->>'run_pk')::bigint
		union all
		select 'unplaced', to_json(wlb_unplaced_fault((past.fields->>'run_pk')::bigint) is not null) from past
		union all
		select 'avoided', wlb_nodes_avoided()
		union all
		select 'since_end_s', to_json((select greatest(extract(epoch from now() - max(ended_at)), 0) from attempts
			where run_id = (past.fields->>'run_pk')::bigint and ended_at is not null)::float8) from past
		union all
		-- Nodes that have passed a check before.
		select 'given_back', (select coalesce(json_object_agg(node, true), '{}') from (select distinct node
			from run_node_checks where run_id = (past.fields->>'run_pk')::bigint and healthy) as passed) from past) as fields
$$;

-- ---- which run a launcher continues ----------------------------------------------------------------------------------------

-- The p_launch-th run of a script that has begun again is its p_launch-th run of before, also where the script had come
-- further: to a later run, which may be open still.
create or replace function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
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
	if p_launch is not null and (over or p_launch < r.launch) then
		select * into r from runs where job_id = p_job_id and uid = r.uid and launch <= p_launch
			and submitted_at is not distinct from r.submitted_at order by launch desc limit 1;
		over := r.state in ('complete', 'failed', 'out_of_nodes', 'cancelled');
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

-- ---- faults ----------------------------------------------------------------------------------------------------------------

-- A loss that is reported again is stored once, with what wlbd knows of it added. When a node was lost that wlbd has asked
-- itself, wlbd says: it is evidence in the runs of all users. What wlbd ended the attempt for is stored once, too: the statement
-- is sent again where its reply was lost. Call wlb_attempt_settle afterwards.
create or replace function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, rank, node, step, detail, evidence, proof, detected_at)
	select run_id, id, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time
	from attempts where id = p_attempt
		and not (coalesce(p_proof ? 'evicted', false) and exists (select from faults f where f.attempt_id = p_attempt
			and f.kind = p_kind and f.rank is not distinct from p_rank and f.detected_at = p_time and f.proof ? 'evicted'))
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
		where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost')
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step),
			detected_at = case when excluded.proof ? 'seen' and not coalesce(faults.proof ? 'seen', false)
				then excluded.detected_at else faults.detected_at end
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;
