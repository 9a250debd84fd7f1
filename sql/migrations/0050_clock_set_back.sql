-- A requeue whose stored time is ahead of the database's clock, which was set back, was never just done: it put off the next requeue
-- until the clock came to that time, by when Slurm had forgotten the job.
--
-- Replaces: function wlb_run_requeue.

-- Notes that the job of the run, which ended at p_ended, is requeued, for p_reason. Returns how many times that makes; 0 if
-- it was p_most times already or the run is over; -1 if it has just been done. An attempt that is open ends.
create or replace function wlb_run_requeue(p_run bigint, p_attempt bigint, p_reason text, p_most integer, p_ended timestamptz)
returns integer language plpgsql as $$
declare
	r runs;
	over_at timestamptz;
begin
	select * into r from runs where id = p_run for no key update;
	if r.requeued_at between now() - interval '10 s' and now() then
		return -1;
	elsif r.ended_by is not null or r.requeues >= p_most then
		return 0;
	end if;
	over_at := wlb_run_over_at(p_run, p_ended);
	update runs set requeues = requeues + 1, requeued_at = now(), state = 'restarting' where id = p_run;
	update queue_waits set began_at = least(began_at, over_at) where run_id = p_run and ended_at is null;
	perform wlb_attempt_end(id, 'lost', null, p_reason, over_at) from attempts
	where run_id = p_run and state in ('starting', 'running');
	perform wlb_event_add(p_run, p_attempt, 'job_requeued', format('%s; job %s is requeued, %s of at most %s times',
		p_reason, r.job_id, r.requeues + 1, p_most), now());
	return r.requeues + 1;
end $$;
