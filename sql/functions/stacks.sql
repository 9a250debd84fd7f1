-- Stacks of ranks, gathered when asked for.

-- Begins a gathering, and removes older ones. May be repeated.
create function wlb_stacks_begin(p_attempt bigint, p_stacks_id bigint, p_nodes integer) returns void language plpgsql as $$
begin
	insert into stack_gatherings (attempt_id, stacks_id, nodes_asked) values (p_attempt, p_stacks_id, p_nodes)
	on conflict do nothing;
	delete from stack_gatherings g where g.attempt_id = p_attempt and g.stacks_id < (
		select min(stacks_id) from (select stacks_id from stack_gatherings where attempt_id = p_attempt
			order by stacks_id desc limit 2) as newest);
	delete from stack_gatherings g using attempts a
	where g.attempt_id = a.id and a.run_id = (select run_id from attempts where id = p_attempt) and a.id not in (
		select id from attempts k where k.run_id = a.run_id
			and exists (select from stack_gatherings s where s.attempt_id = k.id) order by k.number desc limit 4);
end $$;

-- Stores what a node has gathered, in place of what it has sent before. Returns the number of ranks.
create function wlb_stacks_put(p_attempt bigint, p_stacks_id bigint, p_node text, p_ranks text) returns json
language plpgsql as $$
declare
	size_max constant bigint := 64 << 20;
	before bigint;
	size bigint;
begin
	perform from stack_gatherings where attempt_id = p_attempt and stacks_id = p_stacks_id for update;
	if not found then
		raise exception using errcode = 'WL503', message = format('stacks %s of the attempt are not recorded yet; try again', p_stacks_id);
	end if;
	select coalesce(sum(octet_length(entry::text)), 0) into before from stacks
	where attempt_id = p_attempt and stacks_id = p_stacks_id and node = p_node;
	delete from stacks where attempt_id = p_attempt and stacks_id = p_stacks_id and node = p_node;
	insert into stacks (attempt_id, stacks_id, node, rank, entry)
	select p_attempt, p_stacks_id, p_node, (value->>'rank')::integer, value from json_array_elements(p_ranks::json)
	on conflict do nothing;
	update stack_gatherings set size_bytes = size_bytes - before + octet_length(p_ranks)
	where attempt_id = p_attempt and stacks_id = p_stacks_id returning size_bytes into size;
	if size > size_max then
		raise exception using errcode = 'WL413', message = format('stacks %s have %s MiB already, the most that is kept of a gathering',
			p_stacks_id, size_max >> 20);
	end if;
	return json_build_object('ranks', json_array_length(p_ranks::json));
end $$;

-- The gatherings of a run, the newest first, and the ranks of one of them (p_stacks_id; null: the newest), 16 MiB at most;
-- none with p_ranks false.
create function wlb_stacks_json(p_name text, p_uid bigint, p_asker bigint, p_stacks_id bigint, p_ranks boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
	a attempts;
	g stack_gatherings;
	reply_max constant bigint := 16 << 20;
	rows_read json := '[]';
	omitted bigint := 0;
begin
	select s.* into g from stack_gatherings s join attempts t on t.id = s.attempt_id
	where t.run_id = r.id and s.stacks_id = coalesce(p_stacks_id, s.stacks_id)
	order by t.number desc, s.stacks_id desc limit 1;
	select * into a from attempts where id = g.attempt_id;
	if p_ranks then
		with sized as (
			select rank, node, entry::text as entry, sum(octet_length(entry::text)) over (order by rank) as bytes
			from stacks where attempt_id = g.attempt_id and stacks_id = g.stacks_id
		)
		select coalesce(json_agg(('{"node":' || to_json(node) || ',' || substr(entry, 2))::json order by rank)
				filter (where bytes <= reply_max), '[]'),
			count(*) filter (where bytes > reply_max)
		into rows_read, omitted from sized;
	end if;
	return json_build_object('run_id', r.name, 'state', r.state, 'attempt', a.number, 'stacks_id', g.stacks_id,
		'asked_at', wlb_time(g.asked_at), 'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp),
		'world_size', coalesce(a.world_size, cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'gatherings', coalesce((select json_agg(json_build_object('attempt', t.number, 'stacks_id', s.stacks_id,
				'asked_at', wlb_time(s.asked_at), 'nodes_asked', s.nodes_asked,
				'nodes', (select count(distinct node) from stacks k
					where k.attempt_id = s.attempt_id and k.stacks_id = s.stacks_id),
				'ranks', (select count(*) from stacks k where k.attempt_id = s.attempt_id and k.stacks_id = s.stacks_id))
				order by t.number desc, s.stacks_id desc)
			from stack_gatherings s join attempts t on t.id = s.attempt_id where t.run_id = r.id), '[]'),
		'ranks', rows_read, 'left_out', omitted);
end $$;

-- Of each rank of a gathering the thread that is likely to train: of the first ranks, 16 MiB at most.
create function wlb_stacks_of_trainers(p_attempt bigint, p_stacks_id bigint) returns json language sql stable as $$
	with found as (
		select rank, json_build_object('rank', rank, 'node', node, 'state', entry->'state',
			'threads', json_build_array(entry->'threads'->0)) as entry
		from stacks where attempt_id = p_attempt and stacks_id = p_stacks_id
	), sized as (
		select *, sum(octet_length(entry::text)) over (order by rank) as bytes from found
	)
	select json_build_object('layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp),
		'ranks', coalesce((select json_agg(entry order by rank) from sized where bytes <= 16 << 20), '[]'))
	from attempts a where a.id = p_attempt
$$;
