#!/usr/bin/env python3
"""Links that stay cut while a run trains: the node is found by a check of the links, and the run goes on without it."""
import re
import time
import unittest

import harness
import links
import training
from harness import wait_for

MBIT = 60
ITERATIONS = 48
BREAK_AT = 20
FOUND_S = 10
RESUMED_S = 20
ENDED = re.compile(r"^wlb: (ending attempt 1|attempt 1): ", re.MULTILINE)


@unittest.skipUnless(links.may_be_made(), "this account may not make network namespaces")
class BrokenLinks(training.TrainingTest):
    link_mbit = MBIT

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.links = links.Links(cls.cluster)

    def lines(self):
        """What the ranks of `wlb check-links` print, and the exit code of srun."""
        result = self.cluster.run("srun", "-N4", "--mpi=pmix", "--ntasks-per-node=1", "wlb", "check-links", check=False)
        return sorted(result.stdout.splitlines()), result.returncode

    def test_the_command(self):
        self.assertEqual(self.lines(), ([f"n{node} reaches 3 nodes" for node in range(1, 5)], 0))
        with self.links.cut(2):
            self.assertEqual(self.lines(), (["n1 does not reach n2", "n2 does not reach n1 n3 n4", "n3 does not reach n2",
                                             "n4 does not reach n2"], 1))
        with self.links.cut(2, peer=4):
            self.assertEqual(self.lines(), (["n1 reaches 3 nodes", "n2 does not reach n4", "n3 reaches 3 nodes",
                                             "n4 does not reach n2"], 1))

    def train_through(self, fault, node):
        """Trains through a fault that stays; the run must end on the nodes beside `node`, which fails its check: it is not grown to."""
        job = self.submit("--wlb-grow=1", tasks_per_node=1, iterations=ITERATIONS)
        self.wait_step(job, BREAK_AT)
        with fault:
            began = time.monotonic()
            wait_for("the end of the attempt", lambda: ENDED.search(self.cluster.output(job)), 40)
            found_s = time.monotonic() - began
            step = self.step_done(job)
            wait_for("the next attempt", lambda: "attempt 2 on" in self.cluster.output(job), 60)
            wait_for("a new step", lambda: self.step_done(job) > step, 60)
            resumed_s = time.monotonic() - began
            wait_for(f"the check of {node}", lambda: f"{node}, which this attempt leaves out" in self.cluster.output(job), 60)
            run = self.finish(job)
        self.say(f"found after {found_s:.1f} s, training again after {resumed_s:.1f} s;")
        self.check_complete(run, iterations=ITERATIONS)
        self.check_repeats(run, attempts=2)
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("hang", node)])
        self.assertEqual(run["attempts"][1]["nodes"], [name for name in ("n1", "n2", "n3", "n4") if name != node])
        self.assertLessEqual(found_s, FOUND_S + 5)  # beside other tests
        self.assertLessEqual(resumed_s, RESUMED_S + 20)
        return run

    def check_told(self, run, words):
        """The fault and the reason of the attempt, to programs and people."""
        self.assertRegex(run["attempts"][0]["reason"], rf"^{words}: ranks hang at step \d+$")
        self.assertIn(words, next(fault["detail"] for fault in run["faults"] if fault["cause"]))
        self.assertIn(run["attempts"][0]["reason"], self.cluster.run("wlb", "show", run["run_id"]).stdout)

    def check_failed(self, run, words):
        self.assertEqual([event["detail"] for event in run["events"] if event["kind"] == "node_checked"], [words])

    def test_the_link_of_a_node(self):
        run = self.train_through(self.links.cut(2), "n2")
        self.check_told(run, "n2 does not reach n1, n3 and n4")
        self.check_failed(run, "n2 has failed its check: links: exchanges no messages with n1, n3, n4")

    def test_the_link_between_two_nodes(self):
        """One that the collectives of this layout use; of the two nodes the last is left out."""
        run = self.train_through(self.links.cut(3, peer=4), "n4")
        self.check_told(run, "n4 does not reach n3")
        self.check_failed(run, "n4 has failed its check: links: exchanges no messages with n3")


if __name__ == "__main__":
    harness.main()
