-- Rank 0 records the end of its training while the step still runs, and srun waits for the tasks of every node. A wlbd that
-- is started before the launcher reports the end of the step has to watch the nodes of that attempt.
--
-- Replaces: functions wlb_attempt_card, wlb_attempts_open.

-- Whether the step of an attempt may still run although the end of its training is recorded.
create function wlb_attempt_runs_on(a attempts) returns boolean language sql stable as $$
	select a.launched and not a.launcher_told and a.state in ('complete', 'failed', 'ended')
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
		and exists (select from runs r where r.id = a.run_id and r.state in ('starting', 'running', 'restarting')
			and r.ended_by is null and (r.requeued_at is null or r.requeued_at < a.created_at))
$$;

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'runs_on', wlb_attempt_runs_on(a),
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

-- Those under way, and the newest of a run where its step may run on, or where it has failed and no cause is recorded.
create or replace function wlb_attempts_open() returns json language sql stable as $$
	select coalesce(json_agg(wlb_attempt_card(a.id) order by a.id), '[]')
	from attempts a join runs r on r.id = a.run_id
	where r.state in ('starting', 'running', 'restarting') and (a.state in ('starting', 'running')
		or wlb_attempt_runs_on(a)
		or (a.state = 'failed' and a.ended_at > now() - interval '1 hour'
			and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
			and not exists (select from faults f where f.attempt_id = a.id and f.cause)))
$$;
