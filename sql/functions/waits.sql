-- When a job ended, and the times in which it held no nodes: in the queue, or suspended.

-- The newest time at which something is known of a run's attempts; null: it has none.
create function wlb_run_last_sign(p_run bigint) returns timestamptz language sql stable as $$
	select max(greatest(asked, reported, ended, step_ended)) from wlb_attempt_marks(p_run)
$$;

-- When the job of a run ended. p_ended: as Slurm says; null where Slurm has forgotten the job.
create function wlb_run_over_at(p_run bigint, p_ended timestamptz) returns timestamptz language sql stable as $$
	select least(now(), case when p_ended is null then wlb_run_last_sign(p_run)
		else greatest(wlb_moment(p_ended), (select max(wlb_attempt_asked(a)) from attempts a where a.run_id = p_run)) end)
$$;

-- Where a wait begins that follows the end of a run or of its last attempt; null where neither has ended.
create function wlb_queue_wait_since(p_run bigint, p_run_ended timestamptz) returns timestamptz language sql stable as $$
	select case when ended is not null
		then greatest(ended, (select max(ended_at) from queue_waits where run_id = p_run)) end
	from (select coalesce(p_run_ended,
		(select ended_at from attempts where run_id = p_run order by number desc limit 1)) as ended) as known
$$;

-- Removes the oldest waits of a run: the newest 1,000 are kept, as many as of its attempts are shown.
create function wlb_queue_waits_trim(p_run bigint) returns void language sql as $$
	delete from queue_waits where run_id = p_run and id <= (
		select id from queue_waits where run_id = p_run order by id desc offset 1000 limit 1)
$$;

-- The job of a run, whose attempts have all ended, is in the queue; p_restart_count is of the job now.
create function wlb_run_queued(p_run bigint, p_restart_count integer) returns void language plpgsql as $$
declare
	r runs;
begin
	select * into r from runs where id = p_run for no key update;
	if r.restart_count >= p_restart_count or exists (select from queue_waits where run_id = p_run and ended_at is null)
		or exists (select from attempts where run_id = p_run and state in ('starting', 'running')) then
		return;
	end if;
	insert into queue_waits (run_id, began_at)
	select p_run, since from wlb_queue_wait_since(p_run, r.ended_at) as since where since is not null;
	perform wlb_queue_waits_trim(p_run);
end $$;

-- The job of a run was suspended at p_time, or resumed.
create function wlb_run_suspended(p_run bigint, p_is_suspended boolean, p_time timestamptz) returns void
language plpgsql as $$
begin
	perform from runs where id = p_run for no key update;
	if not p_is_suspended then
		update suspensions set ended_at = greatest(began_at, p_time) where run_id = p_run and ended_at is null;
	elsif not exists (select from suspensions where run_id = p_run and ended_at is null) then
		insert into suspensions (run_id, began_at)
		select p_run, greatest(p_time, (select max(ended_at) from suspensions where run_id = p_run));
		delete from suspensions where run_id = p_run and id <= (
			select id from suspensions where run_id = p_run order by id desc offset 1000 limit 1);
	end if;
end $$;

-- A suspension of which wlbd saw no end was over when the next step was recorded, and at the latest when the run ended. A step whose end
-- was being recorded while Slurm stopped the processes is recorded up to some moments after the suspension began, whose time Slurm gives
-- in whole seconds: it ends none.
create function wlb_suspensions_end(p_run bigint, p_ended timestamptz) returns void language sql as $$
	update suspensions u set ended_at = greatest(u.began_at, least(p_ended,
		(select min(s.recorded_at) from steps s where s.run_id = p_run and s.recorded_at > u.began_at + interval '2 seconds')))
	where u.run_id = p_run and u.ended_at is null
$$;
