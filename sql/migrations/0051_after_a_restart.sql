-- A wlbd that was started again loads the open attempts one by one: the nodes and ranks of all of them in one statement can take
-- longer than a statement may. And it sets the nodes DOWN that a requeued job lost before the restart.
--
-- Replaces: functions wlb_attempts_open (which returns the ids of attempts, and not their cards), wlb_runs_open (which names nodes
-- that were lost lately).

-- Those under way, and the newest of a run where its step may run on, or where it has failed and no cause is recorded.
create or replace function wlb_attempts_open() returns json language sql stable as $$
	select coalesce(json_agg(a.id order by a.id), '[]')
	from attempts a join runs r on r.id = a.run_id
	where r.state in ('starting', 'running', 'restarting') and (a.state in ('starting', 'running')
		or wlb_attempt_runs_on(a)
		or (a.state = 'failed' and a.ended_at > now() - interval '1 hour'
			and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
			and not exists (select from faults f where f.attempt_id = a.id and f.cause)))
$$;

-- The data for judging an open run by its Slurm job. `launched`: the newest attempt was started in this start of the job, as far
-- as is known; `told`: the launcher has reported how it ended. `is_waiting`, `is_suspended`: it is recorded that the job is in the
-- queue, or suspended, now. `not_reached`: the script began again, and has not come to the run. `lost_lately`: nodes that the
-- newest attempt lost not long ago, as wlbd saw, of those that Slurm had named as the job's when it began; at most 64.
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
		'lost_lately', (select coalesce(json_agg(node), '[]') from (select distinct f.node from faults f
			where f.attempt_id = a.id and f.kind = 'node_lost' and f.proof ? 'seen'
				and f.detected_at > now() - interval '10 min' and wlb_attempt_has_node(a.id, f.node)
			order by f.node limit 64) lost),
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
