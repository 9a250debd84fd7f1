#!/usr/bin/env python3
"""Nodes and daemons that are frozen (SIGSTOP): their kernels go on accepting connections, and nothing else happens."""
import os
import signal
import threading
import time

import harness
import test_wlbd_api
from harness import wait_for


class FrozenTest(test_wlbd_api.RunningJobs):
    nodes = 4

    def setUp(self):
        """The job of the test before may still have its nodes, and this test's is to have n1 and n2."""
        super().setUp()
        wait_for("idle nodes", lambda: set(self.cluster.run("sinfo", "-h", "-N", "-o", "%t").stdout.split()) == {"idle"}, 30)

    def log(self):
        return (self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8", errors="replace")

    def freeze(self, verb, name):
        """freeze-node or freeze-service, undone at the end of the test at the latest."""
        self.cluster.verb(f"freeze-{verb}", name)
        self.addCleanup(self.cluster.verb, f"thaw-{verb}", name)


class Nodes(FrozenTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("silence_ms = 3000\n")

    def node_state(self, node):
        text = self.cluster.run("scontrol", "-o", "show", "node", node).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)["State"]

    def test_the_batch_host_for_good(self):
        """It is found lost, and the job goes on on other nodes."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, _ = self.open_reporters(run, attempt)
        report("n1")
        self.freeze("node", "1")
        wait_for("the order to end", lambda: report("n2")["order"] == "end", 15)
        self.assertEqual(report("n2", goodbye=True)["reason"], "node n1 is lost")
        fault, = wait_for("the fault", lambda: self.show(run)["faults"], 3)
        self.assertEqual((fault["kind"], fault["node"], fault["cause"]), ("node_lost", "n1", True))
        wait_for("n1 DOWN in Slurm", lambda: "DOWN" in self.node_state("n1"), 10)
        wait_for("the job elsewhere", lambda: self.cluster.job(run)["JobState"] == "RUNNING" and
                 self.cluster.job(run)["Restarts"] == "1", 40)
        self.assertNotIn("n1", self.cluster.job(run)["NodeList"])
        # It is probed every 5 s while its attempt goes on, and told once.
        self.assertEqual(self.log().count(f"run {run}, attempt 1: node n1 is lost"), 1)
        self.cluster.verb("thaw-node", "1")
        self.cluster.run("scancel", run)
        self.cluster.run("scontrol", "update", "nodename=n1", "state=resume", check=False)
        wait_for("n1 again", lambda: self.node_state("n1").startswith("IDLE"), 30)

    def test_a_node_for_less_than_the_bound(self):
        """Nothing happens, although its reporter is silent as long, whoever asks about it meanwhile."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, _ = self.open_reporters(run, attempt)
        report("n2")
        slurmd = int((self.cluster.dir / "run/slurmd-n2.pid").read_text(encoding="ascii").split()[0])  # all that runs on n2
        self.addCleanup(os.kill, slurmd, signal.SIGCONT)
        os.kill(slurmd, signal.SIGSTOP)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            self.assertEqual(report("n1"), {"order": "continue"})
            time.sleep(0.2)
        os.kill(slurmd, signal.SIGCONT)
        for _ in range(5):
            self.assertEqual(report("n1"), {"order": "continue"})
            self.assertEqual(report("n2"), {"order": "continue"})
            time.sleep(0.5)
        self.assertEqual(self.show(run)["faults"], [])
        self.assertNotIn("DOWN", self.node_state("n2"))
        for node in ("n1", "n2"):
            report(node, goodbye=True)


class Slurmctld(FrozenTest):
    def test_wlbd_ends_while_slurm_does_not_answer(self):
        """With what was asked and what still waits; under AddressSanitizer nothing may leak."""
        self.freeze("service", "slurmctld")
        announce = [threading.Thread(target=self.try_announce, args=(job,)) for job in range(8000, 8010)]
        for thread in announce:
            thread.start()
        time.sleep(1)
        pid = int((self.cluster.dir / "run/wlbd.pid").read_text(encoding="utf-8").split()[0])
        os.kill(pid, signal.SIGTERM)
        wait_for("the end of wlbd", lambda: not os.path.exists(f"/proc/{pid}"), 60)
        self.cluster.verb("thaw-service", "slurmctld")
        for thread in announce:
            thread.join()
        self.assertNotIn("Sanitizer", self.log())
        self.cluster.verb("start-wlbd")

    def try_announce(self, job):
        try:
            self.api.call("POST", "/v1/runs", {"job_id": job}, timeout_s=60)
        except OSError:
            pass  # wlbd has ended


if __name__ == "__main__":
    harness.main()
