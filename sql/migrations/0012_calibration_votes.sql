-- Judges each number of a calibration by those of other users for that type of node: one that is far too slow is refused,
-- and a single operation that was disturbed is replaced.
--
-- Replaces: functions wlb_calibration_put, wlb_calibration_json.

-- The operations that were measured.
create function wlb_calibration_operations(p_machine jsonb) returns table (name text, call_s float8, element_s float8)
language sql immutable as $$
	select key, (value->>'call_s')::float8, (value->>'element_s')::float8
	from jsonb_each(case when jsonb_typeof(p_machine->'operations') = 'object' then p_machine->'operations' else '{}' end)
	where (value->>'element_s')::numeric between 1e-18 and 1
$$;

-- What was measured, each as a speed. Numbers that no device has are left out: calibrations of earlier versions were
-- checked less. Links count where the file says that they were measured.
create function wlb_calibration_numbers(p_machine jsonb) returns table (name text, unit text, speed float8)
language sql immutable as $$
	with fields as (
		select name, unit, speed from (values
			('matrix products', 'FLOP/s', (p_machine->>'peak_flops')::float8),
			('attention', 'FLOP/s', (p_machine->>'peak_flops')::float8 * (p_machine->>'attention_efficiency')::float8),
			('attention, backward', 'FLOP/s',
				(p_machine->>'peak_flops')::float8 * (p_machine->>'attention_backward_efficiency')::float8),
			('memory', 'bytes/s', (p_machine->>'memory_bytes_per_s')::float8),
			('node_link', 'bytes/s', case when p_machine ? 'node_calls' then
				(p_machine->'node_link'->>'bytes_per_s')::float8 end),
			('network_link', 'bytes/s', case when p_machine->'measured'->'nodes' > '1' and not p_machine ? 'switch_link' then
				(p_machine->'network_link'->>'bytes_per_s')::float8 end),
			('switch_link', 'bytes/s', (p_machine->'switch_link'->>'bytes_per_s')::float8)) as v (name, unit, speed)
		union all
		select 'operation ' || o.name, 'elements/s', 1 / o.element_s from wlb_calibration_operations(p_machine) o
	)
	select name, unit, speed from fields where speed between 1e-18 and 1e18
$$;

-- Returns why a calibration is refused: a speed is below a hundredth of the median of those of three other users at least.
-- Null: it is not.
create function wlb_calibration_refusal(p_type text, p_ranks integer, p_uid bigint, p_machine jsonb) returns text
language sql stable as $$
	with medians as (
		select n.name, count(*) as users, percentile_cont(0.5) within group (order by n.speed) as median
		from wlb_calibrations_newest(p_type, p_ranks) c, wlb_calibration_numbers(c.machine) n
		where c.uid <> p_uid group by n.name having count(*) >= 3
	)
	select format('%s: %s %s: must be at least %s, a hundredth of the median of %s other users'' on nodes of this type: '
		'measure on idle nodes', v.name, v.speed::float4, v.unit, (m.median / 100)::float4, m.users)
	from wlb_calibration_numbers(p_machine) v join medians m using (name)
	where v.speed < m.median / 100 order by v.speed / m.median limit 1
$$;

-- Stores a calibration, and deletes all but the newest 64 of the user. p_nodes is a JSON array of names. One that is
-- refused is not stored; the reply then has the reason.
create or replace function wlb_calibration_put(p_uid bigint, p_is_admin boolean, p_job_id bigint, p_type text, p_ranks integer,
	p_nodes text, p_machine text)
returns json language plpgsql as $$
declare
	v_id bigint;
	v_refusal text := wlb_calibration_refusal(p_type, p_ranks, p_uid, p_machine::jsonb);
begin
	if v_refusal is not null then
		return json_build_object('refused', v_refusal);
	end if;
	insert into calibrations (node_type, ranks_per_node, uid, is_admin, job_id, nodes, machine, speeds)
	values (p_type, p_ranks, p_uid, p_is_admin, p_job_id,
		array(select json_array_elements_text(p_nodes::json)), p_machine::jsonb,
		wlb_calibration_speeds(p_machine::jsonb))
	returning id into v_id;
	delete from calibrations where uid = p_uid and id <= (select id from calibrations where uid = p_uid
		order by id desc offset 64 limit 1);
	return json_build_object('id', v_id, 'node_type', p_type);
end $$;

-- Returns the operations of a calibration whose time is more than twice, or less than half, the median of those of three
-- other users at least, with the medians.
create function wlb_calibration_outvoted_operations(p_type text, p_ranks integer, p_uid bigint, p_machine jsonb)
returns table (name text, call_s float8, element_s float8) language sql stable as $$
	with medians as (
		select o.name, percentile_cont(0.5) within group (order by o.call_s) as call_s,
			percentile_cont(0.5) within group (order by o.element_s) as element_s
		from wlb_calibrations_newest(p_type, p_ranks) c, wlb_calibration_operations(c.machine) o
		where c.uid <> p_uid group by o.name having count(*) >= 3
	)
	select m.name, m.call_s, m.element_s from wlb_calibration_operations(p_machine) o join medians m using (name)
	where o.element_s not between m.element_s / 2 and m.element_s * 2
$$;

-- Returns the machine that a run of p_uid on nodes of that type is planned with; "machine" is null where there is none.
-- Operations that are outvoted have the medians of the others.
create or replace function wlb_calibration_json(p_type text, p_ranks integer, p_uid bigint) returns json language sql stable as $$
	with judged as (
		select c.*, j.others >= 3 and j.factor <= 1.25 as agrees, j.others >= 3 and j.factor > 1.25 as outvoted
		from wlb_calibrations_newest(p_type, p_ranks) c,
			wlb_calibration_judge(p_type, p_ranks, c.uid, c.speeds) j
	), usable as (
		select *, case when is_admin then 'administrator' when uid = p_uid then 'own' else 'agreement' end as source
		from judged where not outvoted and (is_admin or uid = p_uid or agrees)
	), best as (
		select * from usable order by is_admin desc, uid = p_uid desc, id desc limit 1
	), replaced as (
		select jsonb_object_agg(o.name, jsonb_build_object('call_s', o.call_s, 'element_s', o.element_s)) as operations,
			json_agg(o.name order by o.name) as names
		from best, wlb_calibration_outvoted_operations(p_type, p_ranks, best.uid, best.machine) o
	), before as (
		select c.id, c.machine from calibrations c, best
		where c.node_type = p_type and (p_ranks is null or c.ranks_per_node = p_ranks or p_type like 'gpu%')
			and c.id < best.id and (c.is_admin or c.uid in (p_uid, best.uid))
		order by c.is_admin desc, c.uid = p_uid desc, c.id desc limit 1
	)
	select json_build_object('node_type', p_type, 'calibrations', (select count(*) from judged),
		'outvoted', (select count(*) from judged where outvoted),
		'machine', (select case when r.operations is null then b.machine
			else jsonb_set(b.machine, '{operations}', (b.machine->'operations') || r.operations) end
			from best b, replaced r),
		'outvoted_operations', coalesce((select names from replaced), '[]'),
		'source', (select source from best),
		'uid', (select uid from best), 'at', (select extract(epoch from at) from best),
		'id', (select id from best), 'job_id', (select job_id from best),
		'before', (select json_build_object('id', id, 'machine', machine) from before))
$$;
