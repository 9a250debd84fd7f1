#!/usr/bin/env python3
"""Every query of the Grafana dashboards, run as Grafana runs it on the database of a real run that lost a rank."""
import json
import os
import signal

import harness
import training

DASHBOARDS = harness.ROOT / "dashboards"
DATASOURCE = "wlb"
# Panels that a complete run with a fault must fill; the others may be empty.
FILLED = {"Runs", "Runs by state", "State", "Step", "Loss", "Attempts", "Faults", "Checkpoints", "Tokens per second",
          "Gradient norm", "Learning rate", "Steps repeated", "Tokens/s, last 20 steps", "Verdicts", "Evictions",
          "Verdicts by kind", "Nodes that verdicts name", "Cost by kind", "Attempts ended to exclude a node",
          "Ranks of the newest attempt", "Verdicts of the run", "ETTR", "Time lost", "Evidence against nodes"}


def closing(text, start):
    """Where the parenthesis that is open at `start` closes."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise AssertionError(f"a parenthesis is not closed: {text}")


def expand(query, run_id):
    """The query with what Grafana replaces before it sends it: $__timeFilter(...) and ${run:sqlstring}. A database without
    runs has no value for the variable, and Grafana takes ''."""
    macro = "$__timeFilter("
    while macro in query:
        start = query.index(macro)
        end = closing(query, start + len(macro))
        column = query[start + len(macro):end]
        query = f"{query[:start]}{column} between '2000-01-01' and '2100-01-01'{query[end + 1:]}"
    query = query.replace("${run:sqlstring}", f"'{run_id}'")
    assert "$" not in query, f"a variable the test does not know: {query}"
    return query


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
        files = sorted(DASHBOARDS.glob("*.json"))
        self.assertEqual([file.name for file in files], ["ranks.json", "run.json", "runs.json"])
        for file in files:
            dashboard = json.loads(file.read_text(encoding="utf-8"))
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), file.name)
            for title, query in queries(dashboard):
                with self.subTest(dashboard=file.name, panel=title):
                    self.cluster.sql(expand(query, ""))
                    rows = self.cluster.sql(expand(query, run["id"]))
                    if title in FILLED:
                        self.assertTrue(rows and rows[0][0] != "", query)

    def test_provisioning_names_the_same_source(self):
        source = (DASHBOARDS / "provisioning/datasources/wlb.yml").read_text(encoding="utf-8")
        self.assertIn(f"uid: {DATASOURCE}\n", source)


if __name__ == "__main__":
    harness.main()
