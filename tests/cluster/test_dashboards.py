#!/usr/bin/env python3
"""Every query of the Grafana dashboards, run as Grafana runs it on the database of a real run that lost a rank."""
import datetime
import json
import os
import re
import signal
import unittest

import harness
import training

DASHBOARDS = harness.ROOT / "dashboards"
DATASOURCE = "wlb"
# Panels that a complete run with a fault must fill; the others may be empty.
FILLED = {"Runs", "Runs by state", "State", "Step", "Loss", "Attempts", "Faults", "Checkpoints", "Tokens per second",
          "Gradient norm", "Learning rate", "Steps repeated", "Tokens/s, last 20 steps", "Verdicts", "Evictions",
          "Verdicts by kind", "Nodes that verdicts name", "Cost by kind", "Attempts ended to exclude a node",
          "Ranks of the newest attempt", "Verdicts of the run", "ETTR", "Time lost", "Evidence against nodes"}


# As Grafana has it: an argument ends at the first parenthesis that closes, and at each comma.
MACRO = re.compile(r"\$([_a-zA-Z0-9]+)\(([^\)]*)\)")


def expand(query, run_id, begin="2000-01-01T00:00:00Z", end="2100-01-01T00:00:00Z"):
    """The query with what Grafana replaces before it sends it: the macros of time, and ${run:sqlstring}. A database without
    runs has no value for the variable, and Grafana takes ''."""
    macros = {"__timeFilter": lambda column: f"{column} BETWEEN '{begin}' AND '{end}'",
              "__timeFrom": lambda _: f"'{begin}'", "__timeTo": lambda _: f"'{end}'"}
    query = query.replace("${run:sqlstring}", f"'{run_id}'")
    query = MACRO.sub(lambda found: macros[found[1]](found[2].split(",")[0].strip(" ")), query)
    assert "$" not in query, f"a variable the test does not know: {query}"
    return query


def make_grafana(cluster):
    """The role, as an administrator makes it by README.md."""
    text = (DASHBOARDS / "README.md").read_text(encoding="utf-8")
    statements = re.search(r"^sudo -u postgres psql -d wlb <<'SQL'\n(.*?)^SQL$", text, re.MULTILINE | re.DOTALL)[1]
    cluster.sql(statements)


def as_grafana(query):
    return f"set role grafana; {query}"


def seconds_from_now(seconds):
    """A time as Grafana writes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).isoformat()


def queries(dashboard):
    """(title, query) of every panel and variable; each must ask our data source."""
    for variable in dashboard["templating"]["list"]:
        assert variable["datasource"]["uid"] == DATASOURCE, variable["name"]
        yield "variable " + variable["name"], variable["query"]
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] == DATASOURCE, panel["title"]
        for target in panel["targets"]:
            yield panel["title"], target["rawSql"]


class Dashboards(training.TrainingTest):
    def add_verdict(self, run_id):
        """One of the run's first attempt, which it ended."""
        self.cluster.sql(f"""
            insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, cost_percent,
                certainty, evidence, action, began_at, found_at, confirmed_at)
            select run_id, id, 1, 1, 'hang', 'confirmed', '{{5}}', 1, '{{n3}}', 100, 1, 'rank 5 waits', 'evict', now(), now(),
                now() from attempts where run_id = {run_id} and number = 1;
            update faults set proof = coalesce(proof, '{{}}') || '{{"evicted": "rank 5 hung"}}'
            where run_id = {run_id} and cause""")

    def add_failed_check(self):
        found = json.dumps([{"check": "disk", "verdict": "failed", "measured": "3 MiB/s", "limit": None}])
        self.cluster.sql(f"select wlb_node_check_put('n4', false, 'disk: 3 MiB/s', '{found}', false, 0)")

    def test_every_query(self):
        job = self.submit()
        self.wait_step(job, training.SAVE_INTERVAL + 2)
        os.kill(self.rank_pid(5), signal.SIGKILL)
        run = self.finish(job)
        self.add_verdict(run["id"])
        self.add_failed_check()
        make_grafana(self.cluster)
        files = sorted(DASHBOARDS.glob("*.json"))
        self.assertEqual([file.name for file in files], ["ranks.json", "run.json", "runs.json"])
        for file in files:
            dashboard = json.loads(file.read_text(encoding="utf-8"))
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), file.name)
            for title, query in queries(dashboard):
                with self.subTest(dashboard=file.name, panel=title):
                    self.cluster.sql(as_grafana(expand(query, "")))
                    rows = self.cluster.sql(as_grafana(expand(query, run["id"])))
                    if title in FILLED:
                        self.assertTrue(rows and rows[0][0] != "", query)


class Rows(harness.ClusterTest):
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

    def panel(self, title, begin_s=-3600, end_s=-1, file="runs.json", run_id=""):
        """Its rows."""
        found = dict(queries(json.loads((DASHBOARDS / file).read_text(encoding="utf-8"))))
        return self.cluster.sql(expand(found[title], run_id, seconds_from_now(begin_s), seconds_from_now(end_s)))

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
        rows = self.panel("Nodes that broke runs")
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
        found = {title: self.panel(title, file="run.json", run_id=run) for title in ("Step", "Loss", "Values that the trainer says")}
        self.assertEqual(found["Step"], [["3"]])
        self.assertEqual([(row[0], row[1]) for row in found["Loss"]], [("1", "4"), ("3", "2.5")])  # the panel by step is the second
        self.assertEqual(found["Values that the trainer says"],
                         [["acc", "NaN", "3", "f", "1", "hook"], ["loss", "2.5", "3", "f", "1", "stdout"],
                          ["only_of_the_attempt", "1", "9", "t", "1", "hook"], ["tokens", "1000", "3", "f", "1", "hook"]])
        self.assertEqual(self.panel("Tokens/s, last 20 steps", file="run.json", run_id=run), [["400"]])  # of the steps with a time
        self.assertEqual([row[8:11:2] for row in self.panel("Runs")], [["3", "2.5"]])

    def test_no_query_reads_every_step(self):
        """Each is asked again every ten seconds."""
        run = self.run_row("long", -1800)
        self.cluster.sql(f"""
            with attempt as (
                insert into attempts (run_id, number, uuid) values ({run}, 1, gen_random_uuid()) returning id
            )
            insert into steps (run_id, step, attempt_id, tokens, recorded_at)
            select {run}, step, attempt.id, 1, now() - '1 s'::interval * step / 100
            from attempt, generate_series(1, 100000) as step;
            analyze steps""")
        for file in sorted(DASHBOARDS.glob("*.json")):
            for title, query in queries(json.loads(file.read_text(encoding="utf-8"))):
                with self.subTest(dashboard=file.name, panel=title):
                    plan = self.cluster.sql("explain " + expand(query, run, seconds_from_now(-3600), seconds_from_now(-1)))
                    self.assertFalse([row for row in plan if " on steps" in row[0] and "Index" not in row[0]], plan)


class Role(harness.ClusterTest):
    nodes = 1

    def test_it_reads_the_tables_of_this_database_and_no_more(self):
        make_grafana(self.cluster)
        self.cluster.sql("create table of_a_later_migration (x integer); create view of_it as select * from of_a_later_migration")
        for table in ("runs", "run_summary", "of_a_later_migration", "of_it"):
            self.assertEqual(self.cluster.sql(as_grafana(f"select count(*) from {table}")), [["0"]])
        for query in ("select rolpassword from pg_authid", "delete from runs", "create table x (y integer)"):
            done = self.cluster.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", as_grafana(query), check=False)
            self.assertNotEqual(done.returncode, 0, query)
            self.assertIn("permission denied", done.stderr)


class Provisioning(unittest.TestCase):
    def test_provisioning_names_the_same_source(self):
        source = (DASHBOARDS / "provisioning/datasources/wlb.yml").read_text(encoding="utf-8")
        self.assertIn(f"uid: {DATASOURCE}\n", source)
        sslmode = re.search(r"^ +sslmode: (\S+)$", source, re.MULTILINE)[1]
        self.assertIn(sslmode, ("disable", "require", "verify-ca", "verify-full"), "Grafana knows no other")


if __name__ == "__main__":
    harness.main()
