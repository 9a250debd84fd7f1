-- Whether a node of an attempt has reported: a step that is still being launched and one that has ended both have no slurmstepd.
-- Replaces: wlb_attempt_card.
alter table attempts add column node_reported boolean not null default false;

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
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
