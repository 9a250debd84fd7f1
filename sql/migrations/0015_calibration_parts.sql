-- Compares what a calibration has measured at several points (grids of matrix products and attention, calls inside a node)
-- and its links with those of other users. A part that differs is replaced, as an operation is: a single file, made by hand
-- or on nodes under load, whose three speeds are those of others serves their runs.
--
-- Replaces: function wlb_calibration_json.

-- The values of the parts. Values at different axes are not comparable. Links count where the file says that they were measured.
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

-- Returns the machine that a run of p_uid on nodes of that type is planned with; "machine" is null where there is none.
-- Operations that are outvoted have the medians of the others, parts that are outvoted are another user's.
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
	), operations as (
		select jsonb_object_agg(o.name, jsonb_build_object('call_s', o.call_s, 'element_s', o.element_s)) as replaced,
			json_agg(o.name order by o.name) as names
		from best, wlb_calibration_outvoted_operations(p_type, p_ranks, best.uid, best.machine) o
	), parts as (
		select coalesce(jsonb_object_agg(p.part, p.measured), '{}') as replaced, json_agg(p.part order by p.part) as names
		from best, wlb_calibration_outvoted_parts(p_type, p_ranks, best.uid, best.machine, best.source = 'agreement') p
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
		'source', (select source from best),
		'uid', (select uid from best), 'at', (select extract(epoch from at) from best),
		'id', (select id from best), 'job_id', (select job_id from best),
		'before', (select json_build_object('id', id, 'machine', machine) from before))
$$;
