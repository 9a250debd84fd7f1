#!/usr/bin/env python3
"""A node reboots: its processes end at once, and some seconds later its slurmd is there again. The run goes on, whether or not
wlbd has noticed the loss before, and Slurm does as ReturnToService says with the node."""
import os
import signal
import time

import harness
import test_time_limit
import training
from harness import wait_for
from inject import stepds

ITERATIONS = 120
# Its task goes on after wlb-worker has ended and rank 0 has recorded that the run is complete.
LATE = """#!/bin/bash
wlb-worker "$@" && until [ -e end-$SLURM_JOB_ID ]; do sleep 0.1; done
"""
LEAST_S = 4  # that an attempt runs before it is stopped to grow
# BatchStartTimeout and MessageTimeout of the cluster: Slurm looks for the script of an older job alone on a node that registers.
SCRIPT_OLD_S = 10 + 5 + 1


class RebootTest(test_time_limit.StopTest):
    nodes = 4

    def submit_slow(self, *options):  # pylint: disable=arguments-differ
        return super().submit_slow("", "--requeue", *options, iterations=ITERATIONS, nodes=4, ranks=4, layout="pp=1")

    def wait_attempt(self, job, number):
        wait_for(f"attempt {number}", lambda: len(self.cluster.show(job)["attempts"]) == number, 90)

    def state(self, node):
        return self.cluster.run("sinfo", "-h", "-n", f"n{node}", "-o", "%t").stdout.strip()

    def resume(self, node):
        self.cluster.run("scontrol", "update", f"nodename=n{node}", "state=resume")

    def reboot_unnoticed(self, node):
        """wlbd sees the connections of the node's processes closed, and a node that answers."""
        self.cluster.verb("freeze-service", "wlbd")
        self.cluster.verb("reboot-node", str(node))
        self.cluster.verb("thaw-service", "wlbd")

    def reboot_noticed(self, node):
        """wlbd has found the node lost, and set it DOWN."""
        self.cluster.kill_node(node)
        wait_for("the loss in Slurm", lambda: self.state(node).startswith("down"), 60)
        self.cluster.verb("reboot-node", str(node))

    def causes(self, run):
        return [(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]]

    def check(self, job, node, kinds, restarts):
        """The run has one attempt more, by a fault of that node, and each of its steps once."""
        run = self.finish(job)
        self.assertEqual((run["state"], len(run["attempts"])), ("complete", 2), self.cluster.output(job))
        (kind, where), = self.causes(run)
        self.say(f"{kind}: {run['attempts'][0]['reason']}")
        self.assertIn(kind, kinds)
        self.assertEqual(where, f"n{node}", run["faults"])
        self.assertEqual(self.cluster.job(job)["Restarts"], str(restarts))
        self.check_losses(run, ITERATIONS)
        wait_for("the node in service", lambda: self.state(node) == "idle", 60)
        return run


class Compute(RebootTest):
    def test_before_it_is_noticed(self):
        job = self.submit_slow()
        self.wait_step(job, 4)
        # With wlbd away meanwhile, the ranks that end after those of n3 would be the first of which it hears.
        self.cluster.verb("reboot-node", "3")
        run = self.check(job, 3, ("rank_lost", "step_failed", "node_lost"), 0)
        self.assertRegex(run["attempts"][0]["reason"], r"\bn3\b")

    def test_after_it_is_noticed(self):
        job = self.submit_slow()
        self.wait_step(job, 4)
        self.reboot_noticed(3)
        run = self.check(job, 3, ("node_lost",), 0)
        self.assertEqual(run["attempts"][0]["reason"], "node n3 is lost")

    def test_after_its_ranks_have_ended(self):
        """Its slurmstepd has not told srun that they have, and never will: srun would wait without a bound."""
        path = self.cluster.work / "late"
        path.write_text(LATE, encoding="utf-8")
        path.chmod(0o755)
        job = self.cluster.sbatch(
            f"wlb run -- ./late {' '.join(training.arguments(iterations=12))} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID",
            "--wlb-layout=dp=2", "--ntasks-per-node=1", "--no-kill", "--requeue", "--open-mode=append", "--nodelist=n1,n3", nodes=2)
        wait_for("the run", lambda: self.cluster.run("wlb", "show", str(job), check=False).returncode == 0, 30)
        wait_for("the end of training", lambda: [a["state"] for a in self.cluster.show(job)["attempts"]] == ["complete"], 60)
        stepd, = [pid for pid, title in stepds(self.cluster, "n3").items() if f"[{job}.0]" in title]
        os.kill(stepd, signal.SIGSTOP)
        (self.cluster.work / f"end-{job}").touch()
        wait_for("the ranks' end", lambda: not self.cluster.processes("/bin/bash ./late"), 30)
        self.cluster.verb("reboot-node", "3")
        run = self.finish(job, 120)
        self.assertEqual(run["state"], "complete")
        self.say(", ".join(f"{attempt['state']} ({attempt['reason']})" for attempt in run["attempts"]))
        # wlbd may find the node before its slurmd is there again.
        self.assertIn(self.causes(run), ([("step_failed", None)], [("node_lost", "n3")]))
        self.check_losses(run, 12)


class BatchHost(RebootTest):
    """The job is requeued: it must not be left running without its script."""

    def wait_old(self, job):
        wait_for("an old script", lambda: time_s(self.cluster.job(job)["RunTime"]) > SCRIPT_OLD_S, 60)

    def test_before_it_is_noticed(self):
        job = self.submit_slow()
        self.wait_step(job, 4)
        self.wait_old(job)
        self.reboot_unnoticed(1)
        run = self.check(job, 1, ("launcher_lost", "script_lost", "step_failed", "node_lost"), 1)
        self.say(run["attempts"][0]["reason"])

    def test_after_it_is_noticed(self):
        job = self.submit_slow()
        self.wait_step(job, 4)
        self.reboot_noticed(1)
        run = self.check(job, 1, ("node_lost",), 1)
        self.assertEqual(run["attempts"][0]["reason"], "node n1 is lost")


def time_s(text):
    """Of the form 00:01:02."""
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


class ReturnToService(RebootTest):
    """What --wlb-grow can do with a node that wlbd has set DOWN, where Slurm does not use such a node by itself."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.cluster.dir / "etc/slurm.conf"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("ReturnToService=2", "ReturnToService=1"), encoding="utf-8")
        cls.cluster.run("scontrol", "reconfigure")

    def test_a_node_that_an_administrator_must_resume(self):
        job = self.submit_slow(f"--wlb-grow={LEAST_S}")
        self.wait_step(job, 4)
        self.reboot_noticed(3)
        self.wait_attempt(job, 2)
        registered = time.monotonic()
        while time.monotonic() < registered + 2 * LEAST_S:
            self.assertRegex(self.state(3), "^down")
            self.assertEqual(len(self.cluster.show(job)["attempts"]), 2)
            time.sleep(0.5)
        self.assertRegex(self.cluster.run("sinfo", "-h", "-n", "n3", "-o", "%E").stdout, "^wlb: ")
        self.resume(3)
        run = self.finish(job)
        self.assertEqual([len(attempt["nodes"]) for attempt in run["attempts"]], [4, 3, 4])
        self.check_losses(run, ITERATIONS)


if __name__ == "__main__":
    harness.main()
