-- Jobs that go on after their run has ended, which wlbd watches until they have ended too: Slurm keeps a job RUNNING that was
-- submitted with --no-kill, although the node of its script is down.

-- The start of the job that has ended: the run may go on in a later one.
alter table runs add column job_over_restart_count integer;
update runs set job_over_restart_count = restart_count where state in ('complete', 'failed', 'out_of_nodes', 'cancelled');
create index on runs (ended_at) where job_over_restart_count is null or job_over_restart_count < restart_count;

create function wlb_runs_left() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', id, 'run', name, 'job_id', job_id, 'uid', uid,
		'restart_count', restart_count, 'complete', state = 'complete')), '[]')
	from (select * from runs
		where state in ('complete', 'failed', 'out_of_nodes', 'cancelled') and confirmed and ended_at > now() - interval '1 day'
			and (job_over_restart_count is null or job_over_restart_count < restart_count)
		order by ended_at desc limit 256) as left_behind
$$;

create function wlb_run_job_over(p_run bigint, p_restart_count bigint) returns void language sql as $$
	update runs set job_over_restart_count = p_restart_count where id = p_run
$$;

-- The job is queued again or ended, since the node of its script is down.
create function wlb_run_job_without_script(p_run bigint, p_restart_count bigint, p_kind text, p_detail text) returns void
language sql as $$
	select wlb_event_add(p_run, (select id from attempts where run_id = p_run order by number desc limit 1), p_kind, p_detail, now());
	select wlb_run_job_over(p_run, p_restart_count)
$$;
