#!/usr/bin/env python3
"""What is done about faults: the option, wlbd.conf and `wlb set`; and what `wlb faults` and `wlb show` print of them."""
import json
import time

import harness
import test_ranks
import test_trust
from harness import wait_for
from test_wlbd_api import NOBODY

DAEMON = 1  # another account without rights
DEFAULTS = "crash=evict,hang=evict,slow=report,corrupt=report,outliers=report,hang-after=8,slow-by=10"


class SettingsTest(test_trust.TrustTest):
    nodes = 2

    def new_run_of(self, uid, **policy):
        """A run of that user's job, which runs."""
        job = self.submit("n1", uid)
        status, reply = self.api.call("POST", "/v1/runs", {"job_id": job, "launch": 1, "policy": policy}, uid)
        self.assertEqual(status, 200, reply)
        return str(job)

    def set(self, run, text, uid=0, **more):
        return self.api.call("POST", f"/v1/runs/{run}/settings", {"on_fault": text} | more, uid)

    def changes(self, run):
        return [event["detail"] for event in self.show(run)["events"] if event["kind"] == "settings_changed"]


class Settings(SettingsTest):
    def test_owner_and_root_may_and_others_may_not(self):
        run = self.new_run_of(NOBODY, on_fault="hang=report")
        self.assertEqual(self.show(run)["on_fault"], DEFAULTS.replace("hang=evict", "hang=report"))
        status, reply = self.set(run, "slow=evict,hang-after=5m", NOBODY)
        now = "crash=evict,hang=report,slow=evict,corrupt=report,outliers=report,hang-after=300,slow-by=10"
        self.assertEqual((status, reply), (200, {"run_id": run, "before": DEFAULTS.replace("hang=evict", "hang=report"),
                                                 "on_fault": now}))
        status, reply = self.set(run, "report", DAEMON)
        self.assertEqual((status, reply["error"]), (403, f"run {run} belongs to another user"))
        self.assertEqual(self.show(run)["on_fault"], now)
        self.assertEqual(self.set(run, "hang=evict,slow=evict")[0], 200)
        self.assertEqual(self.set(run, "hang=evict")[0], 200)  # as it is: no event
        self.assertEqual(self.changes(run), [
            "on-fault: slow=report,hang-after=8 -> slow=evict,hang-after=300 by nobody",
            "on-fault: hang=report -> hang=evict by root"])
        self.assertEqual(self.show(run)["policy"]["on_fault"], "hang=evict,slow=evict,hang-after=300")

    def test_command(self):
        run = self.new_run_of(NOBODY)
        text = self.cluster.run("wlb", "set", run, "on-fault=slow=evict", user=NOBODY, cwd="/").stdout
        self.assertEqual(text, f"run {run}: on-fault is {DEFAULTS.replace('slow=report', 'slow=evict')}\n"
                               f"  before: {DEFAULTS}\n")
        self.assertEqual(json.loads(self.cluster.run("wlb", "set", run, "on-fault=slow=evict", "--json").stdout)["before"],
                         DEFAULTS.replace("slow=report", "slow=evict"))
        refused = self.cluster.run("wlb", "set", run, "on-fault=report", user=DAEMON, cwd="/", check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn(f"run {run} belongs to another user", refused.stderr)
        shown = self.cluster.run("wlb", "show", run).stdout
        self.assertIn(f"\n  on fault: {DEFAULTS.replace('slow=report', 'slow=evict')}\n", shown)
        self.assertRegex(shown, r"settings_changed +on-fault: slow=report -> slow=evict by nobody\n")
        for words, message in (([run], "no setting is given"), ([run, "hang=evict"], "must be a setting NAME=VALUE"),
                               ([run, "on-fault=hang=stop"], "on-fault: 'hang=stop': an item must be report"),
                               ([run, "on-fault=evict", "on-fault=report"], "given twice"), ([], "RUN"),
                               (["../runs", "on-fault=evict"], "must be a run's name")):
            done = self.cluster.run("wlb", "set", *words, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(message, done.stderr)

    def test_hostile_values(self):
        run = self.new_run_of(NOBODY, on_fault="hang=report")
        before = self.show(run)["on_fault"]
        for body in ({}, {"on_fault": None}, {"on_fault": 1}, {"on_fault": []}, {"on_fault": ""}, {"on_fault": "x" * 256},
                     {"on_fault": "hang=evict,"}, {"on_fault": "hang=evict\n"}, {"on_fault": "hang=evict\0"},
                     {"on_fault": "hang-after=1e3"}, {"on_fault": "hang-after=99999999999999999999"},
                     {"on_fault": "hang-after=nan"}, {"on_fault": "slow-by=-5"}, {"on_fault": "'; drop table runs; --"},
                     {"on_fault": "hang=evict", "owner": "nobody"}, {"on_fault": {"hang": "evict"}}):
            status, reply = self.api.call("POST", f"/v1/runs/{run}/settings", body, NOBODY)
            self.assertEqual(status, 400, f"{body}: {reply}")
            self.assertIn("error", reply)
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/settings", {"on_fault": "x" * 5000}, NOBODY)[0], 413)
        self.assertEqual(self.set("999999", "report", NOBODY)[0], 404)
        self.assertEqual(self.set("x", "report", NOBODY)[0], 400)
        for policy in ({"on_fault": 1}, {"on_fault": "hang=stop"}, {"on_fault": "evict," * 100}):
            status, reply = self.api.call("POST", "/v1/runs", {"job_id": int(run), "launch": 1, "policy": policy}, NOBODY)
            self.assertEqual((status, "on_fault" in reply["error"]), (400, True), reply)
        self.assertEqual((self.show(run)["on_fault"], self.changes(run)), (before, []))

    def test_a_run_that_has_ended_keeps_its_settings(self):
        run = self.new_run_of(0)
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", {"state": "complete"})[0], 200)
        status, reply = self.set(run, "report")
        self.assertEqual((status, "has ended (complete)" in reply["error"]), (409, True), reply)

    def test_the_job_announces_its_options_again(self):
        run = self.new_run_of(0, on_fault="hang=report,slow=evict")
        self.assertEqual(self.set(run, "hang=evict,slow-by=20")[0], 200)
        for _ in range(2):
            self.assertEqual(self.api.call("POST", "/v1/runs", {"job_id": int(run), "launch": 1, "policy": {
                "on_fault": "hang=report,slow=evict", "min_nodes": 1}})[0], 200)
        self.assertEqual(self.show(run)["policy"], {"min_nodes": 1, "on_fault": "hang=evict,slow=evict,slow-by=20"})
        _, reply = self.ask(run, ["n1"], policy={"layout": "auto", "on_fault": "hang=report,slow=evict"})
        self.assertEqual(reply["decision"], "start")
        self.assertEqual(self.show(run)["on_fault"], DEFAULTS.replace("slow=report", "slow=evict").replace("by=10", "by=20"))

    def test_defaults_of_the_cluster(self):
        run = self.new_run_of(0, on_fault="hang=report")
        self.restart_wlbd("on_fault = evict,hang-after=30s\n")
        self.addCleanup(self.restart_wlbd_without, "on_fault")
        self.assertEqual(self.show(run)["on_fault"],
                         "crash=evict,hang=report,slow=evict,corrupt=evict,outliers=evict,hang-after=30,slow-by=10")

    def restart_wlbd_without(self, key):
        conf = self.cluster.dir / "etc/wlbd.conf"
        lines = conf.read_text(encoding="utf-8").splitlines(keepends=True)
        conf.write_text("".join(line for line in lines if not line.startswith(key)), encoding="utf-8")
        self.restart_wlbd()


class Option(harness.ClusterTest):
    """From sbatch through the plugin and `wlb run` into the database."""

    nodes = 2

    def running(self, job, restarts):
        shown = self.cluster.run("wlb", "show", job, "--json", check=False)
        run = json.loads(shown.stdout) if shown.returncode == 0 else {}
        return run.get("state") == "running" and run.get("restart_count") == restarts and run

    def test_option_and_setting_of_a_requeued_job(self):
        job = self.cluster.sbatch("echo option $WLB_ON_FAULT; wlb run -- sleep 600", "--wlb-layout=auto", "--requeue",
                                  "--wlb-on-fault=evict,slow=report,hang-after=5m", "--open-mode=append", "--ntasks-per-node=1")
        self.addCleanup(self.cluster.run, "scancel", job)
        given = "crash=evict,hang=evict,slow=report,corrupt=evict,outliers=evict,hang-after=300"
        run = wait_for("the first start", lambda: self.running(job, 0), 60)
        self.assertEqual((run["policy"]["on_fault"], run["on_fault"]), (given, f"{given},slow-by=10"))
        self.assertIn(f"option {given}\n", self.cluster.output(job))
        self.cluster.run("wlb", "set", job, "on-fault=hang=report")
        self.cluster.run("scontrol", "requeue", str(job))
        run = wait_for("the second start", lambda: self.running(job, 1), 120)
        self.assertEqual(run["policy"]["on_fault"], given.replace("hang=evict", "hang=report"))


class Listed(test_ranks.RanksTest):
    """With verdicts that are written into the database."""

    def setUp(self):
        self.cluster.sql("delete from verdicts; delete from faults")

    def add_verdicts(self, run, count=1, **more):
        """Found one second after the other, the last one now."""
        values = {"kind": "'hang'", "state": "'confirmed'", "ranks": "'{3}'", "rank_count": "1", "nodes": "'{n2}'",
                  "cost_percent": "100", "evidence": "'rank 3 on n2 has computed for ' || k || ' s'", "action": "'evict'",
                  } | more
        self.cluster.sql(f"""
            insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, collective,
                sequence, step, cost_percent, certainty, evidence, action, began_at, found_at, confirmed_at)
            select a.run_id, a.id, 1, (select count(*) from verdicts) + k, {values['kind']}, {values['state']},
                {values['ranks']}, {values['rank_count']}, {values['nodes']}, 'dp', 51, 7, {values['cost_percent']}, 0.99,
                {values['evidence']}, {values['action']}, now(), now() - ({count} - k) * interval '1 s', now()
            from attempts a join runs r on r.id = a.run_id, generate_series(1, {count}) k where r.name = '{run}'""")

    def faults(self, query="", uid=0):
        return self.api.call("GET", f"/v1/faults{query}", uid=uid)

    def told(self, query):
        status, reply = self.faults(query)
        self.assertEqual(status, 200, reply)
        return [entry["evidence"] for entry in reply["faults"]]

    def wlb(self, *words):
        return self.cluster.run("wlb", *words).stdout

    def test_of_a_run_in_order_and_of_all_newest_first(self):
        run, _ = self.new_attempt()
        self.add_verdicts(run, 3)
        evidence = [f"rank 3 on n2 has computed for {k} s" for k in (1, 2, 3)]
        self.assertEqual(self.told(f"?run={run}"), evidence)
        self.assertEqual(self.told(f"?run={run}&limit=2"), evidence[1:])
        self.assertEqual(self.told("?limit=3"), evidence[::-1])
        self.assertEqual(self.told(f"?run={run}&node=n1"), [])
        self.assertEqual(self.told(f"?run={run}&node=n2&since={int(time.time()) - 3600}"), evidence)
        self.assertEqual(self.told(f"?run={run}&since={int(time.time()) + 3600}"), [])
        status, reply = self.faults(f"?run={run}&limit=1")
        entry = reply["faults"][0]
        self.assertEqual({key: entry[key] for key in ("run_id", "source", "attempt", "kind", "state", "ranks", "rank_count",
                                                      "nodes", "collective", "sequence", "step", "cost_percent", "action")},
                         {"run_id": run, "source": "verdict", "attempt": 1, "kind": "hang", "state": "confirmed", "ranks": [3],
                          "rank_count": 1, "nodes": ["n2"], "collective": "dp", "sequence": 51, "step": 7,
                          "cost_percent": 100, "action": "evict"})

    def test_commands(self):
        run, _ = self.new_attempt()
        self.add_verdicts(run, kind="'slow_link'", ranks="'{1,2}'", rank_count="2", nodes="'{n1,n2}'", state="'suspected'",
                          cost_percent="null", action="'report'",
                          evidence="'messages from rank 1 on n1 to rank 2 on n2 take 2.1 times as long as those of other links'")
        text = self.wlb("faults", run)
        lines = text.splitlines()
        self.assertRegex(lines[0], r"^  TIME +RUN +ATTEMPT +KIND +WHERE +STATE +COST +ACTION$")
        self.assertRegex(lines[1], rf"^  [-0-9]{{10}} [:0-9]{{8}}  {run} +1  slow link  link 1>2  suspected     -  report$")
        self.assertEqual(lines[2:], ["      messages from rank 1 on n1 to rank 2 on n2 take 2.1 times as long",
                                     "      as those of other links"])
        self.assertIn("slow link  link 1>2", self.wlb("faults", "--node", "n1", "--since", "1h", "--limit", "1"))
        self.assertEqual(self.wlb("faults", run, "--node", "n3"), "no faults\n")
        self.assertEqual(json.loads(self.wlb("faults", run, "--json"))["faults"][0]["kind"], "slow_link")
        for words, message in ((["--since", "soon"], "--since: 'soon': must be how long ago"), (["--limit", "0"], "--limit"),
                               (["--since", "2100-01-01"], "a local time that has been"), (["../runs"], "must be a run's name")):
            done = self.cluster.run("wlb", "faults", *words, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(message, done.stderr)
        self.assertIn("no run 999999", self.cluster.run("wlb", "faults", "999999", check=False).stderr)

    def test_show(self):
        run, _ = self.new_attempt()
        self.assertNotIn("Verdicts", self.wlb("show", run))
        self.add_verdicts(run, 25)
        section = self.wlb("show", run).split("\nVerdicts\n")[1].split("\n\n")[0]
        self.assertEqual(section.count("rank 3 on n2 has computed for"), 20)
        self.assertIn("has computed for 25 s", section)
        self.assertNotIn("has computed for 5 s", section)
        self.assertIn(f"\n  5 more: wlb faults {run}", section)

    def test_a_fault_of_a_verdict_is_told_once(self):
        run, _ = self.new_attempt()
        fault = f"""insert into faults (run_id, attempt_id, kind, rank, node, step, detail, detected_at, proof, sentence)
            select a.run_id, a.id, 'hang', 3, 'n2', 7, '', now(), '{{"evicted": true}}', 'rank 3 on n2 hung'
            from attempts a join runs r on r.id = a.run_id where r.name = '{run}'"""
        self.cluster.sql(fault)
        self.assertEqual(self.told(f"?run={run}"), ["rank 3 on n2 hung"])
        self.add_verdicts(run, kind="'slow_compute'", ranks="'{2}'", action="'report'", evidence="'of another rank'")
        self.assertEqual(sorted(self.told(f"?run={run}")), ["of another rank", "rank 3 on n2 hung"])
        self.add_verdicts(run, action="'report'")  # as it was when it was found; then the user ran `wlb set`
        entries = self.faults(f"?run={run}")[1]["faults"]
        self.assertEqual(sorted((entry["evidence"], entry["action"]) for entry in entries),
                         [("of another rank", "report"), ("rank 3 on n2 has computed for 1 s", "evict")])

    def test_evidence_cannot_command_the_terminal(self):
        run, _ = self.new_attempt()
        self.add_verdicts(run, evidence="E'\\x1b[2Jcleared\\r\\n\\u009b31m ' || repeat('x', 500)")
        for text in (self.wlb("faults", run), self.wlb("show", run), self.wlb("faults")):
            self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("cleared", text)
            lines = [line for line in text.splitlines() if "xxxx" in line]
            self.assertGreater(len(lines), 5)
            self.assertLessEqual(max(map(len, lines)), 72)

    def test_parameters_are_checked(self):
        for query in ("?run=x", "?run=../12", "?limit=0", "?limit=1001", "?limit=x", "?since=-1", "?since=1e3",
                      "?since=99999999999999"):
            status, reply = self.faults(query)
            self.assertEqual((status, "parameter" in reply["error"]), (400, True), f"{query}: {reply}")
        self.assertEqual(self.faults("?run=999999")[0], 404)
        self.assertEqual(self.faults("?node='%3B%20drop%20table%20runs")[1], {"faults": []})

    def test_private_data(self):
        run, _ = self.new_attempt()
        self.add_verdicts(run)
        self.assertEqual(len(self.faults(f"?run={run}", NOBODY)[1]["faults"]), 1)
        self.restart_wlbd("private_data = yes\n")
        try:
            self.assertEqual(self.faults("", NOBODY), (200, {"faults": []}))
            status, reply = self.faults(f"?run={run}", NOBODY)
            self.assertEqual((status, "private_data" in reply["error"]), (403, True), reply)
            self.assertEqual(len(self.faults(f"?run={run}")[1]["faults"]), 1)
        finally:
            conf = self.cluster.dir / "etc/wlbd.conf"
            conf.write_text(conf.read_text(encoding="utf-8").replace("private_data = yes\n", ""), encoding="utf-8")
            self.restart_wlbd()


if __name__ == "__main__":
    harness.main()
