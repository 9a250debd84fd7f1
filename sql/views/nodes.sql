-- What is held against nodes.

create view node_faults as
select node, count(*) as faults, count(*) filter (where cause) as causes, count(distinct run_id) as runs,
	max(detected_at) as last_at
from faults where node is not null group by node;
comment on view node_faults is 'Which nodes broke runs, and how often';
comment on column node_faults.faults is 'number of its faults';
comment on column node_faults.causes is 'number of those that broke an attempt';
comment on column node_faults.runs is 'number of runs with such a fault';
comment on column node_faults.last_at is 'when the newest was noticed';

create view node_findings as
with found as (
	select id, node, checked_at, unnest(failed) as kind from node_checks where failed <> '{}'
), newest as (
	select distinct on (node, kind) * from found order by node, kind, checked_at desc, id desc
)
select node, kind, checked_at as at, id as check_id from newest
where not exists (select from node_checks c where c.node = newest.node
	and (c.checked_at, c.id) > (newest.checked_at, newest.id) and (c.passed is null or newest.kind = any (c.passed)));
comment on view node_findings is 'What failed on a node and has not been ok since';
comment on column node_findings.kind is 'kind of the check';
comment on column node_findings.at is 'when it failed last';
comment on column node_findings.check_id is 'the check''s id in node_checks';

create view node_failures as
select distinct on (f.node) f.node, f.at, wlb_finding_reason(c, f.kind) as reason
from node_findings f join node_checks c on c.id = f.check_id
order by f.node, f.at desc, f.check_id desc, array_position(c.failed, f.kind);
comment on view node_failures is 'The newest finding of each node';
comment on column node_failures.node is 'name of the node';
comment on column node_failures.reason is 'what failed';
comment on column node_failures.at is 'when it failed last';

-- A loss weighs 1, once in a run and once where several runs had the node then, and a check that failed 2 until what failed
-- is ok. After 3 days half of a weight is left, after 30 days nothing. A check ends no loss: a node that dies each day may
-- be healthy between.
create view node_evidence as
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
	select node, null as run_id, 'check' as kind, at, 2.0, reason from node_failures where at > now() - interval '30 days'
)
select found.node, found.run_id, found.kind, found.at, found.reason,
	found.weight * power(0.5, greatest(extract(epoch from now() - found.at), 0)::float8 / (3 * 86400)) as weight
from found left join cleared on cleared.node = found.node
where cleared.at is null or found.at > cleared.at;
comment on view node_evidence is 'What is held against nodes: losses and failed checks of the last 30 days';
comment on column node_evidence.node is 'name of the node';
comment on column node_evidence.kind is 'loss or check';
comment on column node_evidence.at is 'when it was';
comment on column node_evidence.reason is 'of a check: what failed';
comment on column node_evidence.weight is 'how much it counts now; half of it is left after 3 days';

create view node_check_results as
with reports as (
	select node, checked_at, checks, null::bigint as run_id from node_checks
	union all
	select node, checked_at, checks, run_id from run_node_checks
)
select node, checked_at, run_id, case when run_id is null then 'administrator' else 'run' end as made_by, entry->>'check' as "check",
	entry->>'verdict' as verdict, entry->>'measured' as measured, entry->>'limit' as "limit"
from reports cross join lateral json_array_elements(case when json_typeof(checks) = 'array' then checks else '[]' end) as entry
where json_typeof(entry) = 'object';
comment on view node_check_results is 'What checks of nodes have found, each check of a report';
comment on column node_check_results.node is 'name of the node';
comment on column node_check_results.checked_at is 'when it was reported';
comment on column node_check_results.run_id is 'of whose attempt, the run''s id in runs; null: root or SlurmUser checked the node';
comment on column node_check_results.made_by is 'administrator: root or SlurmUser, for all runs; run: the launcher of an attempt, for its run';
comment on column node_check_results."check" is 'what was checked: the kind, and what of it (xid 0000:3b:00)';
comment on column node_check_results.verdict is 'ok, failed or not checked';
comment on column node_check_results.measured is 'what was found, for people';
comment on column node_check_results."limit" is 'what was expected, for people; null: nothing';

create view node_drains as select node, reason, began_at, ended_at from drains;
comment on view node_drains is 'When Slurm drained nodes';
