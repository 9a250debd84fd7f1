#!/usr/bin/env python3
"""Links between nodes, which are network namespaces, are cut, slow or lose packets: what is named of them."""

import harness
import links
import training
from harness import clock_s, wait_for
from test_wlbd_api import Api

HEALTHY_STEPS = 80  # in which the usual times of links are learnt
NAMED_STEPS = 50
CUT_S = 10
CUTS_MOST = 3
STATES = ("suspected", "confirmed", "over")


@links.needed
class FaultyLinks(training.TrainingTest):
    """A run of which the messages take most of the time: what is named of its links."""

    link_mbit = 20
    model_config = training.LARGER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.links = links.Links(cls.cluster)

    def train_short_steps(self, layout):
        """Submits a run of short steps, of which the messages are the most; returns it once links have been learnt."""
        job = self.cluster.sbatch(
            "wlb run -- wlb-worker train --model model.json --data-path corpus --seq-length 128 --global-batch-size 4 "
            "--train-iters 5000 --lr 1e-3 --threads 1 --metrics-file m-$SLURM_JOB_ID.jsonl --log-interval 1",
            f"--wlb-layout={layout}", "--wlb-on-fault=report", "--ntasks-per-node=1", "--no-kill", nodes=4)
        self.addCleanup(self.cluster.run, "scancel", str(job))
        self.wait_step(job, HEALTHY_STEPS)
        return job

    def verdicts(self, job, *states):
        """Those that are not of computation, which is slow beside other tests."""
        return [verdict for verdict in self.cluster.show(job)["verdicts"]
                if verdict["state"] in states and verdict["kind"] not in ("slow_compute", "slow_node")]

    def check_named(self, job, what, fault, within_s):
        """In a run without a verdict the fault of n2's link is named; returns after how many steps and seconds."""
        self.assertEqual(self.verdicts(job, "suspected", "confirmed"), [])
        first, known = self.step_done(job), len(self.verdicts(job, "over"))
        with fault:
            began = clock_s()
            wait_for(f"a verdict of {what}", lambda: self.verdicts(job, "suspected", "confirmed"), within_s)
            steps, seconds = self.step_done(job) - first, clock_s() - began
        verdict = self.verdicts(job, *STATES)[known]
        self.say(f"{what}: {verdict['kind']} of {', '.join(verdict['nodes'])} after {steps} steps, {seconds:.1f} s;")
        return steps, seconds

    def check_cut_is_named(self, job):
        """A cut is named within its bound, in another step where all ranks were in the call of all: that names no pair."""
        for _ in range(CUTS_MOST):
            _, seconds = self.check_named(job, "a cut link", self.links.cut(2), 30)
            self.assertLessEqual(seconds, CUT_S)
            if self.verdicts(job, *STATES)[-1]["collective"] != "world":
                return
            self.wait_healthy(job)
        self.fail(f"{CUTS_MOST} cuts were all in the call of all ranks")

    def wait_healthy(self, job):
        """Messages are still slow as long as other tests take the processors."""
        wait_for("the end of the verdicts", lambda: not self.verdicts(job, "suspected", "confirmed"), 240)

    def test_faulty_links_are_named(self):
        job = self.train_short_steps("tp=1,cp=1,pp=2,dp=2")
        ranks = Api(self.cluster).call("GET", f"/v1/runs/{job}/ranks")[1]
        for late_us in (row[ranks["columns"].index("late_us")] for row in ranks["ranks"]):
            self.assertLess(abs(late_us), 1e6)
        steps, _ = self.check_named(job, "a quarter of the rate", self.links.limited(2, self.link_mbit // 4), 120)
        self.assertLessEqual(steps, NAMED_STEPS)
        self.wait_healthy(job)
        steps, _ = self.check_named(job, "1 % loss and 20 ms", self.links.delayed(2, delay_ms=20, loss_percent=1), 180)
        self.assertLessEqual(steps, NAMED_STEPS)
        self.wait_healthy(job)
        self.check_cut_is_named(job)
        for verdict in self.verdicts(job, *STATES):  # n2, or its link to another node, and no others
            self.assertIn("n2", verdict["nodes"], verdict)
            self.assertLessEqual(len(verdict["nodes"]), 4 if verdict["collective"] == "world" else 2, verdict)


if __name__ == "__main__":
    harness.main()
