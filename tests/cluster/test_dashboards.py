#!/usr/bin/env python3
"""Every query of the Grafana dashboards and alert rules, run as Grafana runs it on the database of a real run that lost a rank."""
import datetime
import json
import os
import re
import signal
import unittest
import urllib.request

import dashboard_queries
import harness
import training

# Panels that a complete run with a fault must fill; the others may be empty.
FILLED = {
    "fleet": {"Running now", "ETTR", "GPU hours held", "Tokens of the runs in this time", "Mean time to recovery", "GPU hours lost, by cause",
              "By user", "By account", "By job name", "Recoveries", "Runs by state", "Runs", "variable user",
              "variable account", "variable job"},
    "run": {"State", "Step", "Loss", "Tokens/s, last 20 steps", "MFU, last 20 steps", "ETTR", "Attempts", "Loss over time", "Loss by step",
            "Tokens per second over time", "Tokens per second", "MFU", "Time of a step", "Where the time of a step went", "Imbalance of ranks",
            "Gradient norm", "Learning rate", "Memory of a rank", "Time lost", "Evaluations", "Attempts of the run", "Checkpoints", "Events",
            "variable run", "Faults", "mark Faults", "mark Attempts", "mark Checkpoints"},
    "compare": {"Loss", "Tokens per second", "Time of a step", "Gradient norm", "Time lost, of the time held", "Runs", "variable runs"},
    "ranks": {"Verdicts", "Evictions", "Verdicts of the run", "Verdicts by kind", "Ranks of the newest attempt", "Nodes that verdicts name",
              "Cost by kind", "Attempts ended to exclude a node", "variable run"},
    "nodes": {"Checks that failed", "Evidence against nodes", "Nodes that broke runs", "Results of checks",
              "What failed and has not been ok since", "GPUs with Xid errors", "Xid errors", "Drains", "variable node"},
}


def make_grafana(cluster):
    """The role, as dashboards/README.md says."""
    cluster.run("wlb", "db", "reader", "grafana")


def seconds_from_now(seconds):
    """A time as Grafana writes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).isoformat()


class Dashboards(training.TrainingTest):
    def add_verdict(self, run_id):
        """One of the run's first attempt, which it ended; and an evaluation."""
        self.cluster.sql(f"""
            insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, cost_percent,
                certainty, evidence, action, began_at, found_at, confirmed_at)
            select run_id, id, 1, 1, 'hang', 'confirmed', '{{5}}', 1, '{{n3}}', 100, 1, 'rank 5 waits', 'evict', now(), now(),
                now() from attempts where run_id = {run_id} and number = 1;
            update faults set proof = coalesce(proof, '{{}}') || '{{"evicted": "rank 5 hung"}}'
            where run_id = {run_id} and cause;
            insert into evaluations (run_id, step, attempt_id, loss, tokens, duration_s, recorded_at)
            select {run_id}, 12, id, 5.5, 1000, 0.1, now() from attempts where run_id = {run_id} and number = 1""")

    def add_failed_check(self):
        """And a drain."""
        self.cluster.sql("select wlb_nodes_drained('{\"n4\": {\"reason\": \"fan\", \"at\": 0}}')")
        found = json.dumps([{"check": "xid 0000:3b:00", "verdict": "failed", "measured": "79", "limit": None}])
        self.cluster.sql(f"select wlb_node_check_put('n4', false, 'xid 0000:3b:00: 79', '{found}', false, 0)")

    def check_filled(self, query):
        """A table has a row, a chart a value in each column."""
        self.assertTrue(query.rows, query.sql)
        if query.kind != "table":
            for at, (name, _) in enumerate(query.columns):
                self.assertTrue(any(row[at] != "" for row in query.rows), f"{name} of {query.sql}")

    def test_every_query(self):
        job = self.submit("--account=physics")
        self.wait_step(job, training.SAVE_INTERVAL + 2)
        os.kill(self.rank_pid(5), signal.SIGKILL)
        run = self.finish(job)
        self.add_verdict(run["id"])
        self.add_failed_check()
        make_grafana(self.cluster)
        problems, asked = dashboard_queries.check(self.cluster, run["id"], "grafana", by="tokens")
        self.assertEqual(problems, [])
        for board, titles in FILLED.items():
            for title in titles:
                with self.subTest(dashboard=board, panel=title):
                    self.check_filled(asked[board, title])
        nothing = dashboard_queries.ask(self.cluster, list(asked.values()), "grafana")
        self.assertEqual(dashboard_queries.problems(nothing), [], "of a dashboard for which no run is chosen")


class AlertCases:
    """Each rule has an instance that fires for what it is about, and none for what is well."""

    def fires(self, uid):
        """The labels of the instances that fire."""
        query, = [query for query in dashboard_queries.alerts() if query.title == uid]
        dashboard_queries.ask(self.cluster, [query])
        self.assertEqual(dashboard_queries.problems([query]), [])
        at, = (at for at, (_, kind) in enumerate(query.columns) if kind in dashboard_queries.NUMBERS)
        evaluator = query.unit
        is_met = {"gt": lambda x: x > evaluator["params"][0], "lt": lambda x: x < evaluator["params"][0]}[evaluator["type"]]
        return sorted(row[0] for row in query.rows if is_met(float(row[at])))

    def add_run(self, name, state, steps_ago=(), step_s=1, ended_ago_s="null"):
        """A run of an hour, whose steps were recorded so many seconds ago; returns its id."""
        run = self.cluster.sql(f"""
            insert into runs (name, job_id, uid, user_name, state, created_at, started_at, ended_at, steps, last_step)
            values ('{name}', 1, 0, 'root', '{state}', now() - interval '1 h', now() - interval '1 h', now() - {ended_ago_s} * interval '1 s',
                {len(steps_ago)}, {len(steps_ago) or "null"}) returning id""")[0][0]
        self.cluster.sql(f"""
            insert into attempts (run_id, number, uuid, state, world_size, started_at, created_at)
            values ({run}, 1, gen_random_uuid(), 'running', 2, now() - interval '1 h', now() - interval '1 h')""")
        for step, ago_s in enumerate(steps_ago, 1):
            self.cluster.sql(f"""insert into steps (run_id, step, attempt_id, step_time_s, recorded_at)
                select {run}, {step}, id, {step_s}, now() - interval '{ago_s} s' from attempts where run_id = {run}""")
        return run

    def test_a_run_that_failed(self):
        for name, state, ended_ago_s in ("bad", "failed", 60), ("old", "failed", 7200), ("out", "out_of_nodes", 60), ("good", "complete", 60):
            self.add_run(name, state, ended_ago_s=ended_ago_s)
        self.assertEqual(self.fires("wlb-run-failed"), ["bad", "out"])

    def test_a_run_that_stalls(self):
        self.add_run("stalls", "running", (702, 701), 1)
        self.add_run("is_slow", "running", (900, 700), 200)
        self.add_run("steps", "running", (20, 10), 1)
        self.add_run("is_over", "complete", (702, 701), 1, 600)
        saves = self.add_run("saves", "running", (702, 701), 1)
        self.cluster.sql("insert into checkpoints (run_id, attempt_id, step, path, recorded_at) "
                         f"select {saves}, id, 2, '/ck', now() from attempts where run_id = {saves}")
        self.assertEqual(self.fires("wlb-run-stalls"), ["stalls"])

    def test_a_node_that_is_lost_repeatedly(self):
        run = self.add_run("r", "running")
        for node, ago_s, proof in (("n1", 60, "seen"), ("n1", 600, "seen"), ("n2", 60, "seen"), ("n3", 60, "x"), ("n3", 600, "x"),
                                   ("n4", 60, "seen"), ("n4", 100000, "seen")):
            self.cluster.sql(f"""
                insert into attempts (run_id, number, uuid) select {run}, max(number) + 1, gen_random_uuid() from attempts;
                insert into faults (run_id, attempt_id, kind, is_loss, node, proof, detected_at)
                select {run}, max(id), 'node_lost', true, '{node}', '{{"{proof}": true}}', now() - interval '{ago_s} s' from attempts""")
        self.assertEqual(self.fires("wlb-node-lost"), ["n1"])

    def test_a_verdict_that_is_open(self):
        run = self.add_run("r", "running")
        for number, (kind, state, cost) in enumerate((("hang", "confirmed", "null"), ("slow_node", "confirmed", 20), ("slow_link", "confirmed", 2),
                                                      ("slow_nic", "suspected", 50), ("slow_loader", "over", 50)), 1):
            self.cluster.sql(f"""
                insert into verdicts (run_id, attempt_id, watcher, number, kind, state, cost_percent, certainty, evidence, action, began_at, found_at)
                select {run}, id, 1, {number}, '{kind}', '{state}', {cost}, 1, '', 'report', now(), now() from attempts where run_id = {run}""")
        query, = [query for query in dashboard_queries.alerts() if query.title == "wlb-verdict-open"]
        self.assertEqual(self.fires("wlb-verdict-open"), ["r", "r"])
        kinds = {row[1] for row in dashboard_queries.ask(self.cluster, [query])[0].rows}
        self.assertEqual(kinds, {"hang", "slow_node", "slow_link"})

    def test_the_ettr_of_the_fleet(self):
        self.assertEqual(self.fires("wlb-ettr-low"), [], "no run")
        self.add_run("idle", "running", (3000,), 1)
        self.assertEqual(len(self.fires("wlb-ettr-low")), 1)


class Rows(AlertCases, harness.ClusterTest):
    """What a panel has of rows that the test inserts, of the last hour. The range ends before the query is sent."""

    nodes = 1

    def setUp(self):
        self.addCleanup(self.cluster.sql, "delete from runs")

    def run_row(self, name, started_s, ended_s=None, tokens=0):
        """A run that began and ended that many seconds from now; returns its id. None: it has no such time."""
        started, ended = (f"now() + '{s} s'" if s is not None else "null" for s in (started_s, ended_s))
        rows = self.cluster.sql(f"""insert into runs (name, job_id, uid, user_name, state, started_at, ended_at, tokens)
            values ('{name}', 1, 0, 'root', '{"complete" if ended_s else "running"}', {started}, {ended}, {tokens})
            returning id""")
        return int(rows[0][0])

    def panel(self, title, begin_s=-3600, end_s=-1, board="fleet", **chosen):
        """Its rows."""
        query, = [query for query in dashboard_queries.queries(board) if query.title == title]
        dashboard_queries.ask(self.cluster, [query], begin=seconds_from_now(begin_s), end=seconds_from_now(end_s), **chosen)
        self.assertEqual(dashboard_queries.problems([query]), [])
        return query.rows

    def test_runs_of_the_time(self):
        """Those that went on for a part of it."""
        for name, times in {"goes_on": (-7200, None), "waits": (None, None), "within": (-1800, -900), "across": (-7200, -900),
                            "before": (-9000, -7200), "later": (60, None)}.items():
            self.run_row(name, *times)
        self.assertEqual(sorted(row[0] for row in self.panel("Runs")), ["across", "goes_on", "waits", "within"])

    def test_tokens_of_the_runs_of_the_time(self):
        self.run_row("across", -7200, -900, tokens=5)
        self.run_row("goes_on", -1800, tokens=8)
        self.run_row("before", -9000, -7200, tokens=100)
        self.assertEqual(self.panel("Tokens of the runs in this time"), [["13"]])

    def test_gpu_hours_of_accounts(self):
        """A job's GPUs count, and its ranks where Slurm knows of no GPUs."""
        for account, gpus in (("art", "null"), ("physics", 16)):
            run = self.run_row(account, -1800, -900)
            self.cluster.sql(f"""update runs set account = '{account}', gpu_count = {gpus} where id = {run};
                insert into attempts (run_id, number, uuid, state, world_size, created_at, started_at, ended_at)
                select id, 1, gen_random_uuid(), 'complete', 2, started_at, started_at, ended_at from runs where id = {run}""")
        (first, *_, held), (second, *_, by_ranks) = (row[:4] for row in self.panel("By account"))
        self.assertEqual((first, second), ("physics", "art"))
        self.assertAlmostEqual(float(held), 16 * 900 / 3600, places=3)
        self.assertAlmostEqual(float(by_ranks), 2 * 900 / 3600, places=3)
        self.assertEqual([row[0] for row in self.panel("By account", account=["art"])], ["art"])

    def test_faults_of_nodes_in_the_time(self):
        """The loss of n2 was reported by the job's user, and nobody else has seen it."""
        run = self.run_row("with_faults", -7200)
        attempt = self.cluster.sql("insert into attempts (run_id, number, uuid) "
                                   f"values ({run}, 1, gen_random_uuid()) returning id")[0][0]
        for node, kind, rank, detected_s, cause, proof in (("n1", "node_lost", "null", -600, "true", '{"seen": true}'),
                                                           ("n1", "rank_lost", 3, -500, "false", "{}"),
                                                           ("n1", "rank_lost", 4, 500, "false", "{}"),
                                                           ("n1", "rank_lost", 5, -5000, "false", "{}"),
                                                           ("n2", "node_lost", "null", -600, "false", "{}"),
                                                           ("n3", "rank_lost", 6, 500, "false", "{}")):
            self.cluster.sql(f"""insert into faults (run_id, attempt_id, kind, is_loss, rank, node, cause, proof, detected_at)
                values ({run}, {attempt}, '{kind}', true, {rank}, '{node}', {cause}, '{proof}', now() + '{detected_s} s')""")
        rows = self.panel("Nodes that broke runs", board="nodes")
        self.assertEqual([row[:4] for row in rows], [["n1", "1", "2", "1"]])

    def test_a_run_whose_trainer_is_followed(self):
        """Its steps are those of wlb-worker's panels, and each value has its source."""
        run = self.run_row("followed", -1800)
        attempt = self.cluster.sql("insert into attempts (run_id, number, uuid, launched) "
                                   f"values ({run}, 1, gen_random_uuid(), true) returning id")[0][0]
        said = [(1, "hook", False, {"loss": 4, "tokens": 1000}, {}),
                (3, "hook", False, {"loss": 2, "tokens": 1000, "acc": "nan"}, {"span": 2, "interval_s": 5}),
                (3, "stdout", False, {"loss": 2.5}, {}), (9, "hook", True, {"only_of_the_attempt": 1}, {})]
        body = {"first_seq": 1, "records": [
            {"seq": seq, "time": 1790000000 + seq, "type": "followed", "data": {
                "step": step, "is_of_attempt": is_of_attempt, "is_step": not is_of_attempt, "source": source, "stream": 0, "generation": 0,
                "at": seq, "values": values, **more}} for seq, (step, source, is_of_attempt, values, more) in enumerate(said, 1)]}
        self.cluster.sql(f"select wlb_deliver({attempt}, 'run', '{json.dumps(body)}', '{{}}')")
        found = {title: self.panel(title, board="run", run=[run]) for title in ("Step", "Loss by step", "Values that the trainer says")}
        self.assertEqual(found["Step"], [["3"]])
        self.assertEqual([(row[0], row[1]) for row in found["Loss by step"]], [("1", "4"), ("3", "2.5")])
        self.assertEqual(found["Values that the trainer says"],
                         [["acc", "NaN", "3", "f", "1", "hook"], ["loss", "2.5", "3", "f", "1", "stdout"],
                          ["only_of_the_attempt", "1", "9", "t", "1", "hook"], ["tokens", "1000", "3", "f", "1", "hook"]])
        self.assertEqual(self.panel("Tokens/s, last 20 steps", board="run", run=[run]), [["400"]])  # of the steps with a time
        self.assertEqual([row[10:13:2] for row in self.panel("Runs")], [["3", "2.5"]])

    def long_run(self, steps):
        """A run with many steps, faults and checkpoints, whose later half has three times as many tokens; returns its id."""
        run = self.run_row("long", -1800)
        self.cluster.sql(f"""
            insert into attempts (run_id, number, uuid, plan) values ({run}, 1, gen_random_uuid(), '{{"step_s": 1, "utilization": 0.4}}');
            insert into steps (run_id, step, attempt_id, tokens, loss, step_time_s, recorded_at)
            select {run}, step, id, case when step > {steps} / 2 then 3 else 1 end, 2, 1, now() - '1 s'::interval * ({steps} - step) / 100 from attempts, generate_series(1, {steps}) as step
            where run_id = {run};
            insert into checkpoints (run_id, attempt_id, step, path, recorded_at)
            select {run}, id, step, '/ck', now() from attempts, generate_series(1, 5000) as step where run_id = {run};
            insert into faults (run_id, attempt_id, kind, rank, node, step, detected_at)
            select {run}, id, 'hang', step, 'n' || step, step, now() from attempts, generate_series(1, 5000) as step where run_id = {run};
            update runs set steps = {steps}, first_step = 1, last_step = {steps}, tokens = 2 * {steps} where id = {run};
            analyze steps, faults, checkpoints""")
        return run

    def test_no_query_reads_every_step(self):
        """Nor returns more than 2,000 rows: each is asked again every minute."""
        run = self.long_run(100000)
        problems, asked = dashboard_queries.check(self.cluster, run)
        self.assertEqual(problems, [])
        points = asked["run", "Loss by step"]
        self.assertGreater(len(points.rows), 900)
        for query in asked.values():
            sql = dashboard_queries.expand(query.sql, {"run": [run], "runs": [run]}, seconds_from_now(-3600), seconds_from_now(-1))
            plan = self.cluster.sql("explain " + sql)
            with self.subTest(dashboard=query.board, panel=query.title):
                self.assertFalse([row for row in plan if " on steps" in row[0] and "Index" not in row[0]], plan)

        rows = self.panel("Loss", board="compare", runs=[run], x=["tokens"])
        self.assertEqual((len(rows), float(rows[-1][0])), (240, 200000))
        self.assertAlmostEqual(float(rows[len(rows) // 2][0]), 50000, delta=1500)  # two points are 418 steps apart

    def test_names_are_no_statements(self):
        """Names of users, jobs and nodes are any bytes: each is a value of its variable, and finds its own rows alone."""
        name = "'); drop table runs; -- \\' $$ ${run} \u202e"
        run = self.run_row("hostile", -1800)
        self.cluster.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"name={name}", "-f", self.write_sql(f"""
            update runs set user_name = :'name', job_name = :'name' where id = {run};
            insert into attempts (run_id, number, uuid) values ({run}, 1, gen_random_uuid());
            insert into faults (run_id, attempt_id, kind, node, cause, detected_at)
            select {run}, id, 'hang', :'name', true, now() - '5 s'::interval from attempts where run_id = {run};"""))
        self.run_row("other", -1800)
        self.assertEqual([row[0] for row in self.panel("Runs", user=[name], job=[name, "x"])], ["hostile"])
        self.assertEqual([row[1] for row in self.panel("Nodes that broke runs", board="nodes", node=[name])], ["1"])
        problems, _ = dashboard_queries.check(self.cluster, name)
        self.assertTrue(problems and all("invalid input syntax for type bigint" in line for line in problems), problems)
        self.assertEqual(len(self.panel("Runs")), 2)

    def write_sql(self, text):
        path = self.cluster.work / "insert.sql"
        path.write_text(text, encoding="utf-8")
        return path

    def test_heat_maps(self):
        """Lateness by node and by each dimension of the layout; of many samples and ranks no more than 2,000 cells."""
        run = self.run_row("sampled", -1800)
        attempt = self.cluster.sql(f"""
            insert into attempts (run_id, number, uuid, tp, cp, pp, dp, world_size)
            values ({run}, 1, gen_random_uuid(), 2, 2, 2, 2, 16) returning id""")[0][0]
        self.cluster.sql(f"""
            insert into rank_map (attempt_id, rank, node, local_rank)
            select {attempt}, rank, 'n' || rank / 8, rank % 8 from generate_series(0, 15) as rank;
            insert into rank_samples (attempt_id, sampled_at, late_s, work)
            values ({attempt}, now() - interval '60 s', '{{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,null}}', '{{1,1,1,1,1,1,1,1,3,3,3,3,3,3,3,3}}')""")
        names = {"node": lambda rank: f"n{rank // 8}", "rank": lambda rank: f"rank {rank:05}", "tp": lambda rank: f"tp {rank % 2}",
                 "cp": lambda rank: f"cp {rank // 2 % 2}", "pp": lambda rank: f"pp {rank // 4 % 2}", "dp": lambda rank: f"dp {rank // 8}"}
        for by, name_of in names.items():
            of_name = {}
            for rank in range(15):
                of_name.setdefault(name_of(rank), []).append(rank)
            rows = self.panel("Lateness", board="ranks", run=[run], by=[by])
            self.assertEqual({row[1]: round(float(row[2]), 6) for row in rows}, {name: round(sum(ranks) / len(ranks), 6)
                                                                                  for name, ranks in of_name.items()})
        work = self.panel("Work", board="ranks", run=[run], by=["node"])
        self.assertEqual({row[1]: float(row[2]) for row in work}, {"n0": 0.5, "n1": 1.5})
        self.cluster.sql(f"""
            insert into rank_samples (attempt_id, sampled_at, late_s, work)
            select {attempt}, now() - n * interval '1 s', array_agg(rank::real), array_agg(1::real)
            from generate_series(1, 1200) as n, generate_series(1, 512) as rank group by n;
            select wlb_rank_sample_put({attempt}, '{{1}}', '{{1}}')""")
        self.assertEqual(self.cluster.sql("select count(*), max(sampled_at) = (select max(sampled_at) from rank_samples where "
                                          "late_s = '{1}') from rank_samples"), [["1000", "t"]])
        rows = self.panel("Lateness", board="ranks", run=[run], by=["rank"])
        self.assertGreater(len(rows), 1000)

    def test_fleet(self):
        """What the fleet has lost, by numbers that were computed by hand."""
        run = self.run_row("lost", -3000, -600, tokens=600)
        self.cluster.sql(f"""
            update runs set created_at = started_at, steps = 60, first_step = 1, last_step = 60 where id = {run};
            insert into attempts (run_id, number, uuid, state, world_size, nodes, created_at, started_at, ended_at)
            values ({run}, 1, gen_random_uuid(), 'lost', 4, '{{n1,n2}}', now() - '3000 s'::interval, now() - '3000 s'::interval,
                now() - '1800 s'::interval),
                ({run}, 2, gen_random_uuid(), 'complete', 4, '{{n1,n3}}', now() - '1800 s'::interval, now() - '1800 s'::interval,
                now() - '600 s'::interval);
            insert into steps (run_id, step, attempt_id, tokens, step_time_s, recorded_at)
            select {run}, step, id, 10, 20, case when number = 1 then now() - '2900 s'::interval
                else now() - '1800 s'::interval + '20 s'::interval * step end
            from attempts join generate_series(1, 60) as step on (step = 1) = (number = 1) where run_id = {run};
            insert into faults (run_id, attempt_id, kind, is_loss, node, cause, proof, detected_at) select {run}, id, 'node_lost', true, 'n2',
                true, '{{"seen": true}}', now() - '1800 s'::interval from attempts where run_id = {run} and number = 1""")
        self.assertAlmostEqual(float(self.panel("Mean time to recovery")[0][0]), 40, 3)
        days = 2 * 2400 / 86400
        self.assertAlmostEqual(float(self.panel("Failures per node-day")[0][0]), 1 / days, 3)
        self.assertAlmostEqual(float(self.panel("GPU hours held")[0][0]), 4 * 2400 / 3600, 3)
        goodput = [float(row[1]) for row in self.panel("Goodput")]
        self.assertAlmostEqual(75 * sum(goodput), 600, 0)  # a part of the hour has 75 s
        self.assertAlmostEqual(max(goodput), 40 / 75, 3)
        losses = self.panel("Losses of nodes, over time", board="nodes", node=["n2"])
        self.assertEqual([row[1:] for row in losses], [["n2", "1"]])


class Grafana(harness.ClusterTest):
    """What it may ask, and of whom."""

    nodes = 1

    def test_wlbd_has_what_the_dashboard_and_the_rules_ask(self):
        with urllib.request.urlopen(f"http://{self.cluster.env['WLB_COORDINATOR']}/metrics", timeout=10) as reply:
            has = set(re.findall(r"^# TYPE (\w+)", reply.read().decode(), re.MULTILINE))
        rules = (harness.ROOT / "dashboards/prometheus/wlb.rules.yml").read_text(encoding="utf-8")
        for name, text in ("service", json.dumps(dashboard_queries.board("service"))), ("rules", rules):
            asked = set(re.findall(r"\bwlbd_\w+", text))
            self.assertGreater(len(asked), 4, name)
            self.assertEqual(asked - has, set(), name)

    def test_it_reads_the_views_and_no_more(self):
        make_grafana(self.cluster)
        for query, refusal in (("select count(*) from run_summary", ""), ("select count(*) from public.runs", "permission denied"),
                               ("select rolpassword from pg_authid", "permission denied"), ("create table x (y integer)", "read-only")):
            done = self.cluster.run("psql", "-X", "-q", "-A", "-t", "-c", query, env={"PGUSER": "grafana"}, check=False)
            self.assertIn(refusal or "0", done.stderr if refusal else done.stdout, query)


class Provisioning(unittest.TestCase):
    def test_provisioning_names_the_same_source(self):
        source = (dashboard_queries.FOLDER / "datasources/wlb.yml").read_text(encoding="utf-8")
        self.assertIn(f"uid: {dashboard_queries.DATASOURCE['uid']}\n", source)
        sslmode = re.search(r"^ +sslmode: (\S+)$", source, re.MULTILINE)[1]
        self.assertIn(sslmode, ("disable", "require", "verify-ca", "verify-full"), "Grafana knows no other")


if __name__ == "__main__":
    harness.main()
