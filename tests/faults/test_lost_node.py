#!/usr/bin/env python3
"""A node loses its power: slurmd, slurmstepd and tasks end at once. The run goes on on the nodes that are left, as its
layout, its least number of nodes and its spares allow; the plain cases are in kinds.py."""
import time

import harness
import training


class LostNode(training.TrainingTest):
    def lose(self, job, node):
        """Kills the node in mid-run, and restores it only when the run is over."""
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        self.cluster.kill_node(node)
        self.addCleanup(self.cluster.restore_node, node)
        killed = time.monotonic()
        harness.wait_for("the second attempt", lambda: len(self.cluster.show(job)["attempts"]) == 2, 60)
        print(f"next attempt after {time.monotonic() - killed:.1f} s", end=" ")

    def test_a_node_of_a_pipeline(self):
        """8 ranks in two replicas of tp 2 x pp 2; three nodes have space for one, on two of them."""
        job = self.submit(layout="tp=2,pp=2,dp=2")
        self.lose(job, 3)
        run = self.finish(job)
        self.check_complete(run)
        self.check_repeats(run, attempts=2)
        self.assertEqual([[a["layout"][way] for way in ("tp", "cp", "pp", "dp")] for a in run["attempts"]],
                         [[2, 1, 2, 2], [2, 1, 2, 1]])
        self.assertEqual(len(run["nodes"]), 2)
        self.assertNotIn("n3", run["nodes"])

    def test_fewer_nodes_than_the_least(self):
        job = self.submit("--wlb-min-nodes=4")
        self.wait_step(job, 5)
        self.cluster.kill_node(2)
        self.addCleanup(self.cluster.restore_node, 2)
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "out_of_nodes")
        self.assertIn("at least 4", run["reason"])
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]],
                         [("node_lost", "n2")])

    def test_a_spare_takes_its_place(self):
        job = self.submit("--wlb-spares=1", "--wlb-min-nodes=3")
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        first = self.cluster.show(job)["attempts"][0]["nodes"]
        self.assertEqual(len(first), 3)
        lost = next(int(node[1:]) for node in first if node != "n1")
        self.cluster.kill_node(lost)
        self.addCleanup(self.cluster.restore_node, lost)
        run = self.finish(job)
        self.check_complete(run)
        self.check_repeats(run, attempts=2)
        self.assertEqual(run["nodes"], [f"n{i}" for i in range(1, 5) if i != lost])


if __name__ == "__main__":
    harness.main()
