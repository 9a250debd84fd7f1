#!/usr/bin/env python3
"""What is known of nodes over the runs of all users: losses, checks, which nodes attempts avoid, and `wlb nodes`."""
import json
import shutil
import uuid

import harness
import test_trust
import test_wlbd_api
from found_fault import found_fault
from harness import wait_for
from test_wlbd_api import NOBODY

WLB = harness.BUILD / "bin/wlb"
AVOIDED_IN_RUNS = "n3 was lost in 2 runs; 3 nodes remain"


SPEED = "speed: CPU 3: products take 2.10 times as long; limit: 1.30 times"


def entries(**verdicts):
    """What a report has of checks: their verdicts by name, "failed" where the speed and the like were bad."""
    return [{"check": name.replace("_", " "), "verdict": verdict, "measured": f"{name} was measured", "limit": "9"}
            for name, verdict in verdicts.items()]


class NodesTest(test_wlbd_api.ApiTest):
    nodes = 4
    wlbd_conf = ""  # as it is on a cluster: nodes are avoided

    def wlb(self, *words, **options):
        return self.cluster.run("wlb", "nodes", *words, **options)

    def known(self, node):
        """What GET /v1/nodes has of the node; None: nothing."""
        status, reply = self.api.call("GET", f"/v1/nodes?node={node}")
        self.assertEqual((status, reply["avoid_from"]), (200, 1.5))
        return reply["nodes"][0] if reply["nodes"] else None

    def check(self, node, uid=0, **fields):
        return self.api.call("POST", "/v1/node_checks", {"node": node, "healthy": True, "checks": []} | fields, uid)

    def start(self, layout="auto", nodes=4):
        """A job of which attempt 1 waits, and later ones end at once; returns it and the nodes of its first attempt."""
        job = self.cluster.sbatch("wlb run -- sh -c '[ $WLB_ATTEMPT != 1 ] || sleep 1031'", f"--wlb-layout={layout}", "--no-kill", nodes=nodes)
        self.addCleanup(self.cluster.run, "scancel", job)
        attempt = wait_for("the first attempt", lambda: self.attempts(job), 60)[0]
        wait_for("its tasks", lambda: len(self.cluster.processes("sleep 1031")) >= len(attempt["nodes"]), 30)
        return job, attempt["nodes"]

    def attempts(self, job):
        shown = self.cluster.run("wlb", "show", str(job), "--json", check=False)
        return json.loads(shown.stdout)["attempts"] if shown.returncode == 0 else []

    def lose(self, number):
        """A run loses the node, and goes on without it; the node is then repaired. Returns the run."""
        job, nodes = self.start()
        self.assertIn(f"n{number}", nodes)
        self.cluster.kill_node(number)
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        self.cluster.restore_node(number)
        self.wait_idle()
        return str(job)

    def wait_idle(self):
        wait_for("all nodes", lambda: self.cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "4\n", 60)

    def end(self, job):
        self.cluster.run("scancel", job)
        self.wait_idle()


class Losses(NodesTest):
    def test_a_node_that_was_lost_in_two_runs(self):
        """The next run of anybody leaves it out, as long as that is recent or until it is said to be repaired."""
        self.assertIn("no run has lost a node", self.wlb().stdout)
        runs = [self.lose(3)]
        self.assertAlmostEqual(self.known("n3")["weight"], 1, delta=0.01)
        # Two losses within 15 s are one.
        self.cluster.sql("update faults set detected_at = detected_at - interval '1 minute'")
        runs.insert(0, self.lose(3))  # it was used
        known = self.known("n3")
        self.assertAlmostEqual(known["weight"], 2, delta=0.01)
        self.assertEqual((known["losses"], known["healthy"]), (2, None))
        self.assertEqual([(entry["kind"], entry["run_id"]) for entry in known["history"]], [("loss", run) for run in runs])

        job, nodes = self.start()
        self.assertEqual(nodes, ["n1", "n2", "n4"])
        self.assertIn(AVOIDED_IN_RUNS, self.cluster.output(job))
        self.end(job)
        self.assertRegex(self.wlb().stdout, r"^  NODE +STATE +WEIGHT +RUNS LOST +LAST LOST +CHECK +CHECKED\n")
        self.assertRegex(self.wlb().stdout, r"(?m)^  n3 +avoided +2\.00 +2 +[-0-9]{10} [:0-9]{8}  - +-$")
        text = self.wlb("n3").stdout
        self.assertRegex(text, r"(?m)^  TIME +EVENT +RUN$")
        for run in runs:
            self.assertRegex(text, rf"(?m)^  [-0-9]{{10}} [:0-9]{{8}}  lost +{run}$")

        job, nodes = self.start("tp=1,cp=1,pp=2,dp=2")  # needs all of them
        self.assertEqual(nodes, ["n1", "n2", "n3", "n4"])
        self.end(job)

        self.cluster.sql("update faults set detected_at = detected_at - interval '2 days'")
        self.assertAlmostEqual(self.known("n3")["weight"], 2 * 0.5 ** (2 / 3), delta=0.01)
        job, nodes = self.start()
        self.assertEqual(nodes, ["n1", "n2", "n3", "n4"])
        self.end(job)

        self.cluster.sql("update faults set detected_at = detected_at + interval '2 days'")
        self.assertAlmostEqual(self.known("n3")["weight"], 2, delta=0.01)
        self.assertEqual(self.wlb("--clear", "n3").stdout, "n3 is cleared: what was known of it before counts no more\n")
        self.assertEqual(self.known("n3")["weight"], 0)
        job, nodes = self.start()
        self.assertEqual(nodes, ["n1", "n2", "n3", "n4"])

    def test_a_loss_that_a_client_reports_is_no_evidence(self):
        """His own run has it as a fault. Two runs that had a node when wlbd found it lost are one loss."""
        run = self.new_run()
        self.deliver(run, "11111111-2222-4333-8444-555555555555", [{"seq": 1, "time": 1790000000, "type": "fault", "data": {
            "kind": "node_lost", "node": "n2", "detail": "he says so"}}], source="run")
        self.assertEqual([(f["kind"], f["node"]) for f in self.show(run)["faults"]], [("node_lost", "n2")])
        self.assertIsNone(self.known("n2"))
        other = self.new_run()
        self.deliver(other, "11111111-2222-4333-8444-666666666666", [{"seq": 1, "time": 1790000000, "type": "event", "data": {
            "kind": "note", "detail": ""}}], source="run")
        self.cluster.sql(f"{found_fault('id', 'node_lost', 'n1', detail='silent')} from attempts "
                         f"where run_id in (select id from runs where name in ('{run}', '{other}'))")
        known = self.known("n1")
        self.assertEqual(known["losses"], 2)
        self.assertAlmostEqual(known["weight"], 1, delta=0.01)
        self.cluster.sql("delete from faults")


class Checks(NodesTest):
    def setUp(self):
        self.cluster.sql("delete from node_checks")

    def test_a_failed_check_until_one_passes(self):
        folder = self.cluster.work / "away"
        command = [WLB, "check-node", "--report", "--only", "disk", "--dir", folder]
        done = self.cluster.run(*command, check=False, env={"SLURMD_NODENAME": "n2"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        known = self.known("n2")
        self.assertEqual((known["healthy"], round(known["weight"], 2), known["losses"]), (False, 2, 0))
        self.assertIn("disk", known["reason"])
        job, nodes = self.start()
        self.assertEqual(nodes, ["n1", "n3", "n4"])
        self.assertIn("n2 failed a check; 3 nodes remain", self.cluster.output(job))
        self.end(job)
        self.assertRegex(self.wlb().stdout, r"(?m)^  n2 +avoided +2\.00 +0 +- +failed +[-0-9]{10} [:0-9]{8}\n +disk")
        folder.mkdir()
        self.cluster.run(*command, env={"SLURMD_NODENAME": "n2"})
        known = self.known("n2")
        self.assertEqual((known["healthy"], known["weight"], known["reason"]), (True, 0, ""))
        self.assertEqual([entry["healthy"] for entry in known["history"]], [True, False])
        self.assertEqual(self.start()[1], ["n1", "n2", "n3", "n4"])

    def find(self, node, healthy=True, reason=None, **verdicts):
        """A report with these verdicts; returns what is known of the node then: whether it is healthy, why not, and its weight."""
        status, reply = self.check(node, healthy=healthy, reason=reason, checks=entries(**verdicts))
        self.assertEqual(status, 200, reply)
        known = self.known(node)
        self.assertEqual((known["suspected"], reply["avoided"]), (not known["healthy"], known["weight"] > 1.5))
        return known["healthy"], known["reason"], round(known["weight"], 2)

    def test_a_partial_check_ends_what_it_has_checked(self):
        """The check of a node's speed failed, and its HealthCheckProgram checks other things every 10 minutes."""
        still = (False, SPEED, 2)
        self.assertEqual(self.find("n2", False, SPEED, products="ok", speed="failed", bandwidth="ok"), still)
        for verdicts in ({"products": "ok", "memory": "ok", "disk_/tmp": "ok"}, {"speed": "not checked"}, {}):
            self.assertEqual(self.find("n2", **verdicts), still)
        self.assertRegex(self.wlb().stdout, r"(?m)^  n2 +avoided +2\.00 +0 +- +failed +[-0-9]{10} [:0-9]{8}\n +speed: CPU 3")
        self.assertEqual(self.start()[1], ["n1", "n3", "n4"])
        self.assertEqual(self.find("n2", products="ok", speed="ok"), (True, "", 0))
        self.assertEqual(self.find("n2", products="ok", memory="ok", disk="ok"), (True, "", 0))  # sent again
        self.assertEqual([entry["healthy"] for entry in self.known("n2")["history"]], [True, True, True, False])

    def test_a_disk_says_nothing_of_products(self):
        """By wlb check-node itself."""
        self.find("n2", False, "products: CPU 3: 1 bit differs", products="failed")
        command = [WLB, "check-node", "--report", "--seconds", "0.2", "--only"]
        for only, healthy in (("disk,memory", False), ("products", True)):
            self.cluster.run(*command, only, env={"SLURMD_NODENAME": "n2"})
            self.assertEqual(self.known("n2")["healthy"], healthy)

    def test_several_failures(self):
        """Each is ended by its own check, and is the reason as long as it is not."""
        disk = (False, "disk /scratch: disk_/scratch was measured; limit: 9", 2)
        both = {"speed": "failed", "disk_/scratch": "failed", "disk_/tmp": "ok"}
        self.assertEqual(self.find("n1", False, SPEED, **both), (False, SPEED, 2))
        self.assertEqual(self.find("n1", speed="ok"), disk)
        self.assertEqual(self.find("n1", False, "memory: 1 bit"), (False, "memory: 1 bit", 2))  # without entries
        self.assertEqual(self.find("n1", **{"memory": "ok", "disk_/tmp": "not checked"}), disk)
        self.assertEqual(self.find("n1", **{"disk_/scratch": "ok", "disk_/tmp": "ok"}), (True, "", 0))
        self.assertEqual(self.find("n1", False, SPEED, **both), (False, SPEED, 2))
        self.assertEqual(self.wlb("--clear", "n1").returncode, 0)
        self.assertEqual((self.known("n1")["healthy"], self.known("n1")["weight"]), (True, 0))

    def test_cpus_say_nothing_of_gpus(self):
        reason = "products: GPU 1: 1 bit differs"
        self.find("n1", False, reason, gpus="ok", products="failed", memory="ok")
        self.assertEqual(self.find("n1", products="ok", memory="ok"), (False, reason, 2))
        self.assertEqual(self.find("n1", gpus="ok", products="ok"), (True, "", 0))

    def test_a_failure_that_is_old(self):
        """It weighs less, and is known until what failed is ok."""
        self.find("n1", False, SPEED, speed="failed")
        for days, weight in ((2, 2 * 0.5 ** (2 / 3)), (29, 0)):
            self.cluster.sql(f"update node_checks set checked_at = checked_at - interval '{days} days'")
            self.assertEqual(self.find("n1", disk="ok"), (False, SPEED, round(weight, 2)))
        self.assertEqual(self.find("n1", speed="ok"), (True, "", 0))

    def test_who_may_report(self):
        status, reply = self.check("n1", NOBODY, healthy=False, reason="he says so")
        self.assertEqual((status, reply["error"]), (403, "only root and SlurmUser report checks of nodes"))
        self.assertIsNone(self.known("n1"))
        status, reply = self.api.call("GET", "/v1/nodes", uid=NOBODY)
        self.assertEqual((status, reply["nodes"]), (200, []))

    def test_what_is_refused(self):
        for fields, text in (({"node": "n77"}, "is no node of Slurm"), ({"node": "n1", "reason": "r"}, "reason"),
                             ({"node": "n1", "checks": [1] * 3}, "entry 0"), ({"node": "n1", "healthy": 1}, "healthy")):
            status, reply = self.check(**({"node": "n1"} | fields))
            self.assertEqual(status, 400, reply)
            self.assertIn(text, reply["error"])
        self.assertEqual(self.api.call("GET", "/v1/nodes")[1]["nodes"], [])
        for words, text in ((["--clear", "n77"], "is no node of Slurm"), (["--limit", "0"], "--limit"),
                            (["n1", "--clear", "n2"], "give one of them")):
            done = self.wlb(*words, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_node_keeps_its_newest_checks(self):
        for number in range(105):
            self.assertEqual(self.check("n1", healthy=False, reason=f"reason {number}")[0], 200)
        self.assertEqual(self.check("n1", healthy=False, reason="reason 104")[0], 200)  # sent again
        rows = self.cluster.sql("select count(*), max(reason) filter (where id = newest) from "
                                "(select *, max(id) over () as newest from node_checks) as kept")
        self.assertEqual(rows, [["100", "reason 104"]])
        self.assertEqual(len(self.known("n1")["history"]), 100)

    def test_a_time_to_come_is_no_lasting_evidence(self):
        """A client records the loss of a node in the year 4821, and wlbd then sees that the node is lost."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        fault = {"seq": 1, "time": 9e10, "type": "fault", "data": {"kind": "node_lost", "node": "n2", "detail": "claimed"}}
        self.addCleanup(self.cluster.sql, "delete from faults where node = 'n2'")
        self.assertEqual(self.deliver(run, attempt, [fault])[0], 200)
        newest = "select detected_at < now() + interval '11 minutes' from faults where node = 'n2' and kind = 'node_lost'"
        self.assertEqual(self.cluster.sql(newest), [["t"]])
        # As rows that an earlier version has stored:
        self.cluster.sql("update faults set detected_at = to_timestamp(9e10) where node = 'n2' and kind = 'node_lost'")
        found = found_fault("id", "node_lost", "n2", detail="its slurmd does not answer", at="now() - interval '6 days'")
        self.cluster.sql(f"{found} from attempts where uuid = '{attempt}'")
        self.assertAlmostEqual(self.known("n2")["weight"], 0.25, places=3)
        status, _ = self.check("n2", clears=True)
        self.assertEqual((status, self.known("n2")["weight"]), (200, 0))

    def test_a_failure_is_kept_beside_many_others(self):
        """Until it is ended: it is not among the newest 100 then."""
        self.find("n1", False, SPEED, speed="failed")
        for number in range(105):
            self.check("n1", healthy=False, reason=f"memory: {number}")
        self.assertEqual(self.cluster.sql("select count(*) from node_checks"), [["101"]])
        self.assertEqual(self.find("n1", memory="ok"), (False, SPEED, 2))
        self.assertEqual(self.find("n1", speed="ok"), (True, "", 0))
        self.check("n1", healthy=False, reason="disk")
        self.assertEqual(self.cluster.sql("select count(*) from node_checks"), [["100"]])

    def test_suspected_nodes_are_listed_before_healthy_ones(self):
        """Also where an old failure weighs nothing any more, and the list is short."""
        self.check("n1", healthy=False, reason="memory")
        self.cluster.sql("update node_checks set checked_at = now() - interval '40 days'")
        self.check("n2", healthy=True)
        listed = self.wlb("--limit", "1").stdout
        self.assertRegex(listed, r"(?m)^  n1 +suspected +0\.00")
        self.assertNotRegex(listed, r"(?m)^  n2")
        self.assertIn("1 more is not listed: give a higher --limit than 1.", listed)
        self.assertNotIn("not listed", self.wlb().stdout)

    def test_at_most_half_is_avoided(self):
        for node in ("n1", "n2", "n3", "n4"):
            self.check(node, healthy=False, reason="memory")
        self.assertEqual(len(self.start()[1]), 2)

    def test_where_no_node_is_avoided(self):
        self.check("n4", healthy=False, reason="memory")
        conf = self.cluster.dir / "etc/wlbd.conf"
        self.addCleanup(self.restart_wlbd)
        self.addCleanup(conf.write_text, conf.read_text(encoding="utf-8"), encoding="utf-8")
        self.restart_wlbd("avoid_nodes = no\n")
        self.assertEqual(self.start()[1], ["n1", "n2", "n3", "n4"])
        self.assertIn("No node is avoided", self.wlb().stdout)
        self.assertRegex(self.wlb().stdout, r"(?m)^  n4 +suspected +2\.00")


class Bounds(harness.ClusterTest):
    nodes = 1

    def rows_read(self, table, statement):
        command = (f"{statement}; select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = '{table}'")
        return int(self.cluster.sql(command)[-1][0])

    def test_a_report_reads_what_is_of_its_node(self):
        """All nodes of a cluster may report at once."""
        self.cluster.sql("""
            insert into runs (name, job_id, uid, user_name, submitted_at) select n, n, 0, 'root', now() from generate_series(1, 40) n;
            insert into attempts (run_id, number, uuid) select id, 1, gen_random_uuid() from runs;
            insert into faults (run_id, attempt_id, kind, is_loss, node, proof, detected_at)
            select a.run_id, a.id, 'node_lost', true, 'n' || n, '{"seen": true}', now() - a.run_id * interval '1 hour'
            from attempts a, generate_series(1, 500) n where n % 10 = a.run_id % 10;
            insert into node_checks (node, healthy, reason, failed, passed, uid, checked_at)
            select 'n' || n, false, 'memory', '{memory}', '{disk}', 0, now() - age * interval '1 day'
            from generate_series(1, 4000) n, generate_series(1, 5) age;
            analyze""")
        report = "select wlb_node_check_put('n7', {}, '{}', '[]', {}, 0)"
        self.assertIn('"avoided" : true', self.cluster.sql(report.format("false", "memory", "false"))[0][0])
        for table in ("node_checks", "faults"):
            read = self.rows_read(table, report.format("false", "memory", "false"))
            print(f"{read} rows of {table} were read", end=" ")
            self.assertLess(read, 200)
        self.assertIn('"avoided" : false', self.cluster.sql(report.format("true", "", "true"))[0][0])


class OtherUsers(test_trust.TrustTest):
    """What root's checks have found counts for the runs of every user."""

    wlbd_conf = ""

    def nodes_of(self, uid):
        """Those of the attempt of a job that the user submits."""
        folder = self.cluster.home / f"of-{uid}"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        done = self.cluster.run("sbatch", "--parsable", "--wlb-layout=auto", "-N4", "--ntasks-per-node=1", "-o", folder / "out", "--wrap",
                                "wlb run -- true", cwd=folder, user=uid, env={"XDG_STATE_HOME": str(folder)})
        job = int(done.stdout)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        run = self.cluster.show(job)
        self.assertEqual(int(self.cluster.sql(f"select uid from runs where name = '{job}'")[0][0]), uid)
        return run["attempts"][0]["nodes"], (folder / "out").read_text(encoding="utf-8")

    def test_their_runs_avoid_the_node_too(self):
        status, reply = self.api.call("POST", "/v1/node_checks", {"node": "n3", "healthy": False, "reason": SPEED,
                                                                  "checks": entries(speed="failed")})
        self.assertEqual((status, reply["avoided"]), (200, True))
        for uid in (0, NOBODY, test_trust.DAEMON):
            nodes, output = self.nodes_of(uid)
            self.assertEqual(nodes, ["n1", "n2", "n4"])
            self.assertIn("n3 failed a check; 3 nodes remain", output)


# The example of wlb-check-node(1).
EPILOG = """#!/bin/sh
reason=$(XDG_STATE_HOME={state} WLB_CONF={etc}/wlb.conf {command} {work}/disk-$SLURMD_NODENAME 2>&1 >/dev/null)
if [ $? -eq 1 ]; then
	SLURM_CONF={etc}/slurm.conf {scontrol} update node="$SLURMD_NODENAME" state=drain reason="$reason"
fi
"""


class SuspectsTest(test_wlbd_api.RunningJobs):
    """A launcher checks the nodes that its attempt leaves out, and root those that runs suspect."""

    def known_of(self, node):
        known = self.api.call("GET", f"/v1/nodes?node={node}")[1]["nodes"][0]
        return round(known["weight"], 2), known["suspected"]

    def node(self, name):
        return self.cluster.run("scontrol", "-o", "show", "node", name).stdout

    def configure_epilog(self, command):
        etc = self.cluster.dir / "etc"
        script = etc / "check_node_epilog"
        script.write_text(EPILOG.format(command=command, work=self.cluster.work, etc=etc, scontrol=shutil.which("scontrol"),
                                        state=self.cluster.env["XDG_STATE_HOME"]), encoding="utf-8")
        script.chmod(0o755)
        with open(etc / "slurm.conf", "a", encoding="utf-8") as conf:
            conf.write(f"Epilog={script}\n")
        self.cluster.run("scontrol", "reconfigure")

    def evict(self, attempt, node):
        """wlbd has ended the attempt because of the node."""
        self.cluster.sql(f"""
            insert into faults (run_id, attempt_id, kind, rank, node, step, cause, proof, sentence, strength, detected_at)
            select run_id, id, 'slow_node', null, '{node}', 7, true, '{{"evicted": true}}', 'node {node} is slow', 6, now()
            from attempts where uuid = '{attempt}'""")

    def next(self, run, previous):
        return self.ask(run, ["n1", "n2"], previous={"attempt_id": previous, "exit_code": 75, "step_id": ""})

    def report_check(self, run, attempt, node="n2", uid=0, **fields):
        return self.api.call("POST", f"/v1/runs/{run}/node_checks",
                             {"attempt_id": attempt, "node": node, "healthy": True, "checks": []} | fields, uid)

    def events(self, run):
        return [event["detail"] for event in self.show(run)["events"] if event["kind"] == "node_checked"]


class AvoidedSuspect(SuspectsTest):
    wlbd_conf = ""  # nodes are avoided

    def test_a_node_that_is_avoided_is_not_checked(self):
        """The run's check does not end what is known from other runs, so that the node would not be used again."""
        run = self.new_run()
        first, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual(reply["nodes"], ["n1", "n2"])
        status, reply = self.api.call("POST", "/v1/node_checks", {"node": "n2", "healthy": False, "reason": SPEED, "checks": []})
        self.assertEqual((status, reply["avoided"]), (200, True))
        self.evict(first, "n2")
        second, reply = self.next(run, first)
        self.assertEqual((reply["nodes"], reply["suspects"], reply["missing"]), (["n1"], [], []))
        self.assertEqual(self.report_check(run, second)[0], 403)


class Suspects(SuspectsTest):
    def test_a_node_is_given_back_once(self):
        run = self.new_run()
        first, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual((reply["nodes"], reply["suspects"]), (["n1", "n2"], []))
        self.evict(first, "n2")
        second, reply = self.next(run, first)
        self.assertEqual((reply["nodes"], reply["suspects"]), (["n1"], ["n2"]))
        for _ in range(2):  # the reply gets lost
            self.assertEqual(self.report_check(run, second), (200, {"node": "n2", "healthy": True}))
        self.assertEqual(self.events(run), ["n2 has passed its check: the next attempt may use it"])
        third, reply = self.next(run, second)
        self.assertEqual((reply["nodes"], reply["suspects"]), (["n1", "n2"], []))
        self.deliver(run, third, [test_wlbd_api.step(1, 8)])  # it advances
        self.evict(third, "n2")
        reply = self.next(run, third)[1]
        self.assertEqual((reply["nodes"], reply["suspects"]), (["n1"], []))
        self.assertEqual(self.known_of("n2"), (0, True))  # his check is no evidence for others

    def test_a_node_that_fails_stays_out(self):
        run = self.new_run()
        first, _ = self.ask(run, ["n1", "n2"])
        self.evict(first, "n2")
        second, _ = self.next(run, first)
        self.assertEqual(self.report_check(run, second, healthy=False, reason="memory: 1 bit")[0], 200)
        self.assertEqual(self.events(run), ["n2 has failed its check: memory: 1 bit"])
        self.assertEqual(self.next(run, second)[1]["nodes"], ["n1"])
        self.assertEqual(self.known_of("n2"), (0, True))
        self.assertRegex(self.cluster.run("wlb", "nodes", "n2").stdout, rf"(?s)\n  \S+ \S+  check in the run: failed +{run}\n +memory: 1 bit\n"
                         rf"  \S+ \S+  excluded +{run}\n +node n2 is slow\n")
        for uid, told in ((0, [[run, "memory: 1 bit"], [run, "node n2 is slow"]]), (NOBODY, [[None, ""], [None, ""]])):
            history = json.loads(self.cluster.sql(f"select wlb_node_history('n2', {uid})")[0][0])
            self.assertEqual([entry["kind"] for entry in history[:2]], ["run_check", "eviction"])
            self.assertEqual([[entry["run_id"], entry["reason"]] for entry in history[:2]], told)

    def test_a_node_that_the_layout_needs_is_used(self):
        run = self.new_run()
        more = {"policy": {"layout": "tp=2,pp=2"}}
        first, _ = self.ask(run, ["n1", "n2"], **more)
        self.evict(first, "n2")
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": first, "exit_code": 75, "step_id": ""}, **more)
        self.assertEqual((reply["decision"], reply.get("nodes"), reply.get("suspects")), ("start", ["n1", "n2"], []), reply)

    def test_what_root_checks(self):
        """--if-suspected: what a run left out, until it is healthy; by hand, and in an epilog that drains what fails."""
        self.cluster.sql("delete from node_checks")
        run = self.new_run()
        first, _ = self.ask(run, ["n1", "n2"])
        self.evict(first, "n2")
        folders = {node: self.cluster.work / f"disk-{node}" for node in ("n1", "n2")}
        folders["n1"].mkdir()
        command = [WLB, "check-node", "--if-suspected", "--report", "--seconds", "0.2", "--only", "products,disk", "--dir"]
        done = self.cluster.run(*command, self.cluster.work / "away", env={"SLURMD_NODENAME": "n1"})
        self.assertEqual(done.stdout, "the coordinator does not suspect this node: nothing is checked\n")
        for _ in range(2):  # it stays suspected
            done = self.cluster.run(*command, folders["n2"], check=False, env={"SLURMD_NODENAME": "n2"})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(self.known_of("n2"), (2, True))
        self.configure_epilog(" ".join(map(str, command)))
        self.cluster.run("scancel", run)
        node = wait_for("n2 is drained", lambda: "DRAIN" in (text := self.node("n2")) and text, 30)
        self.assertIn("Reason=wlb check-node: disk", node)
        self.assertNotIn("DRAIN", self.node("n1"))
        folders["n2"].mkdir()
        self.cluster.run(WLB, "check-node", "--report", "--only", "disk", "--dir", folders["n2"], env={"SLURMD_NODENAME": "n2"})
        self.assertEqual(self.known_of("n2"), (0, False))  # its products were exact when its disk failed
        self.cluster.sql(f"update faults set detected_at = now() where run_id = (select id from runs where name = '{run}')")
        self.cluster.run(WLB, "check-node", "--report", "--only", "disk", "--dir", folders["n2"], env={"SLURMD_NODENAME": "n2"})
        self.assertEqual(self.known_of("n2"), (0, True))
        for text in (" ok", "does not suspect"):
            done = self.cluster.run(*command, folders["n2"], env={"SLURMD_NODENAME": "n2"})
            self.assertIn(text, done.stdout)
            self.assertEqual(self.known_of("n2"), (0, False))
        self.cluster.run("scontrol", "update", "node=n2", "state=resume")

    def test_which_products_end_a_suspicion(self):
        """Those of its GPUs, where the run computed on GPUs or root has had them checked."""
        self.cluster.sql("delete from node_checks; delete from faults")
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        of_cpus, of_gpus = {"products": "ok"}, {"gpus": "ok", "products": "ok"}
        for node, device, verdicts in (("n1", "cpu", [{"memory": "ok"}, {"products": "not checked"}, of_cpus]),
                                       ("n2", "cuda", [of_cpus, {"gpus": "ok"}, of_gpus]), ("n2", "cpu", [of_cpus, of_gpus])):
            self.cluster.sql(f"delete from faults; update attempts set device = '{device}' where uuid = '{attempt}';"
                             f"{found_fault('id', 'node_lost', node, detail='silent')} from attempts "
                             f"where uuid = '{attempt}'")
            for number, found in enumerate(verdicts):
                status, _ = self.api.call("POST", "/v1/node_checks", {"node": node, "healthy": True, "checks": entries(**found)})
                self.assertEqual(status, 200)
                known = self.api.call("GET", f"/v1/nodes?node={node}")[1]["nodes"][0]
                self.assertEqual((known["healthy"], known["suspected"]), (True, number < len(verdicts) - 1), f"{device}: {found}")

    def test_a_coordinator_that_is_away(self):
        """It says nothing of the node."""
        done = self.cluster.run(WLB, "check-node", "--if-suspected", check=False,
                                env={"SLURMD_NODENAME": "n2", "WLB_COORDINATOR": "127.0.0.1:1"})
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        done = self.cluster.run(WLB, "check-node", "--if-suspected", check=False, env={"SLURMD_NODENAME": "n2&limit=4"})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("must be the name of a node", done.stderr)

    def test_what_is_refused(self):
        """Another user, a node that is in use or unknown, another attempt."""
        run = self.new_run()
        first, _ = self.ask(run, ["n1", "n2"])
        self.evict(first, "n2")
        second, _ = self.next(run, first)
        for fields, refused in (({"uid": NOBODY}, 403), ({"node": "n1"}, 403), ({"node": "n77"}, 403),
                                ({"healthy": 1}, 400), ({"healthy": False}, 400)):
            self.assertEqual(self.report_check(run, second, **fields)[0], refused, fields)
        self.assertEqual(self.report_check(run, first)[0], 403)
        self.assertIn(self.report_check(run, str(uuid.uuid4()))[0], (400, 403, 404, 409))
        self.assertEqual(self.events(run), [])


if __name__ == "__main__":
    harness.main()
