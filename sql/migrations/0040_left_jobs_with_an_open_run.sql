-- A job is judged by its open run while it has one: what becomes of it is decided from the state of that run, and not from that of an
-- earlier run of its script, which may have failed.
--
-- Replaces: function wlb_runs_left.

create or replace function wlb_runs_left() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', id, 'run', name, 'job_id', job_id, 'uid', uid,
		'restart_count', restart_count, 'complete', state = 'complete')), '[]')
	from (select * from runs r
		where state in ('complete', 'failed', 'out_of_nodes', 'cancelled') and confirmed and ended_at > now() - interval '1 day'
			and (job_over_restart_count is null or job_over_restart_count < restart_count)
			and not exists (select from runs o where o.job_id = r.job_id and o.uid = r.uid
				and o.submitted_at is not distinct from r.submitted_at and not wlb_run_is_over(o.state))
		order by ended_at desc limit 256) as left_behind
$$;
