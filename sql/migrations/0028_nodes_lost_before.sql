-- A job that is queued again asks for all nodes that it began with, also those that attempts before the newest have lost.
-- Replaces: wlb_runs_open.

create or replace function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0),
		'total_nodes', coalesce(cardinality(a.nodes) + cardinality(a.spares), 0),
		'node_names', a.nodes || a.spares,
		'lost_before', (select coalesce(json_agg(distinct f.node), '[]')
			from attempts b join faults f on f.attempt_id = b.id
			where b.run_id = r.id and b.number < a.number and f.kind = 'node_lost' and f.proof ? 'seen'
				and f.node <> all (a.nodes || a.spares)),
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
