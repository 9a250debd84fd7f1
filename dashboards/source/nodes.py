"""Nodes: what is held against them, and what their checks found."""
from panels import PARTS, Dashboard, Panel, Variable

CHOSEN = "('' in (${node:sqlstring}) or node in (${node:sqlstring}))"
LOSS = f"kind = 'node_lost' and is_seen and $__timeFilter(detected_at) and {CHOSEN}"
CHECKS = "select node, checked_at, made_by, \"check\", verdict, measured, \"limit\" from node_check_results where $__timeFilter(checked_at)"

BOARD = Dashboard(
    "wlb-nodes", "WLB nodes", "Nodes that were lost, broke runs, failed a check or were drained.",
    variables=(Variable("node", "Node", "select node from node_faults where node is not null union select node from "
                       "node_check_results union select node from node_drains order by node limit 2000", is_multi=True, has_all=True),),
    panels=(
        Panel("Nodes avoided by runs", "stat", "select count(*) as nodes from (select node from node_evidence group by node having "
              "sum(weight) >= wlb_node_weight_to_avoid()) as avoided", width=6, height=4),
        Panel("Losses of nodes", "stat", f"select count(*) as losses from run_faults where {LOSS}", width=6, height=4,
              says="That wlbd has seen itself."),
        Panel("Checks that failed", "stat", "select count(*) as checks from node_check_results where verdict = 'failed' and "
              f"$__timeFilter(checked_at) and {CHOSEN}", width=6, height=4),
        Panel("GPUs with Xid errors", "stat", "select count(distinct (node, \"check\")) as gpus from node_check_results where verdict = "
              "'failed' "
              f"and \"check\" like 'xid%' and $__timeFilter(checked_at) and {CHOSEN}", width=6, height=4),
        Panel("Evidence against nodes", "table", "select node, sum(weight) >= wlb_node_weight_to_avoid() as \"avoided by runs\", "
              "round(sum(weight)::numeric, 2)::float8 as weight, count(*) filter (where kind = 'loss') as \"losses in runs\", "
              "count(*) filter (where kind = 'check') as \"failed checks\", max(reason) as reason, max(at) as last_at from node_evidence "
              f"where {CHOSEN} group by node order by weight desc, node limit 200", width=12,
              says="Losses and failed checks of 30 days; half of a weight is left after 3 days."),
        Panel("Nodes that broke runs", "table", "select node, count(*) filter (where cause) as causes, count(*) as faults, "
              "count(distinct run_id) as runs, max(detected_at) as last_at from run_faults where node is not null and is_seen and "
              f"$__timeFilter(detected_at) and {CHOSEN} group by node order by causes desc, faults desc, node limit 200", width=12),
        Panel("Losses of nodes, over time", "timeseries", f"with {PARTS} select p.began as time, l.node as metric, count(*) as losses "
              f"from parts p "
              f"join (select * from run_faults where {LOSS} order by detected_at desc limit 1000) l on "
              "l.detected_at >= p.began and l.detected_at < p.ended group by 1, 2 order by 1", width=12, is_stacked=True),
        Panel("Faults by kind, over time", "timeseries", f"with {PARTS} select p.began as time, f.kind as metric, count(*) as faults "
              f"from parts p "
              f"join run_faults f on f.detected_at >= p.began and f.detected_at < p.ended where $__timeFilter(f.detected_at) and {CHOSEN} "
              "group by 1, 2 order by 1", width=12, is_stacked=True),
        Panel("What failed and has not been ok since", "table", f"select node, kind, at as failed_at from node_findings where {CHOSEN} "
              "order by at desc limit 500", width=8, says="Checks of root and SlurmUser, which count for all runs."),
        Panel("Xid errors", "table", f"{CHECKS} and \"check\" like 'xid%' and verdict <> 'ok' and {CHOSEN} order by checked_at desc "
            f"limit 200",
              width=16, says="Of NVIDIA's driver, as wlb check-node has found them."),
        Panel("Drains", "table", "select node, began_at, ended_at, extract(epoch from coalesce(ended_at, now()) - began_at)::float8 as "
              "drained_s, reason from node_drains where began_at <= $__timeTo() and (ended_at is null or ended_at >= $__timeFrom()) and "
              f"{CHOSEN} order by ended_at is null desc, began_at desc limit 500", width=24,
              says="By Slurm, as wlbd has seen it. An empty end: the node is drained."),
        Panel("Results of checks", "table", f"{CHECKS} and {CHOSEN} order by checked_at desc, node, \"check\" limit 500", width=24,
              height=10)))
