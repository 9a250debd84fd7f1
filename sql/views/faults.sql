-- Faults and verdicts of runs, for SQL and Grafana.

create view run_faults as
select r.name as run, r.id as run_id, a.number as attempt, f.detected_at, f.kind, f.rank, f.node, f.peer_rank,
	f.collective, f.step, f.cost_s, f.detail, f.evidence, f.cause
from faults f join runs r on r.id = f.run_id join attempts a on a.id = f.attempt_id;
comment on view run_faults is 'What broke attempts or slowed them';

create view run_verdicts as
select r.name as run, r.id as run_id, a.number as attempt, v.kind, v.state, v.ranks, v.rank_count, v.nodes, v.collective,
	v.sequence, v.step, v.cost_percent, v.certainty, v.evidence, v.action, v.began_at, v.found_at, v.confirmed_at,
	v.over_at, wlb_span(v.began_at, coalesce(v.over_at, now())) as lasted
from verdicts v join runs r on r.id = v.run_id join attempts a on a.id = v.attempt_id;
comment on view run_verdicts is 'What wlbd found from the timings of ranks';
comment on column run_verdicts.lasted is 'time from its begin until it was over, or now';
