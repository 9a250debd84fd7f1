"""Fleet: all runs of the cluster, and what their time went to."""
from panels import LAYOUT, PARTS, WENT_ON, Dashboard, Panel, Variable

# An empty text stands for all.
CHOSEN = ("('' in (${user:sqlstring}) or user_name in (${user:sqlstring})) and "
          "('' in (${account:sqlstring}) or account in (${account:sqlstring})) and "
          "('' in (${job:sqlstring}) or job_name in (${job:sqlstring}))")
# Where Slurm knows no GPUs a rank counts as one, or a node of a trainer whose ranks nobody has recorded, as torchrun's.
FLEET = (f"fleet as (select *, coalesce(gpu_count, world_size, node_count, 0) as gpus from run_summary where {WENT_ON} and "
         f"{CHOSEN} order by run_id desc limit %d)")
# The newest runs of the time with their seconds.
TIMED = (f"{FLEET % 200}, timed as (select f.*, t.held_s, t.effective_s, t.held_s * f.gpus as held, "
         "case when t.ettr is not null then t.held_s * f.gpus end as known, t.effective_s * f.gpus as effective "
         "from fleet f join lateral (select * from run_ettr e where e.run_id = f.run_id) t on true)")
ETTR = "(sum(effective) / nullif(sum(known), 0))::float8 as ettr"
BY = (f"with {TIMED} select %s, count(*) as runs, count(*) filter (where state = 'failed' or state = 'out_of_nodes') as failed, "
      f"(sum(held) / 3600)::float8 as gpu_h, {ETTR}, sum(tokens)::float8 as tokens, "
      "wlb_rate(sum(tokens), sum(held_s)) as goodput_tokens_per_s, sum(faults)::bigint as faults "
      "from timed group by 1 order by gpu_h desc limit 100")
# Failures are faults that broke an attempt and name a node.
FAILURES = ("failures as (select f.detected_at from run_faults f join run_summary using (run_id) where cause and node is not null "
            f"and $__timeFilter(detected_at) and {CHOSEN})")
NODE_TIME = (f"{PARTS}, used as (select node_count, created_at, coalesce(ended_at, now()) as ended_at from run_attempts where "
             "created_at <= $__timeTo() and (ended_at is null or ended_at >= $__timeFrom()) and run_id in "
             f"(select run_id from run_summary where {WENT_ON} and {CHOSEN})), "
             "days as (select p.began, p.ended, sum(u.node_count * greatest(extract(epoch from least(u.ended_at, p.ended, now()) "
             "- greatest(u.created_at, p.began)), 0) / 86400) as node_days from parts p left join used u on u.created_at < p.ended "
             "and u.ended_at > p.began group by 1, 2)")
# Tokens of the steps that count, at the mean of the run: what a run had done at each edge is found by the index of its times.
GOODPUT = (f"with {PARTS}, {FLEET % 50}, known as (select f.*, e.step as first_step from fleet f cross join lateral (select step "
           "from run_steps s where s.run_id = f.run_id order by s.run_id, s.step limit 1) e), "
           "done as (select k.run_id, k.tokens / nullif(k.last_step - k.first_step + 1, 0) as step_tokens, p.ended, p.width_s, "
           "greatest(s.step, k.first_step - 1) as step, lag(greatest(s.step, k.first_step - 1)) over (partition by k.run_id "
           "order by p.ended) as before from known k cross join (select * from parts union all select began, began, width_s from "
           "parts where began = $__timeFrom()::timestamptz) p left join lateral (select step from run_steps s where "
           "s.run_id = k.run_id and s.recorded_at <= p.ended order by s.run_id desc, s.recorded_at desc limit 1) s on true) "
           "select ended as time, (sum((step - before) * step_tokens / width_s))::float8 as tokens_per_s from done "
           "where before is not null and ended <= now() group by 1 order by 1")

BOARD = Dashboard(
    "wlb-fleet", "WLB fleet", "Every run of the cluster: what runs, what broke, what it cost, and whose it was.",
    variables=(
        Variable("user", "User", "select distinct user_name from (select user_name from run_summary order by run_id desc limit 2000) u "
                 "order by 1 limit 500", is_multi=True, has_all=True),
        Variable("account", "Account", "select distinct account from (select account from run_summary order by run_id desc limit 2000) a "
                 "where account is not null order by 1 limit 500", is_multi=True, has_all=True),
        Variable("job", "Job name", "select distinct job_name from (select job_name from run_summary order by run_id desc limit 2000) j "
                 "order by 1 limit 500", is_multi=True, has_all=True)),
    panels=(
        Panel("Running now", "stat", f"select count(*) as runs from run_summary where state in ('starting', 'running', 'restarting') "
              f"and {CHOSEN}", width=4, height=4),
        Panel("Tokens of the runs in this time", "stat", f"select coalesce(sum(tokens), 0)::float8 as tokens from run_summary where "
              f"{WENT_ON} "
              f"and {CHOSEN}", width=4, height=4),
        Panel("ETTR", "stat", f"with {TIMED} select {ETTR} from timed", "percentunit", 4, 4,
              "Effective training time ratio of the newest 200 runs of this time, by GPU hours."),
        Panel("GPU hours held", "stat", f"with {TIMED} select (sum(held) / 3600)::float8 as gpu_h from timed", "h", 4, 4,
              "Of the newest 200 runs of this time, from their begin to their end. GPUs are those of the job's allocation; a job for "
              "which Slurm has none counts a rank as a GPU, or a node where ranks are not recorded."),
        Panel("Mean time to recovery", "stat", "select avg(recovery_s)::float8 as recovery_s from run_recoveries join run_summary "
              f"using (run_id) where $__timeFilter(detected_at) and {CHOSEN}", "s", 4, 4,
              "From the record of a fault that broke an attempt to the end of the first step after it."),
        Panel("Failures per node-day", "stat", f"with {FAILURES}, {NODE_TIME} select ((select count(*) from failures) / "
              "nullif((select sum(node_days) from days), 0))::float8 as failures_per_node_day", "short", 4, 4,
              "Faults that broke an attempt and name a node, by the days that nodes worked for runs."),
        Panel("Goodput", "timeseries", GOODPUT, "short", 12, 8, "Tokens per second of the steps that count, all of the newest 50 runs "
              "together: a step that was repeated counts once, at its run's mean tokens of a step."),
        Panel("ETTR by the end of runs", "timeseries", f"with {PARTS}, {TIMED} select p.began as time, {ETTR} from parts p join timed t on "
              "least(coalesce(t.ended_at, now()), now()) >= p.began and least(coalesce(t.ended_at, now()), now()) < p.ended "
              "group by 1 having sum(known) > 0 order by 1", "percentunit", 12, 8,
              "Of the runs that ended in each part of the time, those that go on in the newest."),
        Panel("GPU hours lost, by cause", "barchart", f"with {FLEET % 200} select l.cause, (sum(l.seconds * f.gpus) / 3600)::float8 as "
              "gpu_h from fleet f join lateral (select * from run_time_lost t where t.run_id = f.run_id) l on true "
              "group by 1 having sum(l.seconds * f.gpus) > 0 order by 2 desc", "h", 12),
        Panel("Failures per node-day, over time", "timeseries", f"with {FAILURES}, {NODE_TIME} select d.began as time, "
              f"(count(f.detected_at) / "
              "d.node_days)::float8 as failures_per_node_day from days d left join failures f on f.detected_at >= d.began and "
              "f.detected_at < d.ended where d.node_days > 0 group by d.began, d.node_days order by 1", "short", 12),
        Panel("By user", "table", BY % "user_name", width=12),
        Panel("By account", "table", BY % "account", width=12, says="The project to which Slurm charges the job."),
        Panel("By job name", "table", BY % "job_name", width=12),
        Panel("Runs by state", "barchart", f"select state, count(*) as runs from run_summary where {WENT_ON} and {CHOSEN} "
              "group by state order by state", width=12),
        Panel("Recoveries", "table", "select detected_at, run, run_id, attempt, kind, node, recovered_at, recovery_s from run_recoveries "
              f"join run_summary using (run_id, run) where $__timeFilter(detected_at) and {CHOSEN} order by detected_at desc limit 200",
              width=24, says="Faults that broke an attempt. An empty time: the run has not trained since."),
        Panel("Runs", "table", f"select run, run_id, job_name, user_name, account, state, node_count as nodes, gpu_count as gpus, "
              f"world_size as ranks, {LAYOUT}, last_step as step, train_iters as of_steps, wlb_real(last_loss) as loss, tokens_per_s, "
              f"attempts, faults, started_at, ended_at, reason from run_summary where {WENT_ON} and {CHOSEN} order by run_id desc limit 500", width=24, height=12,
              says="Each row opens its run.")))
