-- The effective training time ratio of every run (ETTR: time that advanced training / time held), and what was lost, by
-- cause. docs/api.md, time_lost, says what each cause is. The ratio is that of "Revisiting Reliability in Large-Scale
-- Machine Learning Research Clusters" (Kokolis et al., 2024, arXiv 2410.21680); unlike there, time in which the job
-- waits in the queue is not counted, since no node is held then.
--
-- Replaces: functions wlb_record_attempt, wlb_record_step, wlb_run_total, wlb_attempt_start (which takes the nodes that
-- the job holds), wlb_run_shown.

-- ---- what is stored ------------------------------------------------------------------------------------------------

alter table attempts
	add column held_nodes integer,       -- of the job that could work when the attempt began; null: not known
	add column reported_at timestamptz,  -- rank 0's first record; null: none, or from before this column
	-- Sums over the attempt's rows, by wlb_seconds, updated by the transaction that stores them.
	add column step_seconds numeric not null default 0,       -- in steps
	add column repeated_seconds numeric not null default 0,   -- in steps_superseded
	add column checkpoint_seconds numeric not null default 0; -- of the checkpoints, also those that were removed since

update attempts a set step_seconds = done.seconds
from (select attempt_id, sum(wlb_seconds(step_time_s)) as seconds from steps group by attempt_id) as done
where done.attempt_id = a.id;

update attempts a set repeated_seconds = done.seconds
from (select attempt_id, sum(wlb_seconds(step_time_s)) as seconds from steps_superseded group by attempt_id) as done
where done.attempt_id = a.id;

update attempts a set checkpoint_seconds = done.seconds
from (select attempt_id, sum(wlb_seconds(duration_s)) as seconds from checkpoints group by attempt_id) as done
where done.attempt_id = a.id;

create function wlb_checkpoint_added() returns trigger language plpgsql as $$
begin
	update attempts set checkpoint_seconds = checkpoint_seconds + wlb_seconds(new.duration_s) where id = new.attempt_id;
	return null;
end $$;

create trigger checkpoints_added after insert on checkpoints
	for each row execute function wlb_checkpoint_added();

-- Times in which the job of a run was queued again and held no nodes: of each run the newest 100.
create table queue_waits (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	began_at timestamptz not null,
	ended_at timestamptz -- null: the job has not announced itself again
);
create index on queue_waits (run_id, id);

insert into queue_waits (run_id, began_at, ended_at)
select e.run_id, e.recorded_at, coalesce(
	(select min(a.created_at) from attempts a where a.run_id = e.run_id and a.created_at > e.recorded_at), r.ended_at)
from events e join runs r on r.id = e.run_id
where e.kind = 'job_requeued' order by e.recorded_at;

-- A wait begins when wlbd has the job queued again. Where Slurm or the user has, that is not told: it begins when the
-- run or its last attempt ended, if either did. It ends when the job announces itself with a greater count of restarts.
create function wlb_queue_wait_note() returns trigger language plpgsql as $$
declare
	since timestamptz;
begin
	if new.requeued_at is distinct from old.requeued_at then
		insert into queue_waits (run_id, began_at) values (new.id, new.requeued_at);
	else
		update queue_waits set ended_at = now() where run_id = new.id and ended_at is null;
		if not found then
			since := coalesce(old.ended_at,
				(select ended_at from attempts where run_id = new.id order by number desc limit 1));
			since := greatest(since, (select max(ended_at) from queue_waits where run_id = new.id and since is not null));
			insert into queue_waits (run_id, began_at, ended_at) select new.id, since, now() where since < now();
		end if;
	end if;
	delete from queue_waits where run_id = new.id and id <= (
		select id from queue_waits where run_id = new.id order by id desc offset 100 limit 1);
	return null;
end $$;

create trigger runs_queue_waits after update of requeued_at, restart_count on runs
	for each row when (new.requeued_at is distinct from old.requeued_at or new.restart_count > old.restart_count)
	execute function wlb_queue_wait_note();

-- ---- records -------------------------------------------------------------------------------------------------------

create or replace function wlb_record_attempt(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
begin
	perform wlb_attempt_begun(a, p_time);
	update attempts set
		tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer,
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		reported_at = coalesce(reported_at, p_time),
		nodes = (select array_agg(node order by first) from (
			select m->>'node' as node, min((m->>'rank')::integer) as first
			from jsonb_array_elements(d->'rank_map') m group by m->>'node') as used)
	where id = a.id;
	delete from rank_map where attempt_id = a.id and rank >= (d->>'world_size')::integer;
	insert into rank_map (attempt_id, rank, node, local_rank)
	select a.id, (m->>'rank')::integer, m->>'node', (m->>'local_rank')::integer
	from jsonb_array_elements(d->'rank_map') m
	on conflict (attempt_id, rank) do update set node = excluded.node, local_rank = excluded.local_rank;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

-- A step of p_old was done again by p_new, whose row is now the one in `steps`. wlb_run_total adds to p_new what the run
-- gains by that, which is the new row's seconds without the old one's: so p_new gets the old one's here.
create function wlb_step_replaced(p_old bigint, p_new bigint, p_old_s numeric) returns void language sql as $$
	update attempts set
		step_seconds = step_seconds + case when id = p_new then p_old_s else 0 end
			- case when id = p_old then p_old_s else 0 end,
		repeated_seconds = repeated_seconds + case when id = p_old then p_old_s else 0 end
	where id in (p_old, p_new)
$$;

-- The newest attempt's row of a step is the one in `steps`; every other is kept in steps_superseded.
create or replace function wlb_record_step(a attempts, d jsonb, p_time timestamptz) returns wlb_added language plpgsql as $$
declare
	holder integer;
	old steps;
	new steps;
begin
	new := (a.run_id, (d->>'step')::bigint, a.id, (d->>'loss')::float8, (d->>'grad_norm')::float8, (d->>'lr')::float8,
		(d->>'tokens')::bigint, (d->>'documents')::bigint, (d->>'step_time_s')::float8, (d->>'tokens_per_s')::float8,
		(d->>'held_tokens')::bigint, (d->>'predicted_imbalance')::float8, (d->>'imbalance')::float8, d->'parts',
		p_time)::steps;
	select * into old from steps where run_id = a.run_id and step = new.step;
	if old.run_id is null then
		insert into steps select new.*;
		return (1, 0, coalesce(new.tokens, 0), wlb_seconds(new.step_time_s), false)::wlb_added;
	end if;
	select number into holder from attempts where id = old.attempt_id;
	if holder > a.number then
		insert into steps_superseded select new.*;
		update attempts set repeated_seconds = repeated_seconds + wlb_seconds(new.step_time_s) where id = a.id;
		return (0, 1, 0, 0, false)::wlb_added;
	end if;
	insert into steps_superseded select old.*;
	perform wlb_step_replaced(old.attempt_id, a.id, wlb_seconds(old.step_time_s));
	update steps set attempt_id = new.attempt_id, loss = new.loss, grad_norm = new.grad_norm,
		learning_rate = new.learning_rate, tokens = new.tokens, documents = new.documents,
		step_time_s = new.step_time_s, tokens_per_s = new.tokens_per_s, held_tokens = new.held_tokens,
		predicted_imbalance = new.predicted_imbalance, imbalance = new.imbalance, parts = new.parts,
		recorded_at = new.recorded_at
	where run_id = a.run_id and step = new.step;
	return (0, 1, coalesce(new.tokens, 0)::numeric - coalesce(old.tokens, 0),
		wlb_seconds(new.step_time_s) - wlb_seconds(old.step_time_s), false)::wlb_added;
end $$;

-- The first and the last step are looked up and not compared: the primary key gives them at once.
create or replace function wlb_run_total(a attempts, added wlb_added) returns void language plpgsql as $$
declare
	first steps;
	last steps;
begin
	select * into first from steps where run_id = a.run_id order by step limit 1;
	select * into last from steps where run_id = a.run_id order by step desc limit 1;
	update runs set steps = steps + added.steps, steps_repeated = steps_repeated + added.repeated,
		tokens = tokens + added.tokens, step_seconds = step_seconds + added.seconds,
		first_step = first.step, first_loss = first.loss, last_step = last.step, last_loss = last.loss
	where id = a.run_id;
	update attempts set new_steps = new_steps + added.steps, step_seconds = step_seconds + added.seconds
	where id = a.id;
end $$;

drop function wlb_attempt_start(bigint, uuid, jsonb, jsonb);

-- Stores a decision to start; asked again with the same attempt_id, the first one stands. p_held_nodes: how many nodes
-- of the job could work.
create function wlb_attempt_start(p_run bigint, p_uuid uuid, p_decision jsonb, p_policy jsonb, p_held_nodes integer)
returns json language plpgsql as $$
declare
	a attempts;
	layout jsonb := p_decision->'layout';
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is null then
		a := wlb_attempt_create(p_run, p_uuid);
	end if;
	if a.decision is null then
		update attempts set
			launched = true,
			held_nodes = p_held_nodes,
			decision = p_decision || jsonb_build_object('attempt', a.number),
			nodes = array(select jsonb_array_elements_text(p_decision->'nodes')),
			spares = array(select jsonb_array_elements_text(p_decision->'spares')),
			tp = (layout->>'tp')::integer, cp = (layout->>'cp')::integer,
			pp = (layout->>'pp')::integer, dp = (layout->>'dp')::integer,
			resumed_step = (p_decision->'checkpoint'->>'step')::bigint,
			checkpoint_path = p_decision->'checkpoint'->>'path'
		where id = a.id;
		update runs set policy = policy || p_policy where id = p_run;
		-- Of an older attempt that is still open nobody will tell the end: its launcher was replaced.
		perform wlb_attempt_end(id, 'lost', null, format('attempt %s has begun', a.number), now())
		from attempts where run_id = p_run and number < a.number and state in ('starting', 'running');
	end if;
	return json_build_object('card', wlb_attempt_card(a.id), 'decision',
		(select decision from attempts where id = a.id));
end $$;

-- ---- times of an attempt -------------------------------------------------------------------------------------------

-- Null where the time lies outside the years that differences can span.
create function wlb_moment(t timestamptz) returns timestamptz language sql immutable as $$
	select case when t > '0001-01-01 00:00:00+00' and t < '9999-12-31 00:00:00+00' then t end
$$;

-- Seconds from one time to a later one, to the microsecond; 0 where it is not later.
create function wlb_seconds_between(began timestamptz, ended timestamptz) returns numeric language sql immutable as $$
	select greatest(extract(epoch from ended - began)::numeric, 0)
$$;

-- When a fault came, where that is known: a rank, launcher or script was gone; a node was known to be alive for the last
-- time; what the verdict names began. Null for the others, of which only the time is known when they were noticed.
create function wlb_fault_began(f faults) returns timestamptz language sql stable as $$
	select wlb_moment(case
		when f.proof ? 'evicted' then (select began_at from verdicts where id = wlb_fault_verdict(f))
		when f.kind = 'node_lost' then
			(select case when s between 0 and 1e11 then to_timestamp(s) end from wlb_part(f.proof, 'alive_at') as alive (s))
		when f.kind in ('rank_lost', 'launcher_lost', 'script_lost') then f.detected_at end)
$$;

-- When an attempt was asked for: where wlbd was away then, its first sign.
create function wlb_attempt_asked(a attempts) returns timestamptz language sql immutable as $$
	select least(wlb_moment(a.created_at), wlb_moment(a.started_at), wlb_moment(a.reported_at))
$$;

-- What the record says of the times of a run's attempts, which may contradict each other: clocks differ.
create function wlb_attempt_marks(p_run bigint) returns table (attempt_id bigint, number integer, is_broken boolean,
	records boolean, has_cause boolean, asked timestamptz, reported timestamptz, fault timestamptz, ended timestamptz,
	step_began timestamptz, step_ended timestamptz)
language sql stable rows 16 as $$
	select a.id, a.number, a.state in ('failed', 'ended', 'lost'), a.world_size is not null or edge.began is not null,
		c.id is not null, wlb_attempt_asked(a), coalesce(wlb_moment(a.reported_at), wlb_moment(a.started_at)),
		wlb_fault_began(c), wlb_moment(a.ended_at), edge.began, greatest(edge.ended,
			(select max(wlb_moment(k.recorded_at)) from checkpoints k where k.attempt_id = a.id))
	from attempts a left join faults c on c.attempt_id = a.id and c.cause
	cross join lateral (
		select min(wlb_moment(recorded_at) - make_interval(secs => wlb_seconds(step_time_s)::float8)) as began,
			max(wlb_moment(recorded_at)) as ended
		from (
			(select recorded_at, step_time_s from steps s where s.attempt_id = a.id order by step limit 1)
			union all
			(select recorded_at, step_time_s from steps s where s.attempt_id = a.id order by step desc limit 1)
			union all
			(select recorded_at, step_time_s from steps_superseded s where s.attempt_id = a.id order by step limit 1)
			union all
			(select recorded_at, step_time_s from steps_superseded s where s.attempt_id = a.id order by step desc limit 1)
		) as first_and_last) as edge
	where a.run_id = p_run
$$;

-- From when to when a run holds its nodes: from its announcement, or from what it recorded first where wlbd was away
-- then, to its end, or now.
create function wlb_run_bounds(p_run bigint, out began timestamptz, out ended timestamptz) language sql stable as $$
	with told as (
		select greatest(coalesce(least(wlb_moment(r.created_at), wlb_moment(r.started_at),
				(select min(wlb_attempt_asked(a)) from attempts a where a.run_id = r.id)), now()),
				wlb_moment(r.submitted_at)) as began,
			coalesce(wlb_moment(r.ended_at), now()) as ended
		from runs r where r.id = p_run
	)
	select began, greatest(began, ended) from told
$$;

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

-- ---- work of an attempt --------------------------------------------------------------------------------------------

-- Seconds of the attempt's rows in `steps` above a step.
create function wlb_step_seconds_after(a attempts, p_step bigint) returns numeric language sql stable as $$
	select case
		when p_step < (select min(step) from steps where attempt_id = a.id) then a.step_seconds
		else (select least(a.step_seconds, round(coalesce(sum(step_time_s)
				filter (where step_time_s >= 0 and step_time_s <= 1e7), 0)::numeric, 9))
			from steps where attempt_id = a.id and step > p_step) end
$$;

-- The part of the job's ranks that work in an attempt: at most 1, and 1 where it is not known. Of an attempt from before
-- held_nodes the nodes are known that it used or held back, and not those that were left out.
create function wlb_attempt_share(a attempts) returns numeric language sql stable as $$
	select case when a.world_size > 0 and ranks > 0 then least(a.world_size / ranks, 1) else 1 end
	from (select coalesce(a.held_nodes, case when jsonb_typeof(a.decision->'nodes') = 'array'
			then jsonb_array_length(a.decision->'nodes') + cardinality(a.spares) end)
		* wlb_part(a.decision, 'tasks_per_node')::numeric as ranks) as held
$$;

-- Seconds of a run's attempts, as their steps and checkpoints were recorded: kept_s of steps that count, repeated_s of
-- those that a later attempt did again, or that were lost because they were after the checkpoint from which it resumed,
-- or after the newest where the last attempt is broken.
create function wlb_attempt_work(p_run bigint) returns table (attempt_id bigint, kept_s numeric, repeated_s numeric,
	checkpoint_s numeric, share numeric)
language sql stable rows 16 as $$
	with cut as (
		select a as attempt, least(
			min(coalesce(a.resumed_step, case when a.decision is not null and a.world_size is null then 0 end)) over later,
			case when last_value(a.state) over whole in ('failed', 'ended', 'lost')
				then coalesce((select max(step) from checkpoints where run_id = p_run), 0) end) as kept_to
		from attempts a where a.run_id = p_run
		window later as (order by a.number rows between 1 following and unbounded following),
			whole as (order by a.number rows between unbounded preceding and unbounded following)
	), lost as (
		select attempt, case when kept_to is null then 0 else wlb_step_seconds_after(attempt, kept_to) end as lost_s
		from cut
	)
	select (attempt).id, (attempt).step_seconds - lost_s, (attempt).repeated_seconds + lost_s,
		(attempt).checkpoint_seconds, wlb_attempt_share(attempt)
	from lost
$$;

-- ---- time lost -----------------------------------------------------------------------------------------------------

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

-- The seconds before a run's first attempt (attempt_id is null) and those from the end of each to the next, without
-- those in which the job waited in the queue. A wait is over at the latest when the next attempt is asked for.
create function wlb_run_gaps(p_run bigint) returns table (attempt_id bigint, seconds numeric)
language sql stable rows 16 as $$
	with t as (
		select * from wlb_attempt_times(p_run)
	), bounds as (
		select * from wlb_run_bounds(p_run)
	), waits as (
		select wlb_moment(q.began_at) as began, least(coalesce(wlb_moment(q.ended_at), b.ended),
			(select min(asked) from t where asked > q.began_at)) as ended
		from queue_waits q, bounds b where q.run_id = p_run
	), gaps as (
		select attempt_id, detected as began, next as ended from t
		union all
		select null, began, coalesce((select min(asked) from t), ended) from bounds
	)
	select g.attempt_id, greatest(wlb_seconds_between(g.began, g.ended) - coalesce((
			select sum(wlb_seconds_between(greatest(g.began, w.began), least(g.ended, w.ended))) from waits w), 0), 0)
	from gaps g
$$;

-- Steps and checkpoints cannot have taken longer than from the first step's begin to the last one's end. jit: where the
-- statistics of the tables are old, PostgreSQL expects many rows and would compile the statement again at each call.
create function wlb_run_time(p_run bigint) returns wlb_run_seconds language sql stable set jit = off as $$
	with spent as (
		select t.*, g.seconds as gap_s, stepping_s, kept, repeated, saving, round(kept * share, 9) as effective
		from wlb_run_gaps(p_run) as g
		left join wlb_attempt_times(p_run) as t on t.attempt_id = g.attempt_id
		left join wlb_attempt_work(p_run) as w on w.attempt_id = g.attempt_id
		cross join lateral (select wlb_seconds_between(t.began, t.ended) as stepping_s) as all_of_it
		cross join lateral (select greatest(least(w.kept_s, stepping_s), 0) as kept) as k
		cross join lateral (select greatest(least(w.repeated_s, stepping_s - kept), 0) as repeated) as r
		cross join lateral (select greatest(least(w.checkpoint_s, stepping_s - kept - repeated), 0) as saving) as s
	), parts as (
		select coalesce(sum(effective), 0) as effective_s,
			coalesce(sum(wlb_seconds_between(fault, detected)), 0) as detect_s,
			coalesce(sum(gap_s) filter (where is_broken), 0) as decide_s,
			coalesce(sum(wlb_seconds_between(asked, reported)), 0) as start_s,
			coalesce(sum(wlb_seconds_between(reported, began)), 0) as load_s,
			coalesce(sum(repeated + wlb_seconds_between(ended, fault)), 0) as repeated_s,
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
	from parts
$$;

-- A part of the time held; null where nothing was held.
create function wlb_time_share(seconds numeric, held_s numeric) returns numeric language sql immutable as $$
	select round(seconds / nullif(held_s, 0), 6)
$$;

-- ---- for SQL, Grafana and the API ----------------------------------------------------------------------------------

-- effective_s, lost_s and ettr are null for a run whose command records no steps.
create view run_ettr as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.state, t.held_s,
	case when t.is_recorded then t.effective_s end as effective_s,
	case when t.is_recorded then t.held_s - t.effective_s end as lost_s,
	case when t.is_recorded then wlb_time_share(t.effective_s, t.held_s) end as ettr
from runs r cross join lateral wlb_run_time(r.id) as t;

create view run_time_lost as
select r.name as run, r.id as run_id, lost.cause, lost.seconds, wlb_time_share(lost.seconds, t.held_s) as share
from runs r cross join lateral wlb_run_time(r.id) as t
cross join lateral (values ('detect', t.detect_s), ('decide', t.decide_s), ('start', t.start_s), ('load', t.load_s),
	('repeated', t.repeated_s), ('checkpoint', t.checkpoint_s), ('idle', t.idle_s), ('other', t.other_s)
	) as lost (cause, seconds);

create function wlb_time_lost_json(p_run bigint) returns json language sql stable as $$
	select json_build_object('held_s', trim_scale(t.held_s),
		'effective_s', case when t.is_recorded then trim_scale(t.effective_s) end,
		'ettr', case when t.is_recorded then wlb_time_share(t.effective_s, t.held_s) end,
		'causes', (select json_agg(json_build_object('cause', cause, 'seconds', trim_scale(seconds),
				'share', wlb_time_share(seconds, t.held_s)) order by place)
			from (values (1, 'detect', t.detect_s), (2, 'decide', t.decide_s), (3, 'start', t.start_s),
				(4, 'load', t.load_s), (5, 'repeated', t.repeated_s), (6, 'checkpoint', t.checkpoint_s),
				(7, 'idle', t.idle_s), (8, 'other', t.other_s)) as lost (place, cause, seconds)))
	from wlb_run_time(p_run) as t
$$;

-- The run as wlb_run_json has it, what is done about its faults, and the time that it lost.
create or replace function wlb_run_shown(p_name text, p_uid bigint, p_steps boolean, p_asker bigint, p_defaults text)
returns json language plpgsql stable as $$
declare
	story json := wlb_run_json(p_name, p_uid, p_steps, p_asker);
begin
	return (select json_object_agg(key, value) from (
		select key, value from json_each(story)
		union all select 'on_fault', to_json(wlb_items_merge(p_defaults, story->'policy'->>'on_fault'))
		union all select 'time_lost', wlb_time_lost_json((story->>'id')::bigint)) as fields);
end $$;
