#!/usr/bin/env python3
"""Ranks that stand still: a process that the operating system stops is named, its attempt ends, and its node is left
out."""
import os
import signal
import time

import harness
from harness import wait_for
from training import TrainingTest

ITERATIONS = 160


class Verdicts(TrainingTest):
    def start(self, *options, iterations=ITERATIONS, **more):
        job = self.submit(*options, iterations=iterations, **more)
        self.wait_step(job, 20)
        time.sleep(1.5)  # some reports of healthy steps
        return job

    def stop_rank(self, rank):
        pid = self.rank_pid(rank)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def verdicts(self, job):
        return self.cluster.show(job)["verdicts"]

    def wait_verdict(self, job, state, timeout_s):
        """Returns the first verdict that has reached the state."""
        order = ["suspected", "confirmed", "over"]

        def found():
            return [v for v in self.verdicts(job) if order.index(v["state"]) >= order.index(state)]

        return wait_for(f"a verdict of job {job} that is {state}", found, timeout_s)[0]

    def finish_on(self, job, nodes):
        """Waits for the end; the second attempt has these nodes."""
        run = self.finish(job)
        self.assertEqual(run["state"], "complete")
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]][1:], [nodes])
        return run


class Hangs(Verdicts):
    def test_a_stopped_rank_is_named_and_its_node_left_out(self):
        job = self.start(nodes=4, tasks_per_node=1)
        self.stop_rank(2)
        stopped = time.monotonic()
        first = self.wait_verdict(job, "suspected", 10)
        self.say(f"named after {time.monotonic() - stopped:.1f} s")
        self.assertEqual((first["kind"], first["ranks"], first["nodes"]), ("hang", [2], ["n3"]))
        run = self.finish_on(job, ["n1", "n2", "n4"])
        self.check_complete(run, iterations=ITERATIONS)
        cause = [fault for fault in run["faults"] if fault["cause"]]
        self.assertEqual([(fault["kind"], fault["rank"], fault["node"]) for fault in cause], [("hang", 2, "n3")])
        self.assertRegex(run["attempts"][0]["reason"], r"^rank 2 on n3 hangs at step \d+$")
        verdicts = run["verdicts"]
        self.assertEqual([(v["kind"], v["state"], v["action"], v["ranks"]) for v in verdicts],
                         [("hang", "over", "evict", [2])])
        self.assertIn("stopped by a signal", verdicts[0]["evidence"])

    def test_local_rank_0(self):
        job = self.start(nodes=2, tasks_per_node=2)
        self.stop_rank(2)  # the first on n2
        run = self.finish_on(job, ["n1"])
        self.assertRegex(run["attempts"][0]["reason"], r"^rank 2 on n2 hangs at step \d+$")


if __name__ == "__main__":
    harness.main()
