-- A crash before the first step of an attempt has a step, too: that from which the attempt began. Crashes of which one was before
-- the run made progress have nothing to do with each other. A check of a node says nothing of what it has not checked.
--
-- Replaces: wlb_attempts_without_progress, wlb_run_crashes, node_evidence, wlb_node_check_put, wlb_node_history,
-- wlb_node_suspicions, wlb_nodes_list.

-- ---- attempts in a row ------------------------------------------------------------------------------------------------

-- The number of the newest attempt before p_next that does not count as one without a new step; 0: there is none. One that
-- lost a node, its launcher or its script does not count against the program, nor does one that has saved and stopped: its
-- next has fewer steps to repeat.
create function wlb_last_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	select coalesce(max(number), 0) from attempts a
	where run_id = p_run and uuid is distinct from p_next and state <> 'complete'
		and (new_steps > 0 or wlb_has_saved_and_stopped(state, exit_code)
			or exists (select from faults f where f.attempt_id = a.id
				and (f.kind = 'node_lost' or (f.cause and f.kind in ('launcher_lost', 'script_lost')))))
$$;

-- How many attempts in a row, the newest first, ended without a new step.
create or replace function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint
language sql stable as $$
	select count(*) from attempts
	where run_id = p_run and uuid <> p_next and state <> 'complete' and number > (select wlb_last_progress(p_run, p_next))
$$;

-- ---- crashes ----------------------------------------------------------------------------------------------------------

-- Whether the run's trainer records what it does: wlb-worker, or another one that sends its attempts or its steps.
create function wlb_run_is_recorded(p_run bigint) returns boolean language sql stable as $$
	select exists (select from attempts where run_id = p_run and world_size is not null)
		or exists (select from steps where run_id = p_run)
$$;

-- Also where a later attempt did these steps again.
create function wlb_attempt_has_steps(p_attempt bigint) returns boolean language sql stable as $$
	select exists (select from steps where attempt_id = p_attempt)
		or exists (select from steps_superseded where attempt_id = p_attempt)
$$;

-- The last step that was done when a rank died; -1: it is not known. p_reported is 0, or null, until a rank of the node has
-- done a step in the attempt. An attempt without a recorded step then had done none since its start, which is 0 or a
-- checkpoint. A trainer that records nothing and reports no step is always at 0, which says nothing of where it was.
create function wlb_crash_step(a attempts, p_reported bigint) returns bigint language sql stable as $$
	select case
		when p_reported > 0 then p_reported
		when wlb_run_is_recorded(a.run_id) and not wlb_attempt_has_steps(a.id) then coalesce(a.resumed_step, 0)
		else -1 end
$$;

-- in_row: its attempt is one of those in a row without progress; later_progress: how many attempts after it had a new step.
create or replace function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	with newest as (
		select attempt_id, node, step, detected_at from faults
		where run_id = p_run and cause and kind = 'rank_lost' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most
	), progress as materialized (
		select number from attempts where run_id = p_run and new_steps > 0
	), last as materialized (
		select wlb_last_progress(p_run, null) as number
	)
	select coalesce(json_agg(json_build_object('node', c.node, 'step', wlb_crash_step(a, c.step),
		'age_s', greatest(extract(epoch from now() - c.detected_at), 0), 'in_row', a.number > last.number,
		'later_progress', (select count(*) from progress p where p.number > a.number)) order by c.detected_at desc), '[]')
	from newest c join attempts a on a.id = c.attempt_id cross join last
$$;

-- ---- what checks of nodes have found ------------------------------------------------------------------------------------

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

alter table node_checks
	add column failed text[] not null default '{}', -- kinds, the one of the reason first
	add column passed text[];                       -- kinds; null: all that was known before is ended

-- Until now a check that found the node healthy ended whatever was known, and so do those that are stored.
update node_checks set failed = wlb_kinds_failed(healthy, reason, checks),
	passed = case when not healthy then wlb_kinds_passed(checks) end;

-- What failed on a node and has not been ok since.
create view node_findings as
with found as (
	select id, node, checked_at, unnest(failed) as kind, true as has_failed from node_checks
	union all
	select id, node, checked_at, unnest(passed), false from node_checks
), newest as (
	select distinct on (node, kind) * from found order by node, kind, checked_at desc, id desc
)
select node, kind, checked_at as at, id as check_id from newest
where has_failed and not exists (select from node_checks c
	where c.node = newest.node and c.passed is null and (c.checked_at, c.id) > (newest.checked_at, newest.id));

-- The reason of a check is that of the first kind that failed in it; of another kind it is made as wlb check-node does.
create function wlb_finding_reason(c node_checks, p_kind text) returns text language sql stable as $$
	select coalesce((select left(format('%s: %s%s', entry->>'check', entry->>'measured', '; limit: ' || (entry->>'limit')), 512)
		from json_array_elements(c.checks) as entry
		where c.failed[1] <> p_kind and entry->>'verdict' = 'failed'
			and wlb_check_kind(entry->>'check', wlb_checks_are_of_gpus(c.checks)) = p_kind limit 1), c.reason)
$$;

-- The newest finding of each node.
create view node_failures as
select distinct on (f.node) f.node, f.at, wlb_finding_reason(c, f.kind) as reason
from node_findings f join node_checks c on c.id = f.check_id
order by f.node, f.at desc, f.check_id desc, array_position(c.failed, f.kind);

-- A loss weighs 1, once in a run and once where several runs had the node then, and a check that failed 2 until what failed
-- is ok. After 3 days half of a weight is left, after 30 days nothing. A check ends no loss: a node that dies each day may
-- be healthy between.
create or replace view node_evidence as
with cleared as (
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
	select node, null, 'check', at, 2.0, reason from node_failures where at > now() - interval '30 days'
)
select found.node, found.run_id, found.kind, found.at, found.reason,
	found.weight * power(0.5, greatest(extract(epoch from now() - found.at), 0)::float8 / (3 * 86400)) as weight
from found left join cleared on cleared.node = found.node
where cleared.at is null or found.at > cleared.at;

-- Whether the products of the node were found exact, or everything before was ended; those of its GPUs where it has some.
create function wlb_is_exact(p_passed text[], p_has_gpus boolean) returns boolean language sql immutable as $$
	select p_passed is null or 'products of GPUs' = any(p_passed) or (not p_has_gpus and 'products' = any(p_passed))
$$;

-- A check that finds what an earlier one found, with nothing else found between them, is that one again. A node keeps its
-- newest 100 checks, and of older ones those that still count.
create or replace function wlb_node_check_put(p_node text, p_healthy boolean, p_reason text, p_checks json, p_clears boolean,
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
		'avoided', coalesce(json_typeof(wlb_nodes_avoided()->p_node) = 'object', false));
end $$;

-- ---- what `wlb nodes` lists ----------------------------------------------------------------------------------------------

-- What is known of a node, the newest first: 100 losses and checks, and what made runs leave it out. Of the runs of others
-- names and reasons are not told where p_uid is not null.
create or replace function wlb_node_history(p_node text, p_uid bigint) returns json language sql stable as $$
	with told as (
		select f.detected_at as at, f.run_id, 'loss' as kind, f.detail as reason, null::boolean as healthy, false as clears,
			true as is_public
		from faults f where f.node = p_node and f.kind = 'node_lost' and f.proof ? 'seen'
		union all
		select detected_at, run_id, 'eviction', left(proof->>'evicted', 512), null, false, false
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

create index on run_node_checks (node, checked_at) where not healthy;

drop function wlb_node_suspicions();

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

-- suspected: something failed on it and has not been ok since, or its products were not found exact by root or SlurmUser
-- since the last suspicion: those of its GPUs where the attempt computed on GPUs, or a report was of GPUs. The check that is
-- told is that of the newest finding or, where there is none, the newest.
create or replace function wlb_nodes_list(p_uid bigint, p_node text, p_limit bigint, p_avoids boolean) returns json
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
	), listed as (
		select node, coalesce(weight, 0) as weight, coalesce(l.runs, 0) as losses, l.at as lost_at,
			case when c.node is not null then f.node is null end as healthy,
			case when c.node is not null then coalesce(f.reason, '') end as reason, coalesce(f.at, c.at) as checked_at,
			s.at as suspected_at, f.node is not null or coalesce(s.gpus_at > c.gpus_exact_at, s.gpus_at is not null)
				or coalesce(s.at > case when c.has_gpus then c.gpus_exact_at else c.exact_at end, s.at is not null) as suspected
		from losses l full join checks c using (node) full join suspicions s using (node) left join weights using (node)
			left join failures f using (node)
		order by coalesce(weight, 0) desc, greatest(l.at, c.at, s.at) desc, node limit least(p_limit, 4096)
	)
	select json_build_object('avoid_from', case when p_avoids then wlb_node_weight_to_avoid() end, 'nodes', coalesce(json_agg(json_build_object(
		'node', node, 'weight', wlb_real(weight), 'losses', losses, 'lost_at', wlb_time(lost_at), 'healthy', healthy,
		'reason', reason, 'checked_at', wlb_time(checked_at),
		'suspected', suspected, 'suspected_at', wlb_time(suspected_at),
		'history', case when p_node is not null then wlb_node_history(node, p_uid) end)
		order by weight desc, greatest(lost_at, checked_at, suspected_at) desc, node), '[]')) from listed
$$;
