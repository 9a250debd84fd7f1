-- A step whose end is being recorded while Slurm stops the processes is recorded up to some moments after the suspension began, whose
-- time Slurm gives in whole seconds. It ended a suspension of which wlbd had not seen the end.
--
-- Replaces: function wlb_suspensions_end.

-- A suspension of which wlbd saw no end was over when the next step was recorded, and at the latest when the run ended.
create or replace function wlb_suspensions_end(p_run bigint, p_ended timestamptz) returns void language sql as $$
	update suspensions u set ended_at = greatest(u.began_at, least(p_ended,
		(select min(s.recorded_at) from steps s where s.run_id = p_run and s.recorded_at > u.began_at + interval '2 seconds')))
	where u.run_id = p_run and u.ended_at is null
$$;
