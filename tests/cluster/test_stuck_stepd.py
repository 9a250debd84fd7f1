#!/usr/bin/env python3
"""A slurmstepd that waits for ever in PMIx_server_finalize, as it does in a deadlock of libpmix: gone with the job."""
import os
import pathlib
import signal
import unittest.mock

import harness
from harness import ClusterTest, wait_for


class StuckStepd(ClusterTest):
    nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plugstack = (cls.cluster.dir / "etc" / "plugstack.conf").read_text(encoding="utf-8")
        shim = harness.BUILD / "tests" / "pmix_finalize.so"
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=str(shim), WLB_TEST_FINALIZE=str(cls.cluster.work)):
            for number in range(1, cls.nodes + 1):
                cls.cluster.verb("kill-service", f"slurmd-n{number}")
                cls.cluster.verb("start-service", f"slurmd-n{number}")

    def setUp(self):
        self.finalize("hang-n1", "slow-n2")

    def finalize(self, *names):
        """What the end of PMIx is like from now on: the files that the preloaded library looks for."""
        for kind in ("hang", "poll", "slow"):
            for path in self.cluster.work.glob(f"{kind}-*"):
                path.unlink()
        for name in names:
            (self.cluster.work / name).touch()

    def stepds(self, step, node="n*"):
        """Pids: their title tells the step, and the log that they write to tells the node."""
        logs = {str(path) for path in self.cluster.dir.glob(f"log/slurmd-{node}.log")}
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (f"slurmstepd: [{step}]" == (folder / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
                        and logs & {os.readlink(file) for file in (folder / "fd").iterdir()}):
                    found.append(int(folder.name))
            except OSError:  # it has just ended
                continue
        return found

    def log(self, node):
        return (self.cluster.dir / "log" / f"slurmd-{node}.log").read_text(encoding="utf-8", errors="replace")

    def notes(self, job):
        return list((self.cluster.dir / "state").glob(f"*.{job}.steps"))

    def submit(self, *options, script="srun --mpi=pmix true"):
        return self.cluster.sbatch(script, "--ntasks-per-node=1", *options, nodes=self.nodes)

    def wait_gone(self, pid, timeout_s=60):
        wait_for(f"the end of slurmstepd {pid}", lambda: not pathlib.Path(f"/proc/{pid}").exists(), timeout_s)

    def test_ended_with_the_job(self):
        """That of n1 is killed; that of n2 ends late, by itself; those of another job's step on the same nodes go on."""
        other = self.submit("--wlb-layout=auto", script="srun --mpi=pmix sleep 1009")
        self.addCleanup(self.cluster.run, "scancel", other)
        # One on each node: that of a node has a child of the same title for a moment.
        each = [f"n{number}" for number in range(1, self.nodes + 1)]
        others = wait_for("the other step", lambda: (found := [self.stepds(f"{other}.0", node) for node in each]) and
                          all(len(pids) == 1 for pids in found) and sorted(sum(found, [])), 60)
        job = self.submit("--wlb-layout=auto")
        stuck = wait_for("slurmstepd in PMIx_server_finalize", lambda: self.stepds(f"{job}.0", "n1"), 60)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertEqual(self.stepds(f"{job}.0"), [])
        self.assertIn(f"wlb: killed slurmstepd {stuck[0]} of step {job}.0: the step was over", self.log("n1"))
        self.assertTrue((self.cluster.work / "slow-n2.done").exists())
        for node in ("n2", "n3"):
            self.assertNotIn("wlb: killed slurmstepd", self.log(node))
        self.assertEqual(sorted(self.stepds(f"{other}.0")), others)
        self.assertEqual(len(self.notes(other)), self.nodes)
        self.assertEqual(self.cluster.job(other)["JobState"], "RUNNING")
        self.assertEqual(self.notes(job), [])

    def test_a_job_that_is_queued_again(self):
        """Its step of the same number is launched, although the one before was stuck: what that held of PMIx is free."""
        script = "srun --mpi=pmix bash -c 'while ! [ -e end-$SLURM_JOB_ID ]; do sleep 0.2; done'"
        job = self.submit("--wlb-layout=auto", "--requeue", "--open-mode=append", script=script)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        wait_for("the step", lambda: len(self.stepds(f"{job}.0")) == self.nodes, 60)
        stuck = self.stepds(f"{job}.0", "n1")[0]
        self.cluster.run("scontrol", "requeue", job)
        self.wait_gone(stuck)
        self.finalize()
        (self.cluster.work / f"end-{job}").touch()
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.assertIn(f"wlb: killed slurmstepd {stuck} of step {job}.0", self.log("n1"))
        self.assertIn(f"wlb: removed what a killed slurmstepd had left of PMIx for step {job}.0", self.log("n1"))

    def test_left_alone(self):
        """That of a job without our options; and that of every job where an administrator wants it so."""
        jobs = [self.submit()]
        self.assertEqual(self.cluster.wait_job(jobs[0]), "COMPLETED")
        path = self.cluster.dir / "etc" / "plugstack.conf"
        self.addCleanup(path.write_text, self.plugstack, encoding="utf-8")
        path.write_text(f"{self.plugstack.rstrip()} end_stuck_stepd=no\n", encoding="utf-8")
        jobs.append(self.submit("--wlb-layout=auto"))
        self.assertEqual(self.cluster.wait_job(jobs[1]), "COMPLETED")
        for job in jobs:
            self.assertEqual(self.notes(job), [])
            stuck = self.stepds(f"{job}.0", "n1")
            self.assertEqual(len(stuck), 1, f"slurmstepds of job {job} on n1")
            self.assertNotIn(f"wlb: killed slurmstepd {stuck[0]}", self.log("n1"))
            os.kill(stuck[0], signal.SIGKILL)
            self.wait_gone(stuck[0])

    def test_one_that_is_still_at_work(self):
        """It is waited for, but neither killed nor for ever."""
        self.finalize("poll-n1")
        job = self.submit("--wlb-layout=auto")
        working = wait_for("slurmstepd in PMIx_server_finalize", lambda: self.stepds(f"{job}.0", "n1"), 60)[0]
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertEqual(self.stepds(f"{job}.0"), [working])
        self.assertIn(f"wlb: slurmstepd {working} of step {job}.0 has not ended within 10 s, and is left alone", self.log("n1"))
        self.finalize()
        self.wait_gone(working)
        self.assertNotIn(f"wlb: killed slurmstepd {working}", self.log("n1"))


if __name__ == "__main__":
    harness.main()
