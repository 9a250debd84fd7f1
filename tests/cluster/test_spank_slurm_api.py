#!/usr/bin/env python3
"""coordinator/slurm against a real controller: every call of slurm_api.h, through tests/slurm_probe."""
import os
import re
import unittest

from harness import BUILD, ClusterTest, main, wait_for

PROBE = BUILD / "tests" / "slurm_probe"


class SlurmApi(ClusterTest):
    nodes = 4

    def probe(self, *words, check=True):
        """Runs one call; returns its "name=value" lines."""
        result = self.cluster.run(PROBE, *words, check=check)
        if not check:
            return result
        return dict(line.split("=", 1) for line in result.stdout.splitlines())

    def node(self, name):
        return self.probe("nodes")[name]

    def running(self, job):
        return wait_for(f"start of job {job}", lambda: self.probe("job", job)["state"] == "RUNNING", 30)

    def test_job_from_submission_to_end(self):
        job = self.cluster.sbatch("sleep 60", "-J", "train", "--requeue", nodes=2)
        self.running(job)
        seen = self.probe("job", job)
        self.assertEqual((seen["job_id"], seen["uid"], seen["name"]), (str(job), str(os.getuid()), "train"))
        self.assertRegex(seen["nodes"], r"^n\[\d[-,]\d\]$")
        self.assertEqual(seen["batch_host"], f"n{seen['nodes'][2]}")
        self.assertEqual((seen["running"], seen["finished"], seen["requeue"]), ("1", "0", "1"))
        self.assertGreater(int(seen["submit_time"]), 1_700_000_000)
        self.assertLessEqual(abs(float(seen["clock_ahead_s"])), 2)  # one host
        self.cluster.run("scancel", job)
        wait_for("end", lambda: self.probe("job", job)["finished"] == "1", 30)
        self.assertEqual(self.probe("job", job)["state"], "CANCELLED")

    def test_output_of_a_job(self):
        job = self.cluster.sbatch("true", "--output=out-%j", "--error=%x.err", "-J", "train")
        folder = self.cluster.work
        self.assertEqual(self.probe("output", job), {"out": f"{folder}/out-{job}", "error": f"{folder}/train.err"})
        self.cluster.wait_job(job)

    def test_unknown_job(self):
        self.assertEqual(self.probe("job", 4_000_000)["found"], "0")
        self.assertEqual(self.probe("output", 4_000_000), {"out": "", "error": ""})

    def test_task_of_an_array(self):
        job = self.cluster.sbatch("sleep 60", "--array=1-2", "--no-requeue")
        wait_for("both tasks", lambda: len(self.cluster.run("squeue", "-h", "-t", "R").stdout.splitlines()) == 2, 30)
        self.assertEqual(self.probe("job", job)["job_id"], str(job))
        self.assertEqual(self.probe("job", job)["requeue"], "0")
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_one_task_of_an_array_is_ended(self):
        """The last task has the number of the array."""
        array = self.cluster.sbatch("sleep 300", "--array=1-3", "--no-requeue")
        self.addCleanup(self.cluster.run, "scancel", array, check=False)

        def running():
            listed = self.cluster.run("squeue", "-h", "-t", "R", "-j", array, "-O", "JobID:20,ArrayTaskID:20").stdout
            return {int(task): job for job, task in map(str.split, listed.splitlines())}

        wait_for("the three tasks", lambda: len(running()) == 3, 30)
        tasks = running()
        self.assertEqual(tasks[3], str(array))
        for ended, left in ((3, {1, 2}), (1, {2})):
            self.probe("end", tasks[ended])
            wait_for(f"the end of task {ended}", lambda left=left: set(running()) == left, 30)
            self.probe("end", tasks[ended])  # what is gone is not an error
            self.assertEqual(set(running()), left)
        self.probe("end", 4_000_000)

    def test_nodes(self):
        nodes = self.probe("nodes")
        self.assertEqual(sorted(nodes), ["n1", "n2", "n3", "n4"])
        self.assertRegex(nodes["n1"], r"^127\.0\.0\.1 port=\d+ cpus=\d+ gpus=\d+ down=0 drained=0 ")
        self.assertEqual(len({re.search(r"port=(\d+)", node).group(1) for node in nodes.values()}), 4)

    def lose(self, job):
        """Kills a node of the job that does not run its script; gives it back after the test. Returns its name."""
        seen = self.probe("job", job)
        names = self.cluster.run("scontrol", "show", "hostnames", seen["nodes"]).stdout.split()
        name = next(name for name in names if name != seen["batch_host"])
        self.cluster.kill_node(name[1:])

        def restore():
            self.cluster.restore_node(name[1:])
            self.cluster.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
            wait_for("the node's return", lambda: "down=0 drained=0" in self.node(name), 30)

        self.addCleanup(restore)
        return name

    def test_drain_lets_the_step_be_and_down_breaks_it(self):
        job = self.cluster.sbatch("srun sleep 60 || echo broken; sleep 60", "--no-kill", nodes=2)
        self.running(job)
        wait_for("step", lambda: self.cluster.run("squeue", "-h", "-s", "-j", job).stdout.count(".0 "), 30)
        other = self.lose(job)
        self.cluster.run("scontrol", "update", f"nodename={other}", "state=drain", "reason=wlb: a test")
        self.assertRegex(self.node(other), r"down=0 drained=1 .*reason=wlb: a test")
        self.assertNotIn("broken", self.cluster.output(job))
        self.probe("down", other, "wlb: lost")
        wait_for("broken step", lambda: "broken" in self.cluster.output(job), 10)
        self.assertRegex(self.node(other), r"down=1 .*reason=wlb: lost")
        self.assertEqual(self.probe("job", job)["nodes"], self.probe("job", job)["batch_host"])
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_step_is_killed_and_the_job_goes_on(self):
        job = self.cluster.sbatch("srun sleep 60; echo over; sleep 60")
        self.running(job)
        wait_for("step", lambda: self.cluster.run("squeue", "-h", "-s", "-j", job).stdout.count(".0 "), 30)
        self.probe("kill", job, 0, 9)
        wait_for("end of the step", lambda: "over" in self.cluster.output(job), 15)
        self.assertEqual(self.probe("job", job)["state"], "RUNNING")
        self.probe("kill", job, 0, 9)  # what is gone needs no signal
        self.probe("kill", 4_000_000, 0, 9)
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_requeued_job_starts_on_fewer_nodes(self):
        job = self.cluster.sbatch("echo start $SLURM_JOB_NUM_NODES $SLURM_NTASKS; sleep 60", "--requeue", "--no-kill",
                                  "--open-mode=append", "--ntasks-per-node=2", nodes=4)
        self.running(job)
        wait_for("first start", lambda: "start 4" in self.cluster.output(job), 15)
        self.probe("down", self.lose(job), "wlb: lost")
        self.probe("requeue", job)
        wait_for("queue", lambda: self.probe("job", job)["state"] == "PENDING", 30)
        self.probe("resize", job, 3, 3)
        wait_for("second start", lambda: "start 3" in self.cluster.output(job), 60)
        self.assertEqual(self.probe("job", job)["restart_count"], "1")
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_job_without_requeue_is_not_requeued(self):
        job = self.cluster.sbatch("sleep 60", "--no-requeue")
        self.running(job)
        self.assertIn("--requeue", self.probe("requeue", job, check=False).stderr)
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_configuration(self):
        self.assertEqual(self.probe("config", "ClusterName"), {"known": "1", "value": "local"})
        self.assertIn("munge.sock", self.probe("config", "AuthInfo")["value"])
        self.assertEqual(self.probe("config", "Cluster"), {"known": "0", "value": ""})
        self.assertEqual(self.probe("user")["user"], str(os.getuid()))

    @unittest.skipUnless(os.getuid() == 0, "needs root to be another user")
    def test_others_are_refused(self):
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        result = self.cluster.run(*become, PROBE, "down", "n1", "mine", check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "n1: Slurm does not set it DOWN: (Invalid user id|Access/permission denied)")


if __name__ == "__main__":
    main()
