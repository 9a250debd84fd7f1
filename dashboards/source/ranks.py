"""Ranks: what was found from the timings of ranks, and the ranks of a run."""
from panels import RUN, RUN_LIST, Dashboard, Panel, Variable

OPEN = ("run_verdicts v join run_summary r on r.run_id = v.run_id where v.state <> 'over' and r.state in ('starting', 'running', "
        "'restarting')")
VERDICT = ("v.attempt, v.kind, v.state, array_to_string(v.ranks, ' ') as ranks, array_to_string(v.nodes, ' ') as nodes, "
           "v.collective, v.sequence, wlb_real(v.cost_percent) as cost_percent, v.action, v.step")

# At most 48 samples, and 100,000 values: each of a sample is one of a rank. Ranks are in the order tp, cp, pp, dp of the layout.
CELLS = (f"with listed as (select *, row_number() over (order by sampled_at) as n, count(*) over () as samples from run_rank_samples where "
         f"run_id = {RUN} and $__timeFilter(sampled_at)), chosen as (select * from listed where n % greatest(ceil(samples / "
         "greatest(least(48, 100000 / greatest(cardinality(late_s), 1)), 4)::float8), 1)::bigint = 0), places as materialized (select "
         "attempt, "
         f"array_agg(node order by rank) as nodes from run_ranks where run_id = {RUN} and attempt in (select attempt from chosen) "
         "group by attempt having max(rank) + 1 = count(*)), cells as (select s.sampled_at, v.late_s, "
         "v.work / nullif(avg(v.work) over (partition by s.sampled_at), 0) as share, case ${by:sqlstring} when 'node' then v.node when "
         "'rank' "
         "then 'rank ' || to_char(v.rank - 1, 'FM00000') when 'tp' then 'tp ' || (v.rank - 1) % nullif(a.tp, 0) when 'cp' then 'cp ' || "
         "(v.rank - 1) / nullif(a.tp, 0) % nullif(a.cp, 0) when 'pp' then 'pp ' || (v.rank - 1) / nullif(a.tp::bigint * a.cp, 0) % "
         "nullif(a.pp, 0) else 'dp ' || (v.rank - 1) / nullif(a.tp::numeric * a.cp * a.pp, 0)::bigint end as name from chosen s join "
         "run_attempts a on a.run_id = s.run_id and a.attempt = s.attempt left join places m on m.attempt = s.attempt cross join "
         "lateral unnest(s.late_s, s.work, m.nodes) "
         "with ordinality as v (late_s, work, node, rank)), "
         "means as (select sampled_at, name, avg(late_s)::float8 as late_s, avg(share)::float8 as share from cells where name is not null "
         "group by 1, 2), most as (select name from means group by name order by max(MEASURE) desc nulls last, name limit 40)")


def heat_map(title, value, unit, says):
    return Panel(title, "heatmap", f"{CELLS.replace('MEASURE', value)} select sampled_at as time, name as metric, {value} from means "
                 f"join most using (name) "
                 f"where {value} is not null order by 1, 2", unit, 12, 10, says)


BOARD = Dashboard(
    "wlb-ranks", "WLB ranks", "Ranks, links and nodes that hang, are slow or compute wrong values: what was found from their timings, "
    "and what it cost.",
    variables=(Variable("run", "Run", RUN_LIST), Variable("by", "By", "", values="node,rank,tp,cp,pp,dp")),
    panels=(
        Panel("Open verdicts", "stat", f"select count(*) as verdicts from {OPEN}", width=6, height=4),
        Panel("Greatest cost now", "stat", f"select coalesce(max(wlb_real(v.cost_percent)), 0) as cost_percent from {OPEN}", "percent",
              6, 4),
        Panel("Verdicts", "stat", "select count(*) as verdicts from run_verdicts where $__timeFilter(found_at)", width=6, height=4),
        Panel("Evictions", "stat", "select count(*) as evictions from run_faults where evicted is not null and "
            "$__timeFilter(detected_at)", width=6, height=4),
        Panel("What is open", "table", f"select v.found_at, v.run, v.run_id, {VERDICT}, v.evidence from {OPEN} order by v.found_at desc "
              "limit 200", width=24),
        heat_map("Lateness", "late_s", "s", "How much later than the other members of its communicators a rank enters calls, in the mean; "
                 "the 40 that are latest. Ranks of other trainers than wlb-worker do not say it."),
        heat_map("Work", "share", "percentunit", "That was predicted for ranks in their steps, of the mean of all ranks; the 40 with "
            "most."),
        Panel("Calls of a step, by communicator", "trend", "select step, " + ", ".join(
            f"wlb_part(parts, '{part}_s') as {part}" for part in ("tp", "cp", "pp", "dp", "world")) + f" from wlb_sampled_steps({RUN}, "
              f"1000) "
              "where parts is not null order by step", "s", 24, says="The mean over ranks, with the wait for those that come later.",
              is_stacked=True),
        Panel("Verdicts of the run", "table", f"select v.found_at, {VERDICT}, v.over_at, v.evidence from run_verdicts v where "
              f"v.run_id = {RUN} order by v.found_at desc limit 200", width=12, height=9),
        Panel("Ranks of the newest attempt", "table", "select node, count(*) as ranks, string_agg(rank::text, ' ' order by rank) filter "
              "(where local_rank < 16) as first_ranks, (select count(*) from run_verdicts v where v.run_id = m.run_id and v.attempt = "
              f"m.attempt and v.state <> 'over' and m.node = any(v.nodes)) as open_verdicts from run_ranks m where m.run_id = {RUN} and "
              f"m.attempt = (select attempts from run_summary where run_id = {RUN}) group by m.run_id, m.attempt, m.node order by "
              "min(rank) limit 1000", width=12, height=9),
        Panel("Verdicts by kind", "timeseries", "select date_trunc('hour', found_at) as time, kind as metric, count(*) as verdicts from "
              "run_verdicts where $__timeFilter(found_at) group by 1, 2 order by 1 limit 2000", width=12, is_stacked=True),
        Panel("Nodes that verdicts name", "table", "select node, count(*) as verdicts, count(*) filter (where confirmed_at is not null) as "
              "confirmed, count(*) filter (where action = 'evict') as to_evict, count(distinct run_id) as runs, "
              "max(wlb_real(cost_percent)) as greatest_cost_percent, max(found_at) as last_at from run_verdicts, unnest(nodes) as node "
              "where $__timeFilter(found_at) group by node order by confirmed desc, verdicts desc, node limit 50", width=12),
        Panel("Cost by kind", "table", "select kind, count(*) as verdicts, avg(wlb_real(cost_percent)) as mean_cost_percent, "
              "max(wlb_real(cost_percent)) as greatest_cost_percent, avg(extract(epoch from lasted))::float8 as mean_s from run_verdicts "
              "where confirmed_at is not null and $__timeFilter(found_at) group by kind order by kind", width=12),
        Panel("Attempts ended to exclude a node", "table", "select detected_at, run, run_id, attempt, node, rank, kind, step, evicted "
              "as why "
              "from run_faults where evicted is not null and $__timeFilter(detected_at) order by detected_at desc limit 200", width=12)))
