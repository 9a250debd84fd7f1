-- Checks of the nodes that an attempt leaves out, made by its launcher while the attempt runs. They are a user's, so they
-- count for his run alone. A node that passed is given back to the run, once: if it is left out again, it stays out.
--
-- Replaces: wlb_run_crashes, wlb_run_evictions, wlb_run_past.

create table run_node_checks (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	node text not null,
	healthy boolean not null,
	reason text not null default '',
	checks json not null default '[]',
	checked_at timestamptz not null default now(),
	unique (attempt_id, node)
);
create index on run_node_checks (run_id, node);

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

-- Whether a node has passed a check in the run since then.
create function wlb_run_node_passed(p_run bigint, p_node text, p_since timestamptz) returns boolean language sql stable as $$
	select exists (select from run_node_checks
		where run_id = p_run and node = p_node and healthy and checked_at > p_since)
$$;

create or replace function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', node, 'step', coalesce(nullif(step, 0), -1),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select node, step, detected_at from faults
		where run_id = p_run and cause and kind = 'rank_lost' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most) as newest
$$;

create or replace function wlb_run_evictions(p_run bigint, p_most bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', node, 'kind', kind, 'step', coalesce(step, -1),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select node, kind, step, detected_at from faults
		where run_id = p_run and cause and proof ? 'evicted' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most) as newest
$$;

create or replace function wlb_run_past(p_name text, p_uuid uuid, p_uid bigint, p_admin boolean) returns json language sql stable as $$
	with past as (
		select wlb_run_history(p_name, p_uuid, p_uid, p_admin) as fields
	)
	select json_object_agg(key, value) from (
		select key, value from past, json_each(past.fields)
		union all
		select 'on_fault', to_json(r.policy->>'on_fault')
		from past join runs r on r.id = (past.fields->>'run_pk')::bigint
		union all
		select 'unplaced', to_json(wlb_unplaced_fault((past.fields->>'run_pk')::bigint) is not null) from past
		union all
		select 'avoided', wlb_nodes_avoided()
		union all
		select 'since_end_s', to_json((select greatest(extract(epoch from now() - max(ended_at)), 0) from attempts
			where run_id = (past.fields->>'run_pk')::bigint and ended_at is not null)::float8) from past
		union all
		-- Nodes that have passed a check before.
		select 'given_back', (select coalesce(json_object_agg(node, true), '{}') from (select distinct node
			from run_node_checks where run_id = (past.fields->>'run_pk')::bigint and healthy) as passed) from past) as fields
$$;

-- ---- which nodes root is to check -------------------------------------------------------------------------------------

create index on run_node_checks (checked_at) where not healthy;
create index on faults (detected_at) where proof ? 'evicted';

-- When a run lost a node, when an attempt was ended for its sake, and when its check in a run failed, of the last 30 days.
-- The latter two rest on what a user's processes report: they are a reason to check the node, and no evidence against it.
create function wlb_node_suspicions() returns table (node text, at timestamptz) language sql stable as $$
	select node, detected_at from faults
	where kind = 'node_lost' and proof ? 'seen' and node is not null and detected_at > now() - interval '30 days'
	union all
	select node, detected_at from faults
	where proof ? 'evicted' and cause and node is not null and detected_at > now() - interval '30 days'
	union all
	select node, checked_at from run_node_checks where not healthy and checked_at > now() - interval '30 days'
$$;

-- The nodes of which something is known, those with the most weight first. With p_node that node alone, and its history.
-- suspected: the newest check of root or SlurmUser failed, or none was made since the last suspicion. p_avoids: whether nodes are
-- avoided.
create function wlb_nodes_list(p_uid bigint, p_node text, p_limit bigint, p_avoids boolean) returns json language sql stable as $$
	with losses as (
		select node, count(distinct run_id) as runs, max(detected_at) as at
		from faults where kind = 'node_lost' and proof ? 'seen' and node is not null and (p_node is null or node = p_node)
		group by node
	), checks as (
		select distinct on (node) node, healthy, reason, checked_at
		from node_checks where p_node is null or node = p_node order by node, checked_at desc, id desc
	), weights as (
		select node, sum(weight) as weight from node_evidence where p_node is null or node = p_node group by node
	), suspicions as (
		select node, max(at) as at from wlb_node_suspicions() where p_node is null or node = p_node group by node
	), listed as (
		select node, coalesce(weight, 0) as weight, coalesce(l.runs, 0) as losses, l.at as lost_at, c.healthy, c.reason,
			c.checked_at, s.at as suspected_at, c.healthy is false or coalesce(s.at > c.checked_at, s.at is not null) as suspected
		from losses l full join checks c using (node) full join suspicions s using (node) left join weights using (node)
		order by coalesce(weight, 0) desc, greatest(l.at, c.checked_at, s.at) desc, node limit least(p_limit, 4096)
	)
	select json_build_object('avoid_from', case when p_avoids then wlb_node_weight_to_avoid() end, 'nodes', coalesce(json_agg(json_build_object(
		'node', node, 'weight', wlb_real(weight), 'losses', losses, 'lost_at', wlb_time(lost_at), 'healthy', healthy,
		'reason', reason, 'checked_at', wlb_time(checked_at),
		'suspected', suspected, 'suspected_at', wlb_time(suspected_at),
		'history', case when p_node is not null then wlb_node_history(node, p_uid) end)
		order by weight desc, greatest(lost_at, checked_at, suspected_at) desc, node), '[]')) from listed
$$;
