-- What serves the runs of users who have measured nothing themselves is no user's calibration: each of its numbers is the median of
-- those of the users who agree. One whose speeds are a little lower than those of others, and whose other numbers are not compared
-- so closely, was served to everybody while it was the newest.
--
-- The word of root and SlurmUser counts as that of two users.
--
-- Replaces: functions wlb_calibration_judge, wlb_calibration_json.

drop function wlb_calibration_judge(text, integer, bigint, float8[]);

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
create or replace function wlb_calibration_json(p_type text, p_ranks integer, p_uid bigint) returns json language sql stable as $$
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
