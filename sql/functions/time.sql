-- The time that a run holds its nodes, and where it went.

-- Seconds of a run; held_s is the sum of all that follow it.
create type wlb_run_seconds as (
	held_s numeric,
	effective_s numeric,
	detect_s numeric,
	decide_s numeric,
	start_s numeric,
	load_s numeric,
	repeated_s numeric,
	checkpoint_s numeric,
	idle_s numeric,
	other_s numeric,
	is_recorded boolean -- false: the run's command records no steps, and what it did is in other_s
);

-- When a fault came, where that is known: a rank, launcher or script was gone; a node was known to be alive for the last
-- time; what the verdict names began. Null for the others, of which only the time is known when they were noticed.
create function wlb_fault_began(f faults) returns timestamptz language plpgsql stable as $$
begin
	return (select wlb_moment(case
		when f.proof ? 'evicted' then (select began_at from verdicts where id = wlb_fault_verdict(f))
		when f.kind = 'node_lost' then
			(select case when s between 0 and 1e11 then to_timestamp(s) end from wlb_part(f.proof, 'alive_at') as alive (s))
		when (select is_process from fault_kinds where name = f.kind) then f.detected_at end));
end $$;

-- When an attempt was asked for: where wlbd was unavailable then, its first sign.
create function wlb_attempt_asked(a attempts) returns timestamptz language sql immutable as $$
	select least(wlb_moment(a.created_at), wlb_moment(a.started_at), wlb_moment(a.reported_at))
$$;

-- What the record says of the times of a run's attempts, which may contradict each other: clocks differ.
create function wlb_attempt_marks(p_run bigint) returns table (attempt_id bigint, number integer, is_broken boolean,
	records boolean, has_cause boolean, asked timestamptz, reported timestamptz, fault timestamptz, ended timestamptz,
	step_began timestamptz, step_ended timestamptz)
language sql stable rows 16 as $$
	select a.id, a.number, a.state in ('failed', 'ended', 'lost'), a.world_size is not null or edge.began is not null,
		c.id is not null, wlb_attempt_asked(a), least(coalesce(wlb_moment(a.reported_at), wlb_moment(a.started_at)),
			case when r.is_followed then edge.began end), -- nobody reports its begin but its first step
		wlb_fault_began(c), wlb_moment(a.ended_at), edge.began, greatest(edge.ended,
			(select max(wlb_moment(k.recorded_at)) from checkpoints k where k.attempt_id = a.id))
	from attempts a join runs r on r.id = a.run_id left join faults c on c.attempt_id = a.id and c.cause
	cross join lateral (
		select min(wlb_moment(recorded_at) - make_interval(secs => wlb_span_seconds(step_time_s, span_steps)::float8)) as began,
			max(wlb_moment(recorded_at)) as ended
		from (
			(select recorded_at, step_time_s, span_steps from steps s where s.attempt_id = a.id order by step limit 1)
			union all
			(select recorded_at, step_time_s, span_steps from steps s where s.attempt_id = a.id order by step desc limit 1)
			union all
			(select recorded_at, step_time_s, span_steps from steps_superseded s where s.attempt_id = a.id order by step limit 1)
			union all
			(select recorded_at, step_time_s, span_steps from steps_superseded s where s.attempt_id = a.id order by step desc limit 1)
		) as first_and_last) as edge
	where a.run_id = p_run
$$;

-- From when to when a run holds its nodes: from its announcement, or from what it recorded first where wlbd was unavailable
-- then, to its end, or now.
create function wlb_run_bounds(p_run bigint, out began timestamptz, out ended timestamptz) language plpgsql stable as $$
declare
	r runs;
begin
	select * into r from runs where id = p_run;
	began := greatest(coalesce(least(wlb_moment(r.created_at), wlb_moment(r.started_at),
		(select min(wlb_attempt_asked(a)) from attempts a where a.run_id = p_run)), now()), wlb_moment(r.submitted_at));
	ended := greatest(began, coalesce(wlb_moment(r.ended_at), now()));
end $$;

-- The times of a run's attempts in order, each not before the one before it and not after the next attempt was asked for:
--   asked     for the attempt
--   reported  by its workers
--   began     its first step; where there is none, its work is not known: as `ended`, or as `reported` of a command that
--             records nothing
--   ended     its last step or checkpoint; where there is no step, the attempt's work
--   fault     came; where that is not known, as `ended`, or as `detected` where no fault was recorded either
--   detected  that it is broken
--   next      attempt asked for, or the run's end
-- Where it is not broken, `fault` and `detected` are as `ended`.
create function wlb_attempt_times(p_run bigint) returns table (attempt_id bigint, is_broken boolean, records boolean,
	has_steps boolean, asked timestamptz, reported timestamptz, began timestamptz, ended timestamptz, fault timestamptz,
	detected timestamptz, next timestamptz)
language sql stable rows 16 as $$
	with marks as (
		select m.*, m.step_began is not null as has_steps, b.ended as over_at,
			greatest(b.began, least(max(m.asked) over (order by m.number), b.ended)) as asked_at
		from wlb_attempt_marks(p_run) as m, wlb_run_bounds(p_run) as b
	), followed as (
		select *, lead(asked_at, 1, over_at) over (order by number) as next_at from marks
	)
	select f.attempt_id, f.is_broken, f.records, f.has_steps, asked_at, reported_at, began_at, ended_at,
		case when f.is_broken and f.has_steps
			then greatest(ended_at, least(coalesce(f.fault, case when f.has_cause then ended_at end), detected_at))
			else ended_at end,
		detected_at, next_at
	from followed as f
	cross join lateral (
		select greatest(asked_at, least(coalesce(f.reported, f.step_began, f.ended, next_at), next_at)) as reported_at) as r
	cross join lateral (
		select greatest(reported_at, least(coalesce(f.ended, next_at), next_at)) as closed_at) as c
	cross join lateral (
		select greatest(reported_at, least(case when f.is_broken then f.fault end, closed_at)) as halted_at) as h
	cross join lateral (
		select case when f.has_steps then greatest(reported_at, least(f.step_began, next_at))
			when f.records then halted_at else reported_at end as began_at) as b
	cross join lateral (
		select case when f.has_steps then greatest(began_at, least(f.step_ended, next_at)) else halted_at end as ended_at) as e
	cross join lateral (
		select case when f.is_broken then greatest(ended_at, closed_at) else ended_at end as detected_at) as d
$$;

-- The part of the job's ranks that work in an attempt: at most 1, and 1 where it is not known. Where held_nodes is not
-- known, the nodes count that it used or held back, and not those that were left out.
create function wlb_attempt_share(a attempts) returns numeric language plpgsql stable as $$
begin
	return (select case when a.world_size > 0 and ranks > 0 then least(a.world_size / ranks, 1) else 1 end
	from (select coalesce(a.held_nodes, case when jsonb_typeof(a.decision->'nodes') = 'array'
			then jsonb_array_length(a.decision->'nodes') + cardinality(a.spares) end)
		* wlb_part(a.decision, 'tasks_per_node')::numeric as ranks) as held);
end $$;

-- Seconds of the attempt's rows in `steps` above a step.
create function wlb_step_seconds_after(a attempts, p_step bigint) returns numeric language plpgsql stable as $$
begin
	return (select case
		when p_step < (select min(step) from steps where attempt_id = a.id) then a.step_seconds
		else (select least(a.step_seconds, round(coalesce(sum(step_time_s * span_steps)
				filter (where step_time_s >= 0 and step_time_s <= 1e7), 0)::numeric, 9))
			from steps where attempt_id = a.id and step > p_step) end);
end $$;

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
	select s.attempt_id, 'step', s.step,
		wlb_seconds_within(began, ended, s.recorded_at, wlb_span_seconds(s.step_time_s, s.span_steps)::float8)
	from spans join steps s on s.run_id = p_run and s.recorded_at > began and s.recorded_at <= coalesce(
		(select min(recorded_at) from steps where run_id = p_run and recorded_at > ended), 'infinity')
	union all
	select s.attempt_id, 'repeated', s.step,
		wlb_seconds_within(began, ended, s.recorded_at, wlb_span_seconds(s.step_time_s, s.span_steps)::float8)
	from spans join steps_superseded s on s.run_id = p_run and s.recorded_at > began and s.recorded_at <= coalesce(
		(select min(recorded_at) from steps_superseded where run_id = p_run and recorded_at > ended), 'infinity')
	union all
	select k.attempt_id, 'checkpoint', k.step, wlb_seconds_within(began, ended,
		k.recorded_at - make_interval(secs => coalesce(k.duration_s - k.stall_s, 0)), coalesce(k.stall_s, k.duration_s))
	from spans join checkpoints k on k.run_id = p_run and k.recorded_at > began and k.recorded_at <= coalesce(
		(select min(recorded_at) from checkpoints where run_id = p_run and recorded_at > ended), 'infinity')
$$;

-- Seconds of a run's attempts, as their steps and checkpoints were recorded, without the time in which the job was suspended:
-- kept_s of steps that count, repeated_s of those that a later attempt did again, or that were lost because they were after the
-- checkpoint from which it resumed, or after the newest where the last attempt is broken. An attempt that ended before its workers
-- reported has repeated nothing: only the last one, which may still start, says by its decision from where.
create function wlb_attempt_work(p_run bigint) returns table (attempt_id bigint, kept_s numeric,
	repeated_s numeric, checkpoint_s numeric, share numeric)
language sql stable rows 16 as $$
	with told as (
		select case when not wlb_run_is_followed(p_run) then 0 end as none -- who tells only of steps may have saved without a word
	), known as (
		select a as attempt, a.number, a.state,
			case when a.world_size is not null or wlb_attempt_has_steps(a.id)
					or a.number = (select max(number) from attempts where run_id = p_run)
				then coalesce(a.resumed_step, case when a.decision is not null and a.world_size is null then told.none end)
			end as resumed_step
		from attempts a cross join told where a.run_id = p_run
	), cut as (
		select attempt, least(min(resumed_step) over later,
			case when last_value(state) over whole in ('failed', 'ended', 'lost')
				then coalesce((select max(step) from checkpoints where run_id = p_run), (select none from told)) end) as kept_to
		from known
		window later as (order by number desc rows between unbounded preceding and 1 preceding), -- min over a frame that shrinks is computed anew for each row
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

-- Seconds from one time to a later one in which the job of a run was not suspended. p_any: it was ever suspended.
create function wlb_seconds_held(p_run bigint, p_any boolean, p_began timestamptz, p_ended timestamptz) returns numeric
language plpgsql stable as $$
begin
	if not p_any or not coalesce(p_began < p_ended, false) then
		return wlb_seconds_between(p_began, p_ended);
	end if;
	return greatest(wlb_seconds_between(p_began, p_ended) - coalesce((
		select sum(wlb_seconds_between(greatest(p_began, wlb_moment(s.began_at)),
			least(p_ended, coalesce(wlb_moment(s.ended_at), p_ended))))
		from suspensions s where s.run_id = p_run), 0), 0);
end $$;

-- The time before a run's first attempt (attempt_id is null), and of each attempt what wlb_attempt_times has, with the time from its end to
-- the next: gap_s, without that in which the job waited in the queue or was suspended. A wait is over at the latest when the next attempt
-- is asked for.
create function wlb_run_gaps(p_run bigint) returns table (attempt_id bigint, gap_s numeric, any_suspended boolean, is_broken boolean,
	records boolean, asked timestamptz, reported timestamptz, began timestamptz, ended timestamptz, fault timestamptz, detected timestamptz)
language sql stable rows 16 as $$
	with t as (
		select * from wlb_attempt_times(p_run)
	), bounds as (
		select *, exists (select from suspensions where run_id = p_run) as any_suspended from wlb_run_bounds(p_run)
	), waits as (
		select wlb_moment(q.began_at) as began, least(coalesce(wlb_moment(q.ended_at), b.ended),
			(select min(asked) from t where asked > q.began_at)) as ended
		from queue_waits q, bounds b where q.run_id = p_run
	), gaps as (
		select attempt_id, detected as began, next as ended from t
		union all
		select null, began, coalesce((select min(asked) from t), ended) from bounds
	)
	select g.attempt_id, greatest(wlb_seconds_held(p_run, b.any_suspended, g.began, g.ended) - coalesce((
			select sum(wlb_seconds_held(p_run, b.any_suspended, greatest(g.began, w.began), least(g.ended, w.ended)))
			from waits w), 0), 0),
		b.any_suspended, t.is_broken, t.records, t.asked, t.reported, t.began, t.ended, t.fault, t.detected
	from gaps g cross join bounds b left join t on t.attempt_id = g.attempt_id
$$;

-- Steps and checkpoints cannot have taken longer than from the first step's begin to the last one's end, without the time in
-- which the job was suspended: the clock by which steps are timed runs on. In PL/pgSQL, which keeps the plan: to make it takes longer
-- than the rest. jit: where the statistics of the tables are old, PostgreSQL expects many rows and would compile the statement. It reads
-- tables for whoever may read views.
create function wlb_run_time(p_run bigint) returns wlb_run_seconds language plpgsql stable
security definer set search_path = wlb_code, public, pg_temp set jit = off set plan_cache_mode to force_generic_plan as $$
begin
	perform wlb_reads_views();
	return (with spent as (
		select g.*, stepping_s, kept, repeated, saving, round(kept * share, 9) as effective
		from wlb_run_gaps(p_run) as g
		left join wlb_attempt_work(p_run) as w on w.attempt_id = g.attempt_id
		cross join lateral (select wlb_seconds_held(p_run, g.any_suspended, g.began, g.ended) as stepping_s) as all_of_it
		cross join lateral (select greatest(least(w.kept_s, stepping_s), 0) as kept) as k
		cross join lateral (select greatest(least(w.repeated_s, stepping_s - kept), 0) as repeated) as r
		cross join lateral (select greatest(least(w.checkpoint_s, stepping_s - kept - repeated), 0) as saving) as s
	), parts as (
		select coalesce(sum(effective), 0) as effective_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, fault, detected)), 0) as detect_s,
			coalesce(sum(gap_s) filter (where is_broken), 0) as decide_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, asked, reported)), 0) as start_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, reported, began)), 0) as load_s,
			coalesce(sum(repeated + wlb_seconds_held(p_run, any_suspended, ended, fault)), 0) as repeated_s,
			coalesce(sum(saving), 0) as checkpoint_s,
			coalesce(sum(kept - effective), 0) as idle_s,
			coalesce(sum(stepping_s - kept - repeated - saving), 0)
				+ coalesce(sum(gap_s) filter (where is_broken is not true), 0) as other_s,
			coalesce(bool_or(records), false) as is_recorded
		from spent
	)
	select row(effective_s + detect_s + decide_s + start_s + load_s + repeated_s + checkpoint_s + idle_s + other_s,
		effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s,
		is_recorded)::wlb_run_seconds
	from parts);
end $$;

-- A part of the time held; null where nothing was held.
create function wlb_time_share(seconds numeric, held_s numeric) returns numeric language sql immutable as $$
	select round(seconds / nullif(held_s, 0), 6)
$$;

create function wlb_time_lost_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select json_build_object('held_s', trim_scale(t.held_s),
		'effective_s', case when t.is_recorded then trim_scale(t.effective_s) end,
		'ettr', case when t.is_recorded then wlb_time_share(t.effective_s, t.held_s) end,
		'causes', (select json_agg(json_build_object('cause', cause, 'seconds', trim_scale(seconds),
				'share', wlb_time_share(seconds, t.held_s)) order by place)
			from (values (1, 'detect', t.detect_s), (2, 'decide', t.decide_s), (3, 'start', t.start_s),
				(4, 'load', t.load_s), (5, 'repeated', t.repeated_s), (6, 'checkpoint', t.checkpoint_s),
				(7, 'idle', t.idle_s), (8, 'other', t.other_s)) as lost (place, cause, seconds)))
	from run_times_all as t where t.run_id = p_run);
end $$;
