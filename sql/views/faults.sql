-- Faults and verdicts of runs, for SQL and Grafana.

create view run_faults as
select r.name as run, r.id as run_id, a.number as attempt, f.detected_at, f.kind, f.rank, f.node, f.peer_rank,
	f.collective, f.step, f.cost_s, f.detail, f.evidence, f.cause,
	f.kind <> 'node_lost' or coalesce(f.proof ? 'seen', false) as is_seen, f.proof->>'evicted' as evicted
from faults f join runs r on r.id = f.run_id join attempts a on a.id = f.attempt_id;
comment on view run_faults is 'What broke attempts or slowed them';
comment on column run_faults.is_seen is 'false: a node is lost as a user''s client says, and wlbd itself has not seen it';
comment on column run_faults.evicted is 'why wlbd ended the attempt because of it; null: it did not';

create view run_verdicts as
select r.name as run, r.id as run_id, a.number as attempt, v.kind, v.state, v.ranks, v.rank_count, v.nodes, v.collective,
	v.sequence, v.step, v.cost_percent, v.certainty, v.evidence, v.action, v.began_at, v.found_at, v.confirmed_at,
	v.over_at, wlb_span(v.began_at, coalesce(v.over_at, now())) as lasted
from verdicts v join runs r on r.id = v.run_id join attempts a on a.id = v.attempt_id;
comment on view run_verdicts is 'What wlbd found from the timings of ranks';
comment on column run_verdicts.lasted is 'time from its begin until it was over, or now';

create view run_recoveries as
select r.name as run, r.id as run_id, b.number as attempt, f.kind, f.node, f.detected_at, next.recorded_at as recovered_at,
	extract(epoch from wlb_span(f.detected_at, next.recorded_at))::float8 as recovery_s
from faults f join runs r on r.id = f.run_id join attempts b on b.id = f.attempt_id
left join lateral (
	select s.recorded_at from attempts a cross join lateral (
		(select recorded_at from steps where attempt_id = a.id order by attempt_id, step limit 1)
		union all
		(select recorded_at from steps_superseded where attempt_id = a.id order by attempt_id, step limit 1)) as s
	where a.run_id = f.run_id and a.number > b.number order by a.number, s.recorded_at limit 1) as next on true
where f.cause;
comment on view run_recoveries is 'Faults that broke an attempt, and when the run trained again';
comment on column run_recoveries.recovered_at is 'when the first step after it ended; null: none has';
comment on column run_recoveries.recovery_s is 'time from detected_at to recovered_at, s';
