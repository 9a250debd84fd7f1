-- Calibrations: machines as users measured them, each number judged by those of other users for that type of node.

-- Returns the newest calibration of each user for nodes of a type; on CPUs only those with that number of ranks on a
-- node, because the ranks share its cores.
create function wlb_calibrations_newest(p_type text, p_ranks integer) returns setof calibrations language sql stable as $$
	select distinct on (uid) * from calibrations
	where node_type = p_type and (p_ranks is null or ranks_per_node = p_ranks or node_type like 'gpu%')
	order by uid, id desc
$$;

-- The operations that were measured.
create function wlb_calibration_operations(p_machine jsonb) returns table (name text, call_s float8, element_s float8)
language sql immutable as $$
	select key, (value->>'call_s')::float8, (value->>'element_s')::float8
	from jsonb_each(case when jsonb_typeof(p_machine->'operations') = 'object' then p_machine->'operations' else '{}' end)
	where (value->>'element_s')::numeric between 1e-18 and 1
$$;

-- What was measured, each as a speed; numbers that no device has are left out. Links count where the file says that they were measured.
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

-- The values of the parts that were measured at several points (grids of matrix products and attention, calls inside a node) and of the
-- links, where the file says that they were measured. Values at different axes are not comparable.
create function wlb_calibration_values(p_machine jsonb) returns table (part text, axes jsonb, place text, value float8)
language sql immutable as $$
	with parts as (
		select part, fields, p_machine->part as measured from (values
			('gemm', '{flops_per_s}'::text[], true),
			('attention', '{forward_flops_per_s,backward_flops_per_s}', true),
			('node_calls', '{gather_s,reduce_s,send_s}', true),
			('node_link', '{bytes_per_s}', p_machine ? 'node_calls'),
			('network_link', '{bytes_per_s}', p_machine->'measured'->'nodes' > '1' and not p_machine ? 'switch_link'),
			('switch_link', '{bytes_per_s}', true)) as v (part, fields, is_measured)
		where is_measured and jsonb_typeof(p_machine->part) = 'object'
	)
	select part, case when part like '%_link' then '{}' else measured - fields end, field || ' ' || number, leaf::float8
	from parts, unnest(fields) field,
		jsonb_path_query(measured->field, 'strict $.** ? (@.type() == "number")') with ordinality as v (leaf, number)
	where leaf > '0'
$$;

-- All computation is planned as long as the slowest rank of a calibration makes it: that counts among the speeds by which the
-- calibrations of users are compared.
create function wlb_calibration_speeds(p_machine jsonb) returns float8[] language sql immutable as $$
	with slow as (
		select greatest(1, coalesce((p_machine->>'slowest_rank')::float8, 1)) as factor
	)
	select array[(p_machine->>'peak_flops')::float8 / factor,
		(p_machine->>'peak_flops')::float8 * (p_machine->>'attention_efficiency')::float8 / factor,
		(p_machine->>'memory_bytes_per_s')::float8 / factor]
	from slow
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
create function wlb_calibration_put(p_uid bigint, p_is_admin boolean, p_job_id bigint, p_type text, p_ranks integer,
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

create function wlb_calibration_voices(p_is_admin boolean) returns integer language sql immutable as $$
	select case when p_is_admin then 2 else 1 end
$$;

-- Returns whether two voices more than a calibration's own are there to judge it, and the greatest factor between a speed and the
-- median of theirs. A user has one voice, however many calibrations of whichever nodes he has stored: that of the newest.
create function wlb_calibration_judge(p_type text, p_ranks integer, p_uid bigint, p_is_admin boolean, p_speeds float8[],
	out is_judged boolean, out factor float8) language sql stable as $$
	with o as (
		select c.speeds from wlb_calibrations_newest(p_type, p_ranks) c,
			generate_series(1, wlb_calibration_voices(c.is_admin))
		where c.uid <> p_uid
	), m as (
		select i, count(*) as n, percentile_cont(0.5) within group (order by speeds[i]) as median
		from o, generate_series(1, 3) i group by i
	)
	select coalesce(max(n), 0) >= 2 + wlb_calibration_voices(p_is_admin),
		max(greatest(p_speeds[i] / median, median / p_speeds[i])) from m
$$;

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

-- Returns the parts of a calibration in which a value is more than four times, or less than a quarter, the median of those of
-- three other users at least who measured at the same points, each with the part of the user who is nearest to the medians. Where
-- fewer measured at the points of p_machine, which are to serve others, those count at which most users did. 16 others are
-- looked at, the newest.
create function wlb_calibration_outvoted_parts(p_type text, p_ranks integer, p_uid bigint, p_machine jsonb, p_serves_others boolean)
returns table (part text, measured jsonb) language sql stable as $$
	with own as (
		select * from wlb_calibration_values(p_machine)
	), others as (
		select uid, machine from wlb_calibrations_newest(p_type, p_ranks) where uid <> p_uid order by id desc limit 16
	), theirs as (
		select o.uid, v.* from others o, wlb_calibration_values(o.machine) v where v.part in (select own.part from own)
	), axes as (
		select distinct on (t.part) t.part, t.axes, t.axes in (select own.axes from own where own.part = t.part) as are_own
		from theirs t group by t.part, t.axes having count(distinct t.uid) >= 3
		order by t.part, are_own desc, count(distinct t.uid) desc, t.axes
	), medians as (
		select t.part, t.place, percentile_cont(0.5) within group (order by t.value) as median
		from theirs t join axes a using (part, axes) where a.are_own or p_serves_others group by t.part, t.place
	), outvoted as (
		select a.part from axes a where not a.are_own and p_serves_others
		union
		select own.part from own join axes a using (part, axes) join medians m using (part, place)
		where own.value not between m.median / 4 and m.median * 4
	), nearest as (
		select distinct on (t.part) t.part, t.uid
		from theirs t join axes a using (part, axes) join medians m using (part, place) join outvoted v on v.part = t.part
		group by t.part, t.uid order by t.part, max(abs(ln(t.value / m.median))), t.uid
	)
	select n.part, o.machine->n.part from nearest n join others o using (uid)
$$;

-- The members of a machine that are numbers or have numbers, each operation as one.
create function wlb_calibration_members(p_machine jsonb) returns table (path text[], value jsonb) language sql immutable as $$
	select array[key], value from jsonb_each(p_machine - '{name,sources,calibration,operations}'::text[])
	union all
	select array['operations', key], value
	from jsonb_each(case when jsonb_typeof(p_machine->'operations') = 'object' then p_machine->'operations' else '{}' end)
$$;

-- The points at which a member was measured: its fields without those of results. Results at other points are not comparable.
create function wlb_calibration_points(p_path text[], p_member jsonb) returns jsonb language sql immutable as $$
	select case when jsonb_typeof(p_member) = 'object' and p_path <> '{measured}' then p_member - '{bytes_per_s,latency_s,call_s,element_s,flops_per_s,value,
		forward_flops_per_s,backward_flops_per_s,gather_s,reduce_s,send_s}'::text[] else 'null' end
$$;

-- Returns the lower median of numbers, and of lists and objects of one structure the medians of their members; of texts, and of what
-- is nested more deeply than in a machine, the first.
create function wlb_json_median(p_values jsonb[], p_depth integer default 8) returns jsonb language plpgsql immutable as $$
begin
	if p_depth = 0 then
		return p_values[1];
	end if;
	case jsonb_typeof(p_values[1])
	when 'number' then
		return (select percentile_disc(0.5) within group (order by v) from unnest(p_values) v);
	when 'object' then
		return (select jsonb_object_agg(key, wlb_json_median(array(select v->key from unnest(p_values) v where v ? key), p_depth - 1))
			from jsonb_object_keys(p_values[1]) key);
	when 'array' then
		return (select jsonb_agg(wlb_json_median(array(select v->i from unnest(p_values) v where v->i is not null), p_depth - 1) order by i)
			from generate_series(0, jsonb_array_length(p_values[1]) - 1) i);
	else
		return p_values[1];
	end case;
end $$;

-- Returns the machine whose numbers are the medians of those of the machines, at the points at which most were measured. A member
-- that fewer than three have is left out. What is true of each machine is true of the medians: where one number of each is below
-- another, such as a product's rate below the peak, so are their medians.
create function wlb_calibration_median(p_machines jsonb[]) returns jsonb language sql immutable as $$
	with members as (
		select n, m.path, m.value, wlb_calibration_points(m.path, m.value) as points
		from unnest(p_machines) with ordinality as machines (machine, n), wlb_calibration_members(machine) m
	), usual as (
		select distinct on (path) path, points from members group by path, points having count(*) >= 3
		order by path, count(*) desc, min(n)
	), medians as (
		select path, wlb_json_median(array_agg(m.value order by n)) as value
		from members m join usual using (path, points) group by path
	), texts as (
		select coalesce(jsonb_object_agg(key, value), '{}') as members from jsonb_each(p_machines[1])
		where key in ('name', 'sources')
	), operations as (
		select jsonb_object_agg(path[2], value) as measured from medians where path[2] is not null
	)
	select t.members || jsonb_object_agg(m.path[1], m.value)
		|| case when o.measured is null then '{}' else jsonb_build_object('operations', o.measured) end
	from medians m, texts t, operations o where m.path[2] is null group by t.members, o.measured
$$;

-- Returns the machine that a run of p_uid on nodes of that type is planned with; "machine" is null where there is none. In this
-- order: the calibration of root or SlurmUser, the user's own (operations that are outvoted have the medians of the others, parts
-- that are outvoted are another user's), the median of what agrees. Of the last, id, uid and the texts are those of the calibration
-- whose speeds are the nearest to the medians, and "users" says how many users agree: of more than 64 the nearest count.
create function wlb_calibration_json(p_type text, p_ranks integer, p_uid bigint) returns json language sql stable as $$
	with judged as (
		select c.*, j.factor, j.is_judged and j.factor <= 1.25 as agrees, j.is_judged and j.factor > 1.25 as outvoted
		from wlb_calibrations_newest(p_type, p_ranks) c,
			wlb_calibration_judge(p_type, p_ranks, c.uid, c.is_admin, c.speeds) j
	), agreed as (
		select * from judged where agrees order by factor, id desc limit 64
	), usable as (
		select id, at, uid, job_id, is_admin, machine, case when is_admin then 'administrator' else 'own' end as source, null::bigint as users
		from judged where not outvoted and (is_admin or uid = p_uid)
		union all
		select id, at, uid, job_id, false, (select wlb_calibration_median(array_agg(machine order by factor, id desc)) from agreed),
			'agreement', (select count(*) from agreed)
		from (select * from agreed order by factor, id desc limit 1) nearest where (select count(*) from agreed) >= 3
	), best as (
		select * from usable order by is_admin desc, source = 'own' desc, id desc limit 1
	), operations as (
		select jsonb_object_agg(o.name, jsonb_build_object('call_s', o.call_s, 'element_s', o.element_s)) as replaced,
			json_agg(o.name order by o.name) as names
		from best, wlb_calibration_outvoted_operations(p_type, p_ranks, best.uid, best.machine) o where best.users is null
	), parts as (
		select coalesce(jsonb_object_agg(p.part, p.measured), '{}') as replaced, json_agg(p.part order by p.part) as names
		from best, wlb_calibration_outvoted_parts(p_type, p_ranks, best.uid, best.machine, false) p where best.users is null
	), before as (
		select c.id, c.machine from calibrations c, best
		where c.node_type = p_type and (p_ranks is null or c.ranks_per_node = p_ranks or p_type like 'gpu%')
			and c.id < best.id and (c.is_admin or c.uid in (p_uid, best.uid))
		order by c.is_admin desc, c.uid = p_uid desc, c.id desc limit 1
	)
	select json_build_object('node_type', p_type, 'calibrations', (select count(*) from judged),
		'outvoted', (select count(*) from judged where outvoted),
		'machine', (select case when o.replaced is null then b.machine
			else jsonb_set(b.machine, '{operations}', (b.machine->'operations') || o.replaced) end || p.replaced
			from best b, operations o, parts p),
		'outvoted_operations', coalesce((select names from operations), '[]'),
		'outvoted_parts', coalesce((select names from parts), '[]'),
		'source', (select source from best), 'users', (select users from best),
		'uid', (select uid from best), 'at', (select extract(epoch from at) from best),
		'id', (select id from best), 'job_id', (select job_id from best),
		'before', (select json_build_object('id', id, 'machine', machine) from before))
$$;

-- Returns the types of the attempt's nodes without GPUs, as measured, each with the number of such nodes and the name of one: a job on
-- nodes of several processors is planned with the slowest. That a node is of a type counts if root or SlurmUser measured it so, or the
-- owner of the run, or three users; of several types the one that was measured last. p_reader: the uid that the run must have, null: any.
create function wlb_attempt_node_types(p_attempt uuid, p_reader bigint) returns json language sql stable as $$
	with attempt as (
		select a.nodes, r.uid from attempts a join runs r on r.id = a.run_id
		where a.uuid = p_attempt and (p_reader is null or r.uid = p_reader)
	), measured as (
		select n.node, c.node_type, max(c.id) as newest
		from attempt a join calibrations c on c.nodes && a.nodes and c.node_type not like 'gpu%',
			unnest(c.nodes) as n(node)
		where n.node = any(a.nodes)
		group by n.node, c.node_type
		having bool_or(c.is_admin) or bool_or(c.uid = (select uid from attempt)) or count(distinct c.uid) >= 3
	), of_node as (
		select distinct on (node) node, node_type from measured order by node, newest desc
	), types as (
		select node_type, count(*) as nodes, min(node) as node from of_node group by node_type order by 2 desc, 1 limit 16
	)
	select json_build_object('node_types', coalesce((select json_agg(json_build_object(
		'node_type', node_type, 'nodes', nodes, 'node', node) order by nodes desc, node_type) from types), '[]'))
$$;
