-- Stores why an attempt has its layout, which is the record of type "plan", and shows the measured step time and memory
-- beside the predicted ones.
--
-- Replaces: view run_attempts; functions wlb_record, wlb_attempts_json.

alter table attempts
	add column plan jsonb,          -- docs/api.md, records of type plan
	add column memory_bytes bigint; -- the most that a rank has allocated on its device so far

-- Stores a plan that the attempt's nodes and tasks can serve; another becomes an event. The attempt has the plan's
-- layout until rank 0 reports its own.
create function wlb_record_plan(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
declare
	tasks bigint := (a.decision->>'tasks_per_node')::bigint;
	tp bigint := (d->'layout'->>'tp')::bigint;
	ranks numeric := tp::numeric * (d->'layout'->>'cp')::bigint * (d->'layout'->>'pp')::bigint * (d->'layout'->>'dp')::bigint;
begin
	if a.decision is not null and (ranks > cardinality(a.nodes) * tasks or tp > tasks) then
		perform wlb_event_add(a.run_id, a.id, 'plan_refused', format(
			'a plan of %s ranks, tp %s: the attempt has %s nodes of %s tasks', ranks, tp, cardinality(a.nodes), tasks),
			p_time);
		return;
	end if;
	update attempts set plan = wlb_plain(d) where id = a.id;
	update attempts set tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer
	where id = a.id and world_size is null;
end $$;

create or replace function wlb_record(a attempts, p_source text, p_record jsonb) returns wlb_added language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := to_timestamp((p_record->>'time')::float8);
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, d, at);
	when 'plan' then
		perform wlb_record_plan(a, d, at);
	when 'step' then
		if (d->>'memory_bytes')::bigint > coalesce(a.memory_bytes, 0) then
			update attempts set memory_bytes = greatest(memory_bytes, (d->>'memory_bytes')::bigint) where id = a.id;
		end if;
		return wlb_record_step(a, d, at);
	when 'checkpoint' then
		insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, recorded_at)
		values (a.run_id, a.id, (d->>'step')::bigint, d->>'path', (d->>'bytes')::bigint, (d->>'duration_s')::float8, at);
	when 'fault' then
		perform wlb_fault_insert(a.id, d->>'kind', (d->>'rank')::integer, d->>'node', (d->>'step')::bigint,
			coalesce(d->>'detail', ''), d->'evidence', null, at);
	when 'event' then
		if d->>'kind' = 'step_started' then
			perform wlb_attempt_begun(a, at);
		end if;
		perform wlb_event_add(a.run_id, a.id, d->>'kind', coalesce(d->>'detail', ''), at);
	when 'attempt_end' then
		perform wlb_record_attempt_end(a, p_source, d, at);
	end case;
	return (0, 0, 0, 0, true)::wlb_added;
end $$;

create or replace view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state, a.reason, a.nodes,
	cardinality(a.nodes) as node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps,
	least((select min(step) from steps s where s.attempt_id = a.id),
		(select min(step) from steps_superseded s where s.attempt_id = a.id)) as first_step,
	greatest((select max(step) from steps s where s.attempt_id = a.id),
		(select max(step) from steps_superseded s where s.attempt_id = a.id)) as last_step,
	a.created_at, a.started_at, a.ended_at, a.plan, a.memory_bytes
from attempts a join runs r on r.id = a.run_id;

-- Returns the median step time over the newest 100 steps of the attempt. Its first step, in which memory is touched for
-- the first time, counts only where it is the only one.
create function wlb_attempt_step_s(p_attempt bigint) returns double precision language sql stable as $$
	select wlb_real(percentile_cont(0.5) within group (order by step_time_s))
	from (select step_time_s, step from steps where attempt_id = p_attempt and step_time_s is not null
		order by step desc limit 100) as newest
	where step > (select min(step) from steps where attempt_id = p_attempt)
		or (select count(*) from (select from steps where attempt_id = p_attempt limit 2) as first) = 1
$$;

-- Only the newest 16 attempts are returned with their plans.
create or replace function wlb_attempts_json(p_run bigint) returns json language sql stable as $$
	with newest as (
		select *, sum(cardinality(nodes)) over later as names, sum(greatest(world_size::numeric, 1)) over later as ranks,
			row_number() over later as place
		from (select * from run_attempts where run_id = p_run order by attempt desc limit 1000) as kept
		window later as (order by attempt desc)
	)
	select coalesce(json_agg(json_build_object('attempt', attempt, 'attempt_id', uuid, 'state', state, 'reason', reason,
		'nodes', case when names <= 1000000 then nodes else '{}' end, 'node_count', node_count, 'spares', spares,
		'layout', wlb_layout_json(tp, cp, pp, dp),
		'rank_map', case when ranks <= 65536 then wlb_rank_map_json(attempt_id) end,
		'world_size', world_size, 'device', device, 'dtype', dtype,
		'created_at', wlb_time(created_at), 'started_at', wlb_time(started_at), 'ended_at', wlb_time(ended_at),
		'first_step', first_step, 'last_step', last_step, 'resumed_step', resumed_step,
		'checkpoint', checkpoint_path, 'exit_code', exit_code,
		'plan', case when place <= 16 then wlb_plain_within(plan, 32768) end, 'memory_bytes', memory_bytes,
		'step_s', case when place <= 16 then wlb_attempt_step_s(attempt_id) end) order by attempt), '[]')
	from newest
$$;
