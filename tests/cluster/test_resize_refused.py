#!/usr/bin/env python3
"""Slurm refuses what wlbd orders of a job, such as to start on fewer nodes or to end: it is asked until it does."""
import os
import unittest.mock

import harness
from test_job_end import JobEndTest

REFUSALS = 3


class ResizeRefused(JobEndTest):
    nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.refusals = cls.cluster.work / "refusals"
        library = harness.BUILD / "tests" / "refuse_resize.so"
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=str(library), WLB_TEST_REFUSALS=str(cls.refusals)):
            cls.cluster.restart_wlbd()

    def test_node_of_the_script(self):
        job = self.submit(nodes=3)
        self.wait_running(job)
        self.refusals.write_text("x" * REFUSALS, encoding="ascii")
        self.cluster.verb("freeze-node", "1")
        self.wait_running(job, attempts=2, timeout_s=120)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.refusals.stat().st_size, 0)
        self.assertEqual([event["detail"] for event in run["events"] if event["kind"] == "job_resized"],
                         [f"job {job} was requeued and may start on 2 to 3 nodes"])
        self.cluster.kill_node(1)
        self.cluster.restore_node(1)

    def test_job_without_its_script(self):
        """Its end is recorded once Slurm has ended it, not before."""
        job = self.submit("--nodelist=n2,n3", after="sleep 1007", nodes=2, arguments="--max-restarts 0")
        self.wait_running(job)
        self.cluster.run("scancel", "--signal=KILL", f"{job}.0")
        self.wait_state(job, "failed")
        self.refusals.write_text("x" * REFUSALS, encoding="ascii")
        self.cluster.verb("freeze-node", "2")
        self.assertEqual(self.cluster.wait_job(job, 120), "CANCELLED")
        self.assertEqual(self.refusals.stat().st_size, 0)
        self.assertEqual([event["kind"] for event in self.cluster.show(job)["events"] if event["kind"].startswith("job_")],
                         ["job_ended"])
        self.cluster.kill_node(2)
        self.cluster.restore_node(2)

    def test_job_that_is_not_queued_again(self):
        """What Slurm refuses is none of the three times that a job is requeued, and the run says why."""
        job = self.submit()
        self.wait_running(job)
        self.refusals.write_text("x" * REFUSALS, encoding="ascii")
        self.kill_launcher(job)
        self.wait_running(job, attempts=2, timeout_s=120)
        self.assertEqual(self.refusals.stat().st_size, 0)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.cluster.sql(f"select requeues from runs where id = {run['id']}"), [["1"]])
        events = [(event["kind"], event["detail"]) for event in run["events"] if event["kind"].startswith("job_")]
        self.assertEqual([kind for kind, _ in events], ["job_not_requeued", "job_requeued"])
        self.assertRegex(events[0][1], f"^job {job}: Slurm does not requeue it: .")


if __name__ == "__main__":
    harness.main()
