#!/usr/bin/env python3
"""A node loses its power: slurmd, slurmstepd and tasks end at once. The run goes on on the nodes that are left, as its
layout, its least number of nodes and its spares allow; the plain cases are in kinds.py."""
import os
import signal
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
        seen_s = time.monotonic() - killed
        print(f"next attempt after {seen_s:.1f} s", end=" ")
        return seen_s

    def test_a_node_of_a_pipeline(self):
        """8 ranks in two replicas of tp 2 x pp 2; three nodes have space for one, on two of them."""
        job = self.submit(layout="tp=2,pp=2,dp=2")
        seen_s = self.lose(job, 3)
        run = self.finish(job)
        self.check_time_lost(run, seen_s)
        self.check_complete(run)
        self.check_repeats(run, attempts=2)
        self.assertEqual([[a["layout"][way] for way in ("tp", "cp", "pp", "dp")] for a in run["attempts"]],
                         [[2, 1, 2, 2], [2, 1, 2, 1]])
        self.assertEqual(len(run["nodes"]), 2)
        self.assertNotIn("n3", run["nodes"])

    def check_time_lost(self, run, seen_s):
        """The parts make the time held, and are consistent with the records. The second attempt uses two nodes of three."""
        lost = run["time_lost"]
        parts = {entry["cause"]: entry["seconds"] for entry in lost["causes"]}
        print(f"ETTR {lost['ettr']} of {lost['held_s']} s, lost {parts}", end=" ")
        self.assertAlmostEqual(lost["effective_s"] + sum(parts.values()), lost["held_s"], delta=1e-3)
        self.assertAlmostEqual(lost["ettr"], lost["effective_s"] / lost["held_s"], delta=1e-6)
        for cause in ("decide", "start", "load", "repeated", "checkpoint"):
            self.assertGreater(parts[cause], 0, cause)
        # 0 where the loss is found before the ranks that are left have ended a step for which they had all messages.
        self.assertGreaterEqual(parts["detect"], 0)
        # A node reports each second: that it was alive was known about a second before it was killed.
        self.assertLessEqual(parts["detect"] + parts["decide"], seen_s + 3)
        steps = [sum(step["step_time_s"] for step in run["steps"] if step["attempt"] == number) for number in (1, 2)]
        self.assertAlmostEqual(parts["idle"], steps[1] / 3, delta=1e-3)
        self.assertAlmostEqual(lost["effective_s"], steps[0] + steps[1] * 2 / 3, delta=1e-3)
        saved_s = sum(checkpoint["stall_s"] for checkpoint in run["checkpoints"])
        self.assertAlmostEqual(parts["checkpoint"], saved_s, delta=1e-3)
        repeated_s = float(self.cluster.sql("select sum(step_time_s) from steps_superseded where run_id = "
                                            f"{run['id']}")[0][0])
        self.assertGreaterEqual(parts["repeated"], repeated_s - 1e-3)
        self.assertLess(parts["other"], lost["held_s"] / 2)
        text = self.cluster.run("wlb", "show", run["run_id"]).stdout
        self.assertRegex(text, r"(?m)^Time lost\n  ETTR 0\.\d{3}: .* advanced training\n"
                               r"(  detect +[0-9.:]+( s)? +[0-9.]+ %  from a fault until .*\n)?"  # where it is not 0
                               r"  decide +[0-9.:]+( s)? +[0-9.]+ %  from its discovery ")

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

    def test_together_with_its_launcher(self):
        """The job is requeued, and Slurm learns from wlbd that the node is lost: it would try to end the job there, or start it
        there again, until its own time-out."""
        job = self.submit()
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        for pid in self.cluster.processes("wlb run"):
            os.kill(pid, signal.SIGKILL)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        # Until then Slurm calls it FAILED, where it has ended the job before the node was lost.
        harness.wait_for("the requeue", lambda: self.cluster.job(job)["Restarts"] == "1", 60)
        run = self.finish(job)
        self.assertRegex(self.cluster.run("scontrol", "show", "node", "n3").stdout, rf"Reason=wlb: run {run['run_id']}: node n3 lost")
        self.check_complete(run)
        self.check_repeats(run, attempts=2)
        self.assertEqual(run["nodes"], ["n1", "n2", "n4"])


if __name__ == "__main__":
    harness.main()
