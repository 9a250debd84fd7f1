-- Nodes: what checks have found, and the evidence against them.

-- The kind of a check is the first word of its name, "disk" of "disk /scratch". What is checked on GPUs is of another kind
-- than the same on CPUs.
create function wlb_check_kind(p_name text, p_of_gpus boolean) returns text language sql immutable as $$
	select word || case when p_of_gpus and word in ('products', 'speed', 'bandwidth', 'memory') then ' of GPUs' else '' end
	from (select rtrim(split_part(p_name, ' ', 1), ':') as word) as first
$$;

create function wlb_checks_are_of_gpus(p_checks json) returns boolean language sql immutable as $$
	select exists (select from json_array_elements(p_checks) as entry where entry->>'check' = 'gpus')
$$;

-- The kinds with an entry of that verdict, in the order of the entries.
create function wlb_check_kinds(p_checks json, p_verdict text) returns text[] language sql immutable as $$
	select coalesce(array_agg(kind order by first), '{}') from (
		select wlb_check_kind(entry->>'check', wlb_checks_are_of_gpus(p_checks)) as kind, min(number) as first
		from json_array_elements(p_checks) with ordinality as entries (entry, number)
		where entry->>'verdict' = p_verdict group by kind) as found
$$;

-- A report without such an entry failed for the check that its reason begins with.
create function wlb_kinds_failed(p_healthy boolean, p_reason text, p_checks json) returns text[] language sql immutable as $$
	select case when p_healthy then '{}'
		else coalesce(nullif(wlb_check_kinds(p_checks, 'failed'), '{}'),
			array[wlb_check_kind(p_reason, wlb_checks_are_of_gpus(p_checks))]) end
$$;

-- Every entry of these kinds is ok, or not checked.
create function wlb_kinds_passed(p_checks json) returns text[] language sql immutable as $$
	select array(select unnest(wlb_check_kinds(p_checks, 'ok')) except select unnest(wlb_check_kinds(p_checks, 'failed')) order by 1)
$$;

-- Whether the products of the node were found exact, or everything before was ended; those of its GPUs where it has some.
create function wlb_is_exact(p_passed text[], p_has_gpus boolean) returns boolean language sql immutable as $$
	select p_passed is null or 'products of GPUs' = any(p_passed) or (not p_has_gpus and 'products' = any(p_passed))
$$;

-- The reason of a check is that of the first kind that failed in it; of another kind it is made as wlb check-node does.
create function wlb_finding_reason(c node_checks, p_kind text) returns text language sql stable as $$
	select coalesce((select left(format('%s: %s%s', entry->>'check', entry->>'measured', '; limit: ' || (entry->>'limit')), 512)
		from json_array_elements(c.checks) as entry
		where c.failed[1] <> p_kind and entry->>'verdict' = 'failed'
			and wlb_check_kind(entry->>'check', wlb_checks_are_of_gpus(c.checks)) = p_kind limit 1), c.reason)
$$;

-- p_nodes: the nodes that Slurm drains now, {"n3":{"reason":"fan","at":1790000000}, ...}, with when the reason was set; 0: not known. A
-- node keeps its newest 100 times.
create function wlb_nodes_drained(p_nodes jsonb) returns void language sql as $$
	update drains set ended_at = now() where ended_at is null and not p_nodes ? node;
	insert into drains (node, reason, began_at)
	select key, value->>'reason', case when (value->>'at')::bigint > 0 then least(to_timestamp((value->>'at')::bigint), now()) else now() end
	from jsonb_each(p_nodes)
	on conflict (node) where ended_at is null do update set reason = excluded.reason where drains.reason <> excluded.reason;
	delete from drains d where p_nodes ? node
		and id <= (select id from drains o where o.node = d.node order by id desc offset 100 limit 1)
$$;

-- Two losses in runs of one day suffice, or one check.
create function wlb_node_weight_to_avoid() returns float8 language sql immutable as $$ select 1.5::float8 $$;

-- "was lost in 2 runs and failed a check"
create function wlb_node_why(p_losses bigint, p_checks bigint) returns text language sql immutable as $$
	select concat_ws(' and ', case when p_losses > 0 then format('was lost in %s run%s', p_losses,
		case when p_losses > 1 then 's' else '' end) end, case when p_checks > 0 then 'failed a check' end)
$$;

-- All nodes of a cluster may report their checks at once: each report reads the evidence against its own node, and not against all of them.
create function wlb_node_is_avoided(p_node text) returns boolean language sql stable as $$
	select coalesce(sum(weight) >= wlb_node_weight_to_avoid(), false) from node_evidence where node = p_node
$$;

-- The nodes that are to be avoided: {"n3":{"weight":1.9,"why":"was lost in 2 runs"}, ...}, those with the most weight.
create function wlb_nodes_avoided() returns json language sql stable as $$
	with weighed as (
		select node, sum(weight) as weight, count(*) filter (where kind = 'loss') as losses,
			count(*) filter (where kind = 'check') as checks
		from node_evidence group by node having sum(weight) >= wlb_node_weight_to_avoid()
		order by sum(weight) desc, node limit 4096
	)
	select coalesce(json_object_agg(node, json_build_object('weight', weight, 'why', wlb_node_why(losses, checks))), '{}')
	from weighed
$$;

-- A check that finds what an earlier one found, with nothing else found between them, is that one again. A node keeps its
-- newest 100 checks, and of older ones those that still count.
create function wlb_node_check_put(p_node text, p_healthy boolean, p_reason text, p_checks json, p_clears boolean,
	p_uid bigint)
returns json language plpgsql as $$
declare
	v_failed text[] := wlb_kinds_failed(p_healthy, p_reason, p_checks);
	v_passed text[] := case when not p_clears then wlb_kinds_passed(p_checks) end;
begin
	update node_checks set checked_at = now(), checks = p_checks, uid = p_uid
	where id = (select id from node_checks c
		where node = p_node and (healthy, reason, clears, failed) = (p_healthy, p_reason, p_clears, v_failed)
			and passed is not distinct from v_passed and not exists (select from node_checks between_them
				where node = p_node and (healthy, reason, clears) <> (p_healthy, p_reason, p_clears)
					and (between_them.checked_at, between_them.id) > (c.checked_at, c.id))
		order by checked_at desc, id desc limit 1);
	if not found then
		insert into node_checks (node, healthy, reason, checks, clears, uid, failed, passed)
		values (p_node, p_healthy, p_reason, p_checks, p_clears, p_uid, v_failed, v_passed);
	end if;
	delete from node_checks where node = p_node and (checked_at, id) <= (
			select checked_at, id from node_checks where node = p_node order by checked_at desc, id desc offset 100 limit 1)
		and id not in (select check_id from node_findings where node = p_node
			union all (select id from node_checks where node = p_node and clears order by checked_at desc, id desc limit 1)
			union all (select distinct on (wlb_is_exact(passed, true)) id from node_checks
				where node = p_node and wlb_is_exact(passed, false) order by wlb_is_exact(passed, true), checked_at desc, id desc));
	return json_build_object('node', p_node, 'healthy', p_healthy,
		'avoided', wlb_node_is_avoided(p_node));
end $$;

-- p_attempt's decision names the nodes that may be checked. A check that is sent again is stored once.
create function wlb_run_node_check_put(p_attempt bigint, p_node text, p_healthy boolean, p_reason text, p_checks json)
returns json language plpgsql as $$
declare
	a attempts;
	added bigint;
begin
	select * into a from attempts where id = p_attempt;
	if not coalesce((a.decision->'suspects')::jsonb ? p_node, false) then
		raise exception using errcode = 'WL403', message = format(
			'attempt %s leaves out no node %s that is to be checked', a.uuid, left(p_node, 64));
	end if;
	insert into run_node_checks (run_id, attempt_id, node, healthy, reason, checks)
	values (a.run_id, a.id, p_node, p_healthy, p_reason, p_checks)
	on conflict (attempt_id, node) do nothing returning id into added;
	if added is not null then
		perform wlb_event_add(a.run_id, a.id, 'node_checked', p_node || case when p_healthy
			then ' has passed its check: the next attempt may use it' else ' has failed its check: ' || p_reason end, now());
	end if;
	return json_build_object('node', p_node, 'healthy', p_healthy);
end $$;

-- When a run lost a node, when an attempt was ended for its sake, and when its check in a run failed, of the last 30 days, and
-- whether the attempt was known to compute on GPUs. The latter two rest on what a user's processes report: they are a reason
-- to check the node, and no evidence against it.
create function wlb_node_suspicions() returns table (node text, at timestamptz, on_gpus boolean) language sql stable as $$
	select s.node, s.at, coalesce(a.device = 'cuda', false) from (
		select f.node, detected_at as at, attempt_id from faults f
		where kind = 'node_lost' and proof ? 'seen' and f.node is not null and detected_at > now() - interval '30 days'
		union all
		select f.node, detected_at, attempt_id from faults f
		where proof ? 'evicted' and cause and f.node is not null and detected_at > now() - interval '30 days'
		union all
		select c.node, checked_at, attempt_id from run_node_checks c where not healthy and checked_at > now() - interval '30 days'
	) as s join attempts a on a.id = s.attempt_id
$$;

-- Suspected nodes come before those without weight, such as all whose healthy checks are reported; the reply says how many are not listed.
-- suspected: something failed on the node and has not been ok since, or its products were not found exact by root or SlurmUser
-- since the last suspicion: those of its GPUs where the attempt computed on GPUs, or a report was of GPUs. The check that is
-- told is that of the newest finding or, where there is none, the newest.
create function wlb_nodes_list(p_uid bigint, p_node text, p_limit bigint, p_avoids boolean) returns json
language sql stable as $$
	with losses as (
		select node, count(distinct run_id) as runs, max(detected_at) as at
		from faults where kind = 'node_lost' and proof ? 'seen' and node is not null and (p_node is null or node = p_node)
		group by node
	), failures as (
		select node, at, reason from node_failures where p_node is null or node = p_node
	), checks as (
		select node, max(checked_at) as at, bool_or(coalesce('gpus' = any(failed || passed), false)) as has_gpus,
			max(checked_at) filter (where wlb_is_exact(passed, false)) as exact_at,
			max(checked_at) filter (where wlb_is_exact(passed, true)) as gpus_exact_at
		from node_checks where p_node is null or node = p_node group by node
	), weights as (
		select node, sum(weight) as weight from node_evidence where p_node is null or node = p_node group by node
	), suspicions as (
		select node, max(at) as at, max(at) filter (where on_gpus) as gpus_at from wlb_node_suspicions()
		where p_node is null or node = p_node group by node
	), of_nodes as (
		select node, coalesce(weight, 0) as weight, coalesce(l.runs, 0) as losses, l.at as lost_at,
			case when c.node is not null then f.node is null end as healthy,
			case when c.node is not null then coalesce(f.reason, '') end as reason, coalesce(f.at, c.at) as checked_at,
			s.at as suspected_at, f.node is not null or coalesce(s.gpus_at > c.gpus_exact_at, s.gpus_at is not null)
				or coalesce(s.at > case when c.has_gpus then c.gpus_exact_at else c.exact_at end, s.at is not null) as suspected
		from losses l full join checks c using (node) full join suspicions s using (node) left join weights using (node)
			left join failures f using (node)
	), listed as (
		select *, count(*) over () as known from of_nodes
		order by weight desc, suspected desc, greatest(lost_at, checked_at, suspected_at) desc, node limit least(p_limit, 4096)
	)
	select json_build_object('avoid_from', case when p_avoids then wlb_node_weight_to_avoid() end,
		'not_listed', coalesce(max(known), 0) - count(*), 'nodes', coalesce(json_agg(json_build_object(
		'node', node, 'weight', wlb_real(weight), 'losses', losses, 'lost_at', wlb_time(lost_at), 'healthy', healthy,
		'reason', reason, 'checked_at', wlb_time(checked_at),
		'suspected', suspected, 'suspected_at', wlb_time(suspected_at),
		'history', case when p_node is not null then wlb_node_history(node, p_uid) end)
		order by weight desc, suspected desc, greatest(lost_at, checked_at, suspected_at) desc, node), '[]')) from listed
$$;

-- What is known of a node, the newest first: 100 losses and checks, and what made runs leave it out. Of the runs of others
-- names and reasons are not told where p_uid is not null.
create function wlb_node_history(p_node text, p_uid bigint) returns json language sql stable as $$
	with told as (
		select f.detected_at as at, f.run_id, 'loss' as kind, f.detail as reason, null::boolean as healthy, false as clears,
			true as is_public
		from faults f where f.node = p_node and f.kind = 'node_lost' and f.proof ? 'seen'
		union all
		select detected_at, run_id, 'eviction', left(sentence, 512), null, false, false
		from faults where node = p_node and cause and proof ? 'evicted'
		union all
		select checked_at, run_id, 'run_check', reason, false, false, false
		from run_node_checks where node = p_node and not healthy
		union all
		select checked_at, null, 'check', reason, healthy, clears, true from node_checks where node = p_node
		order by at desc limit 100
	)
	select coalesce(json_agg(json_build_object('time', wlb_time(at), 'kind', kind,
		'run_id', case when is_readable then r.name end, 'reason', case when is_public or is_readable then told.reason else '' end,
		'healthy', healthy, 'clears', clears) order by at desc), '[]')
	from told left join runs r on r.id = told.run_id
	cross join lateral (select p_uid is null or coalesce(r.uid = p_uid, false) as is_readable) as reader
$$;
