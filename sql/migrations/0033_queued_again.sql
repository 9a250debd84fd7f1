-- A job that somebody queues again (its user, an administrator, a preemption, Slurm itself): Slurm ends its tasks and its
-- script, none of which is a fault, and the run goes on when the job starts again.

-- Slurm says that the job of the attempt is queued, which it was not when the attempt began; p_restart_count is of the job now.
-- A launcher that has reported the order as the end of the run did not know that the job is to start again.
create function wlb_attempt_requeued(p_attempt bigint, p_restart_count integer, p_reason text, p_time timestamptz)
returns void language plpgsql as $$
declare
	a attempts;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	if a.state in ('starting', 'running', 'ended', 'lost') then
		perform wlb_attempt_end(p_attempt, 'ended', null, p_reason, p_time);
	end if;
	-- It may have started again meanwhile. A client's time of the end may be before the attempt, by its clock.
	update runs set state = 'restarting', reason = '', ended_by = null, ended_at = null,
		requeued_at = greatest(requeued_at, case when a.ended_at > a.created_at then a.ended_at else p_time end)
	where id = a.run_id and restart_count < p_restart_count
		and (ended_by is null or (ended_by = 'launcher' and state = 'cancelled'))
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number);
end $$;
