-- What wlbd knows of nodes over runs: losses that it saw itself, and what checks found that root or SlurmUser made
-- (`wlb check-node --report`). The next attempt of any run avoids a node with enough evidence.
--
-- Replaces: wlb_fault_found, wlb_run_past.

-- ---- what is evidence ------------------------------------------------------------------------------------------------

create table node_checks (
	id bigint generated always as identity primary key,
	node text not null,
	healthy boolean not null,
	reason text not null default '',    -- of a check that failed
	checks json not null default '[]',  -- docs/api.md, POST /v1/node_checks
	clears boolean not null default false, -- the node was repaired: what was known before counts no more
	uid bigint not null,                -- root or SlurmUser
	checked_at timestamptz not null default now()
);
create index on node_checks (node, checked_at);

-- The keys of faults.proof, in addition to those of 0006 and 0016: seen (node_lost: wlbd itself asked the node, which did
-- not answer; a client's record of a loss has no proof).
create or replace function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_fault_put(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case p_kind when 'node_lost' then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, p_time)
$$;
create index on faults (detected_at) where kind = 'node_lost' and proof ? 'seen';

-- A loss weighs 1, once in a run and once where several runs had the node then, and the newest check 2 where it failed. After 3 days half of a weight is left, after 30
-- days nothing. A check that found the node healthy ends those before it, and no loss: a node that dies each day may be
-- healthy between.
create view node_evidence as
with checked as (
	select distinct on (node) node, healthy, reason, checked_at from node_checks
	where checked_at > now() - interval '30 days' order by node, checked_at desc, id desc
), cleared as (
	select node, max(checked_at) as at from node_checks where clears group by node
), lost as (
	select node, run_id, max(detected_at) as at from faults
	where kind = 'node_lost' and proof ? 'seen' and node is not null and detected_at > now() - interval '30 days'
	group by node, run_id
), apart as (
	select *, lag(at) over (partition by node order by at, run_id) as before from lost
), found as (
	select node, run_id, 'loss' as kind, at, 1.0::float8 as weight, '' as reason
	from apart where before is null or at > before + interval '15 seconds'
	union all
	select node, null, 'check', checked_at, 2.0, reason from checked where not healthy
)
select found.node, found.run_id, found.kind, found.at, found.reason,
	found.weight * power(0.5, greatest(extract(epoch from now() - found.at), 0)::float8 / (3 * 86400)) as weight
from found left join cleared on cleared.node = found.node
where cleared.at is null or found.at > cleared.at;

-- Two losses in runs of one day suffice, or one check.
create function wlb_node_weight_to_avoid() returns float8 language sql immutable as $$ select 1.5::float8 $$;

-- "was lost in 2 runs and failed a check"
create function wlb_node_why(p_losses bigint, p_checks bigint) returns text language sql immutable as $$
	select concat_ws(' and ', case when p_losses > 0 then format('was lost in %s run%s', p_losses,
		case when p_losses > 1 then 's' else '' end) end, case when p_checks > 0 then 'failed a check' end)
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
		select 'avoided', wlb_nodes_avoided()) as fields
$$;

-- ---- checks ----------------------------------------------------------------------------------------------------------

-- A check that finds what the newest one found is that one again. A node keeps its newest 100 checks, and the newest that
-- clears it.
create function wlb_node_check_put(p_node text, p_healthy boolean, p_reason text, p_checks json, p_clears boolean,
	p_uid bigint)
returns json language plpgsql as $$
begin
	update node_checks set checked_at = now(), checks = p_checks, uid = p_uid
	where id = (select id from node_checks where node = p_node order by id desc limit 1)
		and healthy = p_healthy and reason = p_reason and clears = p_clears;
	if not found then
		insert into node_checks (node, healthy, reason, checks, clears, uid)
		values (p_node, p_healthy, p_reason, p_checks, p_clears, p_uid);
	end if;
	delete from node_checks where node = p_node and id <= (
			select id from node_checks where node = p_node order by id desc offset 100 limit 1)
		and id <> coalesce((select max(id) from node_checks where node = p_node and clears), 0);
	return json_build_object('node', p_node, 'healthy', p_healthy,
		'avoided', coalesce(json_typeof(wlb_nodes_avoided()->p_node) = 'object', false));
end $$;

-- ---- what `wlb nodes` lists -------------------------------------------------------------------------------------------

-- What is known of a node, the newest first: 100 losses and checks. The runs of others are null where p_uid is not.
create function wlb_node_history(p_node text, p_uid bigint) returns json language sql stable as $$
	with listed as (
		select f.detected_at as at, json_build_object('time', wlb_time(f.detected_at), 'kind', 'loss', 'run_id',
			case when p_uid is null or r.uid = p_uid then r.name end, 'reason', f.detail, 'healthy', null, 'clears', false) as entry
		from faults f join runs r on r.id = f.run_id
		where f.node = p_node and f.kind = 'node_lost' and f.proof ? 'seen'
		union all
		select checked_at, json_build_object('time', wlb_time(checked_at), 'kind', 'check', 'run_id', null,
			'reason', reason, 'healthy', healthy, 'clears', clears)
		from node_checks where node = p_node
		order by at desc limit 100
	)
	select coalesce(json_agg(entry order by at desc), '[]') from listed
$$;
