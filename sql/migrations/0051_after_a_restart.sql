-- A wlbd that was started again loads the open attempts one by one: the nodes and ranks of all of them in one statement can take
-- longer than a statement may.
--
-- Replaces: function wlb_attempts_open (which returns the ids of attempts, and not their cards).

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
