#!/usr/bin/env python3
"""A step that a node does not launch, and what a killed slurmstepd has left of PMIx, which would be a reason for that."""
import os
import pathlib
import pwd
import socket

import harness
from harness import ClusterTest, wait_for


class LaunchTest(ClusterTest):
    nodes = 3

    def submit(self, *options):
        """A held job of 3 nodes, whose ranks end once the file end-JOB is there."""
        return self.cluster.sbatch("wlb run -- bash -c 'while ! [ -e end-$SLURM_JOB_ID ]; do sleep 0.2; done'",
                                   "--wlb-layout=auto", "--no-kill", "--hold", "--open-mode=append", "--ntasks-per-node=1",
                                   *options, nodes=3)

    def spool(self, node):
        return pathlib.Path(self.cluster.dir) / f"spool-{node}"

    def socket_path(self, node, job, step=0):
        return self.spool(node) / f"stepd.slurm.pmix.{job}.{step}"

    def plant_socket(self, node, job):
        """As a slurmstepd leaves it that was killed: the file, and nobody who listens."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(str(self.socket_path(node, job)))
            server.listen()

    def plant_directories(self, node, job):
        user = pwd.getpwnam(self.cluster.run("squeue", "-h", "-j", job, "-o", "%u").stdout.strip())
        server = self.spool(node) / f"pmix.{job}.0"
        tasks = pathlib.Path(self.cluster.dir) / f"tmp-{node}" / f"spmix_appdir_{user.pw_uid}_{job}.0"
        for folder in (server, tasks):
            folder.mkdir(mode=0o700)
            (folder / "left").write_text("by a killed slurmstepd", encoding="ascii")
            for path in (folder, folder / "left"):
                os.chown(path, user.pw_uid, -1)
        return server, tasks

    def wait_running(self, job, attempts):
        def running():
            shown = self.cluster.run("wlb", "show", job, "--json", check=False)
            if shown.returncode != 0:
                return False
            states = [attempt["state"] for attempt in self.cluster.show(job)["attempts"]]
            return len(states) == attempts and states[-1] == "running"

        wait_for(f"attempt {attempts} of job {job}", running, 60)

    def end(self, job):
        (self.cluster.work / f"end-{job}").touch()
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        return self.cluster.show(job)

    def test_what_a_killed_slurmstepd_has_left(self):
        job = self.submit()
        for node in ("n2", "n3"):
            self.plant_socket(node, job)
        left = self.plant_directories("n2", job)
        self.cluster.run("scontrol", "release", job)
        self.wait_running(job, 1)
        self.assertFalse(any((folder / "left").exists() for folder in left))
        run = self.end(job)
        self.assertEqual((run["state"], len(run["attempts"]), run["faults"]), ("complete", 1, []))
        log = (pathlib.Path(self.cluster.dir) / "log" / "slurmd-n2.log").read_text(encoding="utf-8", errors="replace")
        self.assertIn(f"wlb: removed what a killed slurmstepd had left of PMIx for step {job}.0", log)

    def test_a_node_that_does_not_launch_its_tasks(self):
        """PMIx cannot have its socket there, since another process listens on it: it is not removed."""
        job = self.submit()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(str(self.socket_path("n3", job)))
            server.listen()
            self.cluster.run("scontrol", "release", job)
            self.wait_running(job, 2)
            self.assertTrue(self.socket_path("n3", job).exists())
        run = self.end(job)
        self.assertEqual((run["state"], len(run["attempts"])), ("complete", 2))
        causes = [(fault["kind"], fault["node"], fault["attempt"]) for fault in run["faults"] if fault["cause"]]
        self.assertEqual(causes, [("step_failed", "n3", 1)], run["faults"])
        self.assertRegex(run["attempts"][0]["reason"], r"^the Slurm step was not launched on n3: \w")


if __name__ == "__main__":
    harness.main()
