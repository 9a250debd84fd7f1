"""Compare: several runs in one picture."""
from panels import LAYOUT, RUN_LIST, RUNS, Dashboard, Panel, Variable

CHOSEN = f"chosen as (select * from run_summary where run_id = any({RUNS}))"
NAME = "concat(run, ' ', job_name)"
# 240 steps of each run. Tokens up to a step are those of the steps between two points at the later point's, scaled to the run's sum.
POINTS = (f"with {CHOSEN}, p as (select c.run, c.job_name, c.tokens as all_tokens, s.*, sum(s.tokens * (s.step - coalesce(lag_step, "
          "s.step - s.span_steps))) over (partition by c.run_id order by s.step) as so_far from chosen c cross join lateral (select *, "
          "lag(step) over (order by step) as lag_step from wlb_sampled_steps(c.run_id, 240)) s), x as (select *, case when "
          "${x:sqlstring} = 'tokens' then so_far * all_tokens / nullif(last_value(so_far) over (partition by run_id order by step rows "
          "between unbounded preceding and unbounded following), 0) else step end::float8 as x from p)")


def overlaid(title, value, unit="short", **more):
    return Panel(title, "trend", f"{POINTS} select x, {NAME} as name, {value} as value from x where x is not null and {value} is not null "
                 "order by x", unit, 12, 9, is_long=True, **more)


BOARD = Dashboard(
    "wlb-compare", "WLB compare", "Several runs over each other, eight at most.",
    variables=(Variable("runs", "Runs", RUN_LIST, is_multi=True), Variable("x", "By", "", values="step,tokens")),
    panels=(
        overlaid("Loss", "wlb_real(loss)", says="By steps, or by tokens: then runs with other batches are compared after as much data. "
                 "Between two of a run's 240 points its steps count as equal; a run whose tokens nobody has said has no line then."),
        overlaid("Tokens per second", "wlb_real(tokens_per_s)"),
        overlaid("Time of a step", "wlb_real(step_time_s)", "s"),
        overlaid("Gradient norm", "wlb_real(grad_norm)", is_log=True),
        Panel("Time lost, of the time held", "barchart", f"with {CHOSEN} select l.cause as x, {NAME.replace('run,', 'c.run,')} as name, "
              "l.share::float8 as value from chosen c join lateral (select * from run_time_lost t where t.run_id = c.run_id) l on true "
              "where l.seconds > 0 order by l.cause", "percentunit", 12, is_long=True),
        Panel("Runs", "table", f"with {CHOSEN} select c.run, c.run_id, c.job_name, c.user_name, c.state, c.node_count as nodes, "
              f"c.world_size as "
              f"ranks, {LAYOUT}, c.last_step as step, c.tokens::float8 as tokens, wlb_real(c.last_loss) as loss, c.tokens_per_s, "
              "t.ettr::float8 as ettr, c.attempts, c.faults, c.started_at, c.ended_at from chosen c join lateral (select * from run_ettr e "
              "where e.run_id = c.run_id) t on true order by c.run_id", width=12)))
