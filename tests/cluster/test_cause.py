#!/usr/bin/env python3
"""The recorded cause and reason of an attempt are those of the faults that were injected."""
import itertools
import time

import harness
import training
from found_fault import found_fault
from harness import ClusterTest


class Settle(ClusterTest):
    """Cause and reason of an attempt do not depend on the order in which its faults and its end are reported."""

    nodes = 1
    NODE = ("node_lost", "n3", None, {"alive_at": 100}, 100)
    LATER_NODE = ("node_lost", "n3", None, {"alive_at": 103}, 103)
    KILLED = ("rank_lost", "n2", 2, {"exit_code": 137, "first": True}, 101)
    FAILED = ("rank_lost", "n4", 4, {"exit_code": 7}, 101)
    CLOSED = ("rank_lost", "n1", 0, None, 99)
    LAUNCHER = ("launcher_lost", "n1", None, {"during": 100}, 100)
    SCRIPT = ("script_lost", "n1", None, {"during": 101}, 101)
    SRUN = ("step_failed", None, None, {"step_broken": True}, 101)
    STEP = ("step_failed", None, None, None, 102)
    EVICTED = ("hang", "n2", 3, {"evicted": "rank 3 hangs"}, 101)
    # Of one loss that is told twice:
    GONE = ("rank_lost", "n2", 2, None, 99)
    NODE_AFTER_END = ("node_lost", "n3", None, {"alive_at": 98, "after_end": True}, 100)
    LAUNCHER_AT_SOME_TIME = ("launcher_lost", "n1", None, None, 103)
    BEFORE = ("rank_lost", "n4", 4, {"exit_code": 7}, 99)
    SENTENCES = ((NODE, "node n3 is lost"), (LATER_NODE, "node n3 is lost"), (KILLED, "rank 2 on n2 was killed by signal 9"),
                 (FAILED, "rank 4 on n4 ended with exit code 7"), (CLOSED, "rank 0 on n1 is lost"),
                 (LAUNCHER, "wlb run on n1 was killed"), (SCRIPT, "the detail"), (SRUN, "the detail"), (STEP, "rank 9 was it"),
                 (LAUNCHER_AT_SOME_TIME, "wlb run on n1 was killed"), (EVICTED, "rank 3 hangs"),
                 (BEFORE, "rank 4 on n4 ended with exit code 7"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.verb("kill-wlbd")  # it would end these runs, whose jobs Slurm does not know

    def reasons_after(self, name, faults, end_at):
        """Stores the faults in this order, with the launcher's report of the end before fault `end_at`; returns the reasons of
        the attempt and of the run."""
        uuid = f"00000000-0000-4000-8000-{name:012d}"
        calls = [found_fault(f"(select id from attempts where uuid = '{uuid}')", kind, node, rank, 5, "the detail", proof, at)
                 for kind, node, rank, proof, at in faults]
        calls.insert(end_at, f"select wlb_attempt_end((select id from attempts where uuid = '{uuid}'), 'failed', 137, "
                             "'rank 9 was it', to_timestamp(104))")
        calls.append(f"select wlb_run_end((select id from runs where job_id = {name}), 'failed', "
                     "'rank 9 was it, and there is no next attempt', 'launcher')")
        calls.append(f"select a.reason, r.reason from attempts a join runs r on r.id = run_id where uuid = '{uuid}'")
        return self.cluster.sql(f"insert into runs (name, job_id, uid, user_name) values ('{name}', {name}, 0, 'root');"
                                f"select wlb_attempt_create((select id from runs where job_id = {name}), '{uuid}');"
                                + ";".join(calls))[-1]

    def test_order_does_not_matter(self):
        cases = ((self.NODE, self.KILLED, self.CLOSED, self.STEP), (self.KILLED, self.LATER_NODE, self.STEP),
                 (self.FAILED, self.CLOSED, self.STEP), (self.LAUNCHER, self.KILLED, self.CLOSED),
                 (self.LAUNCHER, self.FAILED), (self.SCRIPT, self.LAUNCHER, self.KILLED), (self.SRUN, self.KILLED, self.CLOSED),
                 (self.NODE, self.LAUNCHER, self.STEP), (self.CLOSED, self.STEP), (self.STEP,),
                 (self.EVICTED, self.KILLED, self.LAUNCHER), (self.EVICTED, self.LATER_NODE), (self.NODE, self.EVICTED),
                 (self.KILLED, self.GONE), (self.SRUN, self.STEP, self.KILLED), (self.FAILED, self.NODE_AFTER_END, self.NODE),
                 (self.LAUNCHER, self.LAUNCHER_AT_SOME_TIME, self.FAILED), (self.BEFORE, self.LAUNCHER, self.LAUNCHER_AT_SOME_TIME),
                 (self.LAUNCHER_AT_SOME_TIME, self.BEFORE))
        name = 1000
        for faults in cases:
            for order in itertools.permutations(faults):
                name += 1
                with self.subTest(faults=order):
                    reason, run_reason = self.reasons_after(name, order, name % (len(order) + 1))
                    self.assertEqual(reason, next(sentence for fault, sentence in self.SENTENCES if fault == faults[0]))
                    self.assertEqual(run_reason, f"{reason}, and there is no next attempt")


class LostNode(training.TrainingTest):
    """Runs wlb-worker, whose ranks on other nodes abort when a node is lost: they are not the cause."""
    ITERATIONS = 288  # more than pass until the node is lost

    def check(self, job):
        run = self.finish(job)
        self.check_complete(run, iterations=self.ITERATIONS)
        self.assertEqual([(fault["attempt"], fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]],
                         [(1, "node_lost", "n3")], run["faults"])
        self.assertEqual(run["attempts"][0]["reason"], "node n3 is lost")

    def lose_node(self):
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)

    def test_node_and_wlbd_killed_together(self):
        job = self.submit(iterations=self.ITERATIONS)
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        self.cluster.verb("kill-wlbd")
        self.lose_node()
        time.sleep(3)
        self.cluster.verb("start-wlbd")
        self.check(job)

    def test_wlbd_then_node(self):
        job = self.submit(iterations=self.ITERATIONS)
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        self.cluster.verb("kill-wlbd")
        time.sleep(1.5)
        self.lose_node()
        self.cluster.verb("start-wlbd")
        self.check(job)


if __name__ == "__main__":
    harness.main()
