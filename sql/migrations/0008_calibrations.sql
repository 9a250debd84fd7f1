-- Stores the measurements of `wlb calibrate` by type of node, and chooses the one that a run on such nodes is planned
-- with.
--
-- A user may store a calibration that he measured in his own job. It is used for his own runs; it is used for the runs of
-- others if root or SlurmUser stored it, or if it agrees with the median of the calibrations of at least three other
-- users. One that disagrees with such a median is used for no run, whoever stored it.

create table calibrations (
	id bigint generated always as identity primary key,
	at timestamptz not null default now(),
	node_type text not null check (node_type <> '' and length(node_type) <= 128),
	ranks_per_node integer not null check (ranks_per_node between 1 and 4096),
	uid bigint not null,
	is_admin boolean not null, -- root or SlurmUser stored it
	job_id bigint,             -- null: an administrator measured outside a job
	nodes text[] not null,     -- as the client names them
	machine jsonb not null,    -- the machine file; wlbd has read and checked it
	speeds float8[] not null   -- calibrations are compared by these: products, attention, memory
);

create index calibrations_by_type on calibrations (node_type, uid, id desc);
create index calibrations_by_user on calibrations (uid, id desc);

create function wlb_calibration_speeds(p_machine jsonb) returns float8[] language sql immutable as $$
	select array[(p_machine->>'peak_flops')::float8,
		(p_machine->>'peak_flops')::float8 * (p_machine->>'attention_efficiency')::float8,
		(p_machine->>'memory_bytes_per_s')::float8]
$$;

-- Stores a calibration, and deletes all but the newest 64 of the user. p_nodes is a JSON array of names.
create function wlb_calibration_put(p_uid bigint, p_is_admin boolean, p_job_id bigint, p_type text, p_ranks integer,
	p_nodes text, p_machine text)
returns json language plpgsql as $$
declare
	v_id bigint;
begin
	insert into calibrations (node_type, ranks_per_node, uid, is_admin, job_id, nodes, machine, speeds)
	values (p_type, p_ranks, p_uid, p_is_admin, p_job_id,
		array(select json_array_elements_text(p_nodes::json)), p_machine::jsonb,
		wlb_calibration_speeds(p_machine::jsonb))
	returning id into v_id;
	delete from calibrations where uid = p_uid and id <= (select id from calibrations where uid = p_uid
		order by id desc offset 64 limit 1);
	return json_build_object('id', v_id, 'node_type', p_type);
end $$;

-- Returns the newest calibration of each user for nodes of a type; on CPUs only those with that number of ranks on a
-- node, because the ranks share its cores.
create function wlb_calibrations_newest(p_type text, p_ranks integer) returns setof calibrations language sql stable as $$
	select distinct on (uid) * from calibrations
	where node_type = p_type and (p_ranks is null or ranks_per_node = p_ranks or node_type like 'gpu%')
	order by uid, id desc
$$;

-- Returns the number of other users with a calibration, and the greatest factor between a speed and the median of theirs.
create function wlb_calibration_judge(p_type text, p_ranks integer, p_uid bigint, p_speeds float8[],
	out others bigint, out factor float8) language sql stable as $$
	with o as (
		select speeds from wlb_calibrations_newest(p_type, p_ranks) where uid <> p_uid
	), m as (
		select i, count(*) as n, percentile_cont(0.5) within group (order by speeds[i]) as median
		from o, generate_series(1, 3) i group by i
	)
	select coalesce(max(n), 0), max(greatest(p_speeds[i] / median, median / p_speeds[i])) from m
$$;

-- Returns the machine that a run of p_uid on nodes of that type is planned with; "machine" is null where there is none.
create function wlb_calibration_json(p_type text, p_ranks integer, p_uid bigint) returns json language sql stable as $$
	with judged as (
		select c.*, j.others >= 3 and j.factor <= 1.25 as agrees, j.others >= 3 and j.factor > 1.25 as outvoted
		from wlb_calibrations_newest(p_type, p_ranks) c,
			wlb_calibration_judge(p_type, p_ranks, c.uid, c.speeds) j
	), usable as (
		select *, case when is_admin then 'administrator' when uid = p_uid then 'own' else 'agreement' end as source
		from judged where not outvoted and (is_admin or uid = p_uid or agrees)
	), best as (
		select * from usable order by is_admin desc, uid = p_uid desc, id desc limit 1
	)
	select json_build_object('node_type', p_type, 'calibrations', (select count(*) from judged),
		'outvoted', (select count(*) from judged where outvoted),
		'machine', (select machine from best), 'source', (select source from best),
		'uid', (select uid from best), 'at', (select extract(epoch from at) from best))
$$;
