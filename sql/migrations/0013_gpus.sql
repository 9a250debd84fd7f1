-- Stores the GPUs of an attempt, which is the record of type "gpus": their models, memory and drivers, and the number of
-- each rank's GPU among those that the rank sees.
--
-- Replaces: view run_attempts; functions wlb_record, wlb_rank_map_json, wlb_attempts_json.

alter table attempts add column gpus jsonb;       -- docs/api.md, records of type gpus, without `devices`
alter table rank_map add column device integer;   -- null: on the CPU, or not reported

create function wlb_record_gpus(a attempts, d jsonb) returns void language plpgsql as $$
begin
	update attempts set gpus = jsonb_build_object('kinds', wlb_plain(d->'kinds'), 'ranks_per_gpu', d->'ranks_per_gpu')
	where id = a.id;
	update rank_map set device = n.device
	from (select place - 1 as rank, number::integer as device
		from jsonb_array_elements_text(d->'devices') with ordinality as each (number, place)) n
	where rank_map.attempt_id = a.id and rank_map.rank = n.rank;
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
	when 'gpus' then
		perform wlb_record_gpus(a, d);
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
	a.created_at, a.started_at, a.ended_at, a.plan, a.memory_bytes, a.gpus
from attempts a join runs r on r.id = a.run_id;

create or replace function wlb_rank_map_json(p_attempt bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_strip_nulls(json_build_object('rank', rank, 'node', node, 'local_rank', local_rank,
		'device', device)) order by rank), '[]')
	from (select * from rank_map where attempt_id = p_attempt order by rank limit 65536) as ranks
$$;

-- Only the newest 16 attempts are returned with their plans and GPUs.
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
		'gpus', case when place <= 16 then wlb_plain_within(gpus, 16384) end,
		'step_s', case when place <= 16 then wlb_attempt_step_s(attempt_id) end) order by attempt), '[]')
	from newest
$$;
