-- A requeue that Slurm refused is none: it does not count as one of those that a run may have, and the run's event says why Slurm
-- refused it.
--
-- Adds: function wlb_run_not_requeued.

-- Takes back what wlb_run_requeue() has just counted; the next try is not before 10 s after it. An event of the same failure is
-- kept once for an attempt: Slurm may refuse as long as it knows the job.
create function wlb_run_not_requeued(p_run bigint, p_attempt bigint, p_failure text) returns void language plpgsql as $$
begin
	perform from runs where id = p_run for no key update;
	update runs set requeues = requeues - 1 where id = p_run and requeues > 0;
	delete from events where id = (select max(id) from events
		where run_id = p_run and attempt_id is not distinct from p_attempt and kind = 'job_requeued');
	perform wlb_event_add(p_run, p_attempt, 'job_not_requeued', p_failure, now())
	where not exists (select from events
		where run_id = p_run and attempt_id is not distinct from p_attempt and kind = 'job_not_requeued' and detail = p_failure);
end $$;
