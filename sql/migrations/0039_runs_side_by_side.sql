-- Runs of one job that are under way at once, or that its script does not come to again; and faults whose time is of a host
-- with another clock.
--
-- Replaces: functions wlb_run_announce (which takes the runs whose launchers work), wlb_runs_open (which says what the script has
-- not come to), wlb_attempt_ensure, wlb_fault_found.

drop function wlb_run_announce(bigint, integer, bigint, text, text, text, timestamptz, integer, jsonb);

-- The p_launch-th run of a script that has begun again is its p_launch-th run of before, also where the script had come
-- further: to a later run, which may be open still. Where that run is over in the same start of the job, the launcher has no right
-- count of its launches, and continues the newest run. p_working: the job's runs whose launchers work; a later launcher of the same
-- start has a run of its own then, and else continues the run of one that was killed.
create function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb,
	p_working bigint[])
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
	if p_launch is not null and p_restart_count <= r.restart_count and (over or (p_launch > r.launch and r.id = any(p_working))) then
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

-- The data for judging an open run by its Slurm job. `launched`: the newest attempt was started in this start of the job, as far
-- as is known; `told`: the launcher has reported how it ended. `is_waiting`, `is_suspended`: it is recorded that the job is in the
-- queue, or suspended, now. `not_reached`: the script began again, and has not come to the run.
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
		'complete', coalesce(a.state = 'complete', false), 'not_reached', r.is_not_reached) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	left join lateral (select wlb_attempt_given(a::attempts) as nodes where a.id is not null) given on true
	where r.state in ('starting', 'running', 'restarting')
$$;

-- An attempt that began while wlbd was away, known from its first record or report. The job is announced too; where it has
-- started again meanwhile, its count of restarts says so. p_is_queued: it is in the queue now, and the attempt is of the start before.
-- Slurm gives a job that is requeued another time of submission; runs of one job have the first.
create or replace function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_is_queued boolean)
returns json language plpgsql as $$
declare
	r runs;
	known runs;
	a attempts;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_card(a.id);
	end if;
	select * into r from runs where name = p_name and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
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
	a := wlb_attempt_create(r.id, p_uuid);
	update runs set is_not_reached = false where id = r.id and is_not_reached;
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

-- p_time is by wlbd's clock; one that is ahead of the database's would make a fault newer than the check that follows it.
create or replace function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_fault_put(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case p_kind when 'node_lost' then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, least(p_time, now()))
$$;
