"""Run: one run, by step and by time."""
from panels import LAYOUT, RUN, RUN_LIST, Dashboard, Mark, Panel, Variable

STEPS = f"wlb_sampled_steps({RUN}, 1000)"
# The steps of the dashboard's time: 500 between the first and the last, each found by an index.
IN_TIME = (f"with ends as (select (select step from run_steps where run_id = {RUN} and recorded_at >= $__timeFrom() order by recorded_at "
           f"limit 1) as first, (select step from run_steps where run_id = {RUN} and recorded_at <= $__timeTo() order by recorded_at desc "
           "limit 1) as last), at as (select distinct first + (last - first) * n / 499 as step from ends, generate_series(0, 499) as n "
           "where last >= first), spaced as (select distinct on (s.step) s.* from at cross join lateral (select * from run_steps "
           f"where run_id = {RUN} and step >= at.step order by step limit 1) s order by s.step)")
# MFU was predicted for the predicted time of a step, so the measured one follows from the measured time.
PLANNED = f"{STEPS} s join run_attempts a on a.attempt_id = s.attempt_id"
PREDICTED_S = "wlb_part(a.plan, 'step_s')"
PREDICTED_MFU = "wlb_part(a.plan, 'utilization')"
PARTS = ("forward", "backward", "tp", "cp", "pp", "bubble", "dp", "optimizer", "loader", "world")
NEWEST = f"(select * from run_steps where run_id = {RUN} order by step desc limit 20) as s"


def stat(title, query, unit="short", says=""):
    return Panel(title, "stat", query, unit, 3, 4, says)


def of_run(column):
    return f"select {column} from run_summary where run_id = {RUN}"


def by_step(title, columns, unit="short", width=8, source=f"{STEPS} s", **more):
    return Panel(title, "trend", f"select s.step, {columns} from {source} order by s.step", unit, width, **more)


# The curve, and points for what happened at a step, at the height of its loss.
LOSS = (f"select step, max(loss) as loss, max(evaluation) as evaluation, max(fault) as fault, max(checkpoint) as checkpoint from ("
        f"select step, wlb_real(loss) as loss, null::float8 as evaluation, null::float8 as fault, null::float8 as checkpoint from {STEPS} "
        f"union all (select step, null, wlb_real(loss), null, null from run_evaluations where run_id = {RUN} order by step desc limit 400) "
        f"union all (select s.step, null, null, wlb_real(s.loss), null from (select * from run_faults where run_id = {RUN} and cause "
        "order by detected_at desc limit 200) f join run_steps s on s.run_id = f.run_id and s.step = f.step) "
        f"union all (select s.step, null, null, null, wlb_real(s.loss) from (select * from run_checkpoints where run_id = {RUN} "
        "order by step desc limit 200) c join run_steps s on s.run_id = c.run_id and s.step = c.step)) as p group by step order by step")

BOARD = Dashboard(
    "wlb-run", "WLB run", "One run: its loss, its speed, what it cost and what happened to it.",
    variables=(Variable("run", "Run", RUN_LIST),),
    marks=(
        Mark("Faults", "red", "select detected_at as time, concat(kind, ' on ' || node, ', rank ' || rank, ' at step ' || step, ': ' || "
             "detail) "
             f"as text, case when cause then 'cause' else 'consequence' end as tags from run_faults where run_id = {RUN} "
             "and $__timeFilter(detected_at) order by detected_at desc limit 300"),
        Mark("Attempts", "blue", "select created_at as time, concat('attempt ', attempt, ' on ', node_count, ' nodes, from step ', "
             "coalesce(resumed_step, 0), ', tp=' || tp || ' cp=' || cp || ' pp=' || pp || ' dp=' || dp) as text, state as tags "
             f"from run_attempts where run_id = {RUN} and $__timeFilter(created_at) order by created_at desc limit 300"),
        Mark("Checkpoints", "green", "select recorded_at as time, concat('step ', step, ' saved') as text, 'checkpoint' as tags from "
             f"run_checkpoints where run_id = {RUN} and $__timeFilter(recorded_at) order by recorded_at desc limit 300")),
    panels=(
        stat("State", of_run("state")),
        stat("Step", of_run("last_step as step")),
        stat("Loss", of_run("wlb_real(last_loss) as loss")),
        stat("Tokens/s, last 20 steps", "select wlb_rate(sum(tokens * span_steps) filter (where wlb_seconds(step_time_s) > 0), "
             f"sum(wlb_seconds(step_time_s) * span_steps)) as tokens_per_s from {NEWEST}"),
        stat("MFU, last 20 steps", f"select ({PREDICTED_MFU} * {PREDICTED_S} / nullif(avg(wlb_real(s.step_time_s)), 0)) as mfu from "
             f"{NEWEST} join run_attempts a on a.run_id = s.run_id and a.attempt = s.attempt group by s.attempt, a.plan "
             "order by s.attempt desc limit 1", "percentunit", "What the plan says a step computes, by the time that it took."),
        stat("Time left", "select case when r.state in ('starting', 'running', 'restarting') then greatest(r.train_iters - r.last_step, "
             "0) * "
             f"(select avg(wlb_real(step_time_s)) from {NEWEST}) end as left_s from run_summary r where r.run_id = {RUN}", "s",
             "The steps that are left, at the mean of the last 20; without faults to come."),
        stat("ETTR", f"select ettr::float8 from run_ettr where run_id = {RUN}", "percentunit"),
        stat("Attempts", of_run("attempts")),
        Panel("Loss over time", "timeseries", f"{IN_TIME} select recorded_at as time, wlb_real(loss) as loss from spaced "
              "order by recorded_at", width=12, height=9, says="Faults, attempts and checkpoints are marked at their times."),
        Panel("Loss by step", "trend", LOSS, width=12, height=9, points="evaluation|fault|checkpoint",
              says="The whole run, across attempts: the curve of a run that was restarted is that of one that was not."),
        Panel("Tokens per second over time", "timeseries", f"{IN_TIME} select recorded_at as time, wlb_real(tokens_per_s) as tokens_per_s "
              "from spaced order by recorded_at"),
        by_step("Tokens per second", "wlb_real(s.tokens_per_s) as tokens_per_s"),
        by_step("MFU", f"{PREDICTED_MFU} as predicted, {PREDICTED_MFU} * {PREDICTED_S} / nullif(wlb_real(s.step_time_s), 0) as measured",
                "percentunit", source=PLANNED),
        by_step("Time of a step", f"{PREDICTED_S} as predicted, wlb_real(s.step_time_s) as measured", "s", source=PLANNED,
                says="As the plan of its attempt predicted it, and as it was."),
        by_step("Where the time of a step went", ", ".join(f"wlb_part(s.parts, '{part}_s') as {part}" for part in PARTS), "s", 16,
                f"{STEPS} s where s.parts is not null", is_stacked=True),
        by_step("Imbalance of ranks", "wlb_real(s.predicted_imbalance) as predicted, wlb_real(s.imbalance) as measured",
                says="Heaviest rank by the mean of ranks: of predicted work, and of the seconds computed."),
        by_step("Gradient norm", "wlb_real(s.grad_norm) as grad_norm", is_log=True),
        by_step("Learning rate", "wlb_real(s.learning_rate) as learning_rate", "sci"),
        Panel("Memory of a rank", "barchart", "select 'attempt ' || attempt as attempt, wlb_part(plan, 'memory_bytes') - "
              "coalesce(wlb_part(plan, 'memory_margin_bytes'), 0) as predicted, memory_bytes as measured from run_attempts where "
              f"run_id = {RUN} and (memory_bytes is not null or plan ? 'memory_bytes') order by run_attempts.attempt desc limit 20",
              "bytes", says="The most that a rank has allocated on its device."),
        Panel("Time lost", "barchart", "select cause, seconds::float8 as seconds from run_time_lost where "
              f"run_id = {RUN} and seconds > 0 order by seconds desc, cause", "s", 8),
        Panel("Evaluations", "trend", f"select step, wlb_real(loss) as loss from (select * from run_evaluations where run_id = {RUN} "
              "order by step desc limit 1000) e order by step"),
        Panel("Faults", "table", "select attempt, detected_at, kind, node, rank, step, cause, detail from run_faults where "
              f"run_id = {RUN} order by detected_at desc limit 500", width=24, height=7),
        Panel("Attempts of the run", "table", "select attempt, state, array_to_string(nodes, ' ') as nodes, world_size as ranks, "
              f"{LAYOUT}, resumed_step, first_step, last_step, new_steps, exit_code, started_at, ended_at, reason from run_attempts "
              f"where run_id = {RUN} order by attempt desc limit 200", width=24, height=7),
        Panel("Checkpoints", "table", "select attempt, step, path, size_bytes, duration_s, stall_s, recorded_at as saved_at from "
              "run_checkpoints "
              f"where run_id = {RUN} order by recorded_at desc limit 500", width=12, height=7),
        Panel("Events", "table", "select recorded_at as happened_at, attempt, kind, detail from run_events where "
              f"run_id = {RUN} order by recorded_at desc limit 200", width=12, height=7),
        Panel("Values that the trainer says", "table", "select name, value, step, is_of_attempt as \"counted from the attempt's start\", "
              f"attempt, source from json_to_recordset(wlb_followed_json({RUN})) as said (name text, value double precision, step bigint, "
              "is_of_attempt boolean, attempt integer, source text)", width=24)))
