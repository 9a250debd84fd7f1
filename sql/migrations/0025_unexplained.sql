-- wlbd may end between the record that an attempt has failed and its judgement of what the cause was. After its next start it still
-- judges such an attempt.
--
-- Replaces: wlb_attempt_card, wlb_attempts_open.

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'reason', a.reason, 'slurm_step', a.slurm_step, 'nodes', to_json(a.nodes),
		'is_explained', exists (select from faults f where f.attempt_id = a.id and f.cause),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'on_fault', r.policy->>'on_fault',
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0), 'spares', cardinality(a.spares),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

-- Those under way, and the newest of a run where it has failed and no cause is recorded.
create or replace function wlb_attempts_open() returns json language sql stable as $$
	select coalesce(json_agg(wlb_attempt_card(a.id) order by a.id), '[]')
	from attempts a join runs r on r.id = a.run_id
	where r.state in ('starting', 'running', 'restarting') and (a.state in ('starting', 'running')
		or (a.state = 'failed' and a.ended_at > now() - interval '1 hour'
			and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
			and not exists (select from faults f where f.attempt_id = a.id and f.cause)))
$$;
