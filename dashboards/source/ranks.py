"""Ranks: what was found from the timings of ranks, and the ranks of a run."""
from panels import RUN, RUN_LIST, Dashboard, Panel, Variable

OPEN = "run_verdicts v join run_summary r on r.run_id = v.run_id where v.state <> 'over' and r.state in ('starting', 'running', 'restarting')"
VERDICT = ("v.attempt, v.kind, v.state, array_to_string(v.ranks, ' ') as ranks, array_to_string(v.nodes, ' ') as nodes, "
           "wlb_real(v.cost_percent) as cost_percent, v.action, v.step")

BOARD = Dashboard(
    "wlb-ranks", "WLB ranks", "Ranks, links and nodes that hang, are slow or compute wrong values: what was found from their timings, "
    "and what it cost.",
    variables=(Variable("run", "Run", RUN_LIST),),
    panels=(
        Panel("Open verdicts", "stat", f"select count(*) as verdicts from {OPEN}", width=6, height=4),
        Panel("Greatest cost now", "stat", f"select coalesce(max(wlb_real(v.cost_percent)), 0) as cost_percent from {OPEN}", "percent", 6, 4),
        Panel("Verdicts", "stat", "select count(*) as verdicts from run_verdicts where $__timeFilter(found_at)", width=6, height=4),
        Panel("Evictions", "stat", "select count(*) as evictions from run_faults where evicted is not null and $__timeFilter(detected_at)", width=6, height=4),
        Panel("What is open", "table", f"select v.found_at, v.run, v.run_id, {VERDICT}, v.evidence from {OPEN} order by v.found_at desc "
              "limit 200", width=24),
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
        Panel("Attempts ended to exclude a node", "table", "select detected_at, run, run_id, attempt, node, rank, kind, step, evicted as why "
              "from run_faults where evicted is not null and $__timeFilter(detected_at) order by detected_at desc limit 200", width=12)))
