-- A step or save that goes on while the job is suspended lasts longer by that time, since the clock by which it is timed runs on.
-- The time of a suspension is no part of what it did. Nor is a run charged for what its job did from the run's end until the job was
-- queued again.
--
-- Replaces: functions wlb_attempt_work, wlb_queue_wait_note.

-- ---- steps and saves in which the job was suspended ------------------------------------------------------------------------

-- For what of a run was under way in a suspension.
create index on steps (run_id, recorded_at);
create index on steps_superseded (run_id, recorded_at);
create index on checkpoints (run_id, recorded_at);

-- Seconds from one time to a later one in which something was under way that took p_seconds and was recorded at its end.
create function wlb_seconds_within(p_began timestamptz, p_ended timestamptz, p_recorded timestamptz, p_seconds float8)
returns numeric language sql immutable as $$
	select case when wlb_moment(p_recorded) is null then 0 else wlb_seconds_between(
		greatest(p_began, p_recorded - make_interval(secs => wlb_seconds(p_seconds)::float8)), least(p_ended, p_recorded)) end
$$;

-- Seconds of steps ('step'), of steps that a later attempt did again ('repeated') and of saves ('checkpoint') of a run in which
-- its job was suspended. Those are read that were recorded in a suspension, and the next after it, which was under way.
create function wlb_suspended_work(p_run bigint) returns table (attempt_id bigint, kind text, step bigint, seconds numeric)
language sql stable rows 16 as $$
	with spans as (
		select wlb_moment(began_at) as began, coalesce(wlb_moment(ended_at), 'infinity') as ended
		from suspensions where run_id = p_run
	)
	select s.attempt_id, 'step', s.step, wlb_seconds_within(began, ended, s.recorded_at, s.step_time_s)
	from spans join steps s on s.run_id = p_run and s.recorded_at > began and s.recorded_at <= coalesce(
		(select min(recorded_at) from steps where run_id = p_run and recorded_at > ended), 'infinity')
	union all
	select s.attempt_id, 'repeated', s.step, wlb_seconds_within(began, ended, s.recorded_at, s.step_time_s)
	from spans join steps_superseded s on s.run_id = p_run and s.recorded_at > began and s.recorded_at <= coalesce(
		(select min(recorded_at) from steps_superseded where run_id = p_run and recorded_at > ended), 'infinity')
	union all
	select k.attempt_id, 'checkpoint', k.step, wlb_seconds_within(began, ended, k.recorded_at, k.duration_s)
	from spans join checkpoints k on k.run_id = p_run and k.recorded_at > began and k.recorded_at <= coalesce(
		(select min(recorded_at) from checkpoints where run_id = p_run and recorded_at > ended), 'infinity')
$$;

-- Seconds of a run's attempts, as their steps and checkpoints were recorded, without the time in which the job was suspended:
-- kept_s of steps that count, repeated_s of those that a later attempt did again, or that were lost because they were after the
-- checkpoint from which it resumed, or after the newest where the last attempt is broken. An attempt that ended before its workers
-- reported has repeated nothing: only the last one, which may still start, says by its decision from where.
create or replace function wlb_attempt_work(p_run bigint) returns table (attempt_id bigint, kept_s numeric,
	repeated_s numeric, checkpoint_s numeric, share numeric)
language sql stable rows 16 as $$
	with known as (
		select a as attempt, a.number, a.state,
			case when a.world_size is not null or a.number = (select max(number) from attempts where run_id = p_run)
				then coalesce(a.resumed_step, case when a.decision is not null and a.world_size is null then 0 end)
			end as resumed_step
		from attempts a where a.run_id = p_run
	), cut as (
		select attempt, least(min(resumed_step) over later,
			case when last_value(state) over whole in ('failed', 'ended', 'lost')
				then coalesce((select max(step) from checkpoints where run_id = p_run), 0) end) as kept_to
		from known
		window later as (order by number rows between 1 following and unbounded following),
			whole as (order by number rows between unbounded preceding and unbounded following)
	), lost as (
		select attempt, case when kept_to is null then 0 else wlb_step_seconds_after(attempt, kept_to) end as lost_s
		from cut
	), suspended as (
		select w.attempt_id,
			coalesce(sum(seconds) filter (where kind = 'step' and (step > kept_to) is not true), 0) as kept_s,
			coalesce(sum(seconds) filter (where kind = 'repeated' or (kind = 'step' and step > kept_to)), 0) as repeated_s,
			coalesce(sum(seconds) filter (where kind = 'checkpoint'), 0) as checkpoint_s
		from wlb_suspended_work(p_run) as w join cut on (cut.attempt).id = w.attempt_id group by w.attempt_id
	)
	select (attempt).id, (attempt).step_seconds - lost_s - coalesce(s.kept_s, 0),
		(attempt).repeated_seconds + lost_s - coalesce(s.repeated_s, 0),
		(attempt).checkpoint_seconds - coalesce(s.checkpoint_s, 0), wlb_attempt_share(attempt)
	from lost left join suspended s on s.attempt_id = (attempt).id
$$;

-- ---- waits in the queue ----------------------------------------------------------------------------------------------------

-- A wait begins when wlbd has the job queued again, or sees it queued; where the run was over by then, it begins at the run's end,
-- since what the job did after it was not the run's. Where it was neither, it begins when the run or its last attempt ended, if
-- either did. It ends when the job announces itself with a greater count of restarts.
create or replace function wlb_queue_wait_note() returns trigger language plpgsql as $$
declare
	since timestamptz;
begin
	if new.requeued_at is distinct from old.requeued_at then
		if not exists (select from queue_waits where run_id = new.id and ended_at is null) then
			insert into queue_waits (run_id, began_at) values (new.id, least(new.requeued_at, old.ended_at));
		end if;
	else
		update queue_waits set ended_at = now() where run_id = new.id and ended_at is null;
		if not found then
			since := wlb_queue_wait_since(new.id, old.ended_at);
			insert into queue_waits (run_id, began_at, ended_at) select new.id, since, now() where since < now();
		end if;
	end if;
	perform wlb_queue_waits_trim(new.id);
	return null;
end $$;
