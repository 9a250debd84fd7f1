#!/usr/bin/env python3
"""Nodes that Slurm's power saving has switched off: they are not lost, and a job that waits for their boot is left alone."""
import time

import harness
import test_wlbd_api
from harness import wait_for

POLL_MS = 300
POLLS = 15


class PowerSavingTest(test_wlbd_api.RunningJobs):
    nodes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.cluster.dir / "etc/slurm.conf", "a", encoding="utf-8") as conf:
            conf.write("SuspendProgram=/bin/true\nResumeProgram=/bin/true\nSuspendTime=3600\nSuspendTimeout=1\n"
                       "ResumeTimeout=120\nResumeRate=1\n")
        cls.cluster.verb("kill-service", "slurmctld")
        cls.cluster.verb("start-service", "slurmctld")
        cls.restart_wlbd(f"job_poll_ms = {POLL_MS}\n")

    def power_down(self, number):
        self.cluster.run("scontrol", "update", f"nodename=n{number}", "state=power_down")
        wait_for(f"n{number} without power", lambda: "POWERED_DOWN" in self.node_flags(number), 20)

    def node_flags(self, number):
        text = self.cluster.run("scontrol", "-o", "show", "node", f"n{number}").stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)["State"]

    def sleep_on(self, node):
        job = self.cluster.sbatch("sleep 600", f"--nodelist={node}", "--requeue", nodes=1)
        self.addCleanup(self.cluster.run, "scancel", job)
        return job

    def short_state(self, job):
        return self.cluster.run("squeue", "-h", "-j", job, "-o", "%t").stdout.strip()


class Requeued(PowerSavingTest):
    def test_a_requeued_job_waits_for_as_many_nodes(self):
        run = self.new_run()
        self.ask(run, ["n1", "n2"])
        self.cluster.run("scontrol", "requeuehold", run)
        wait_for("the queue", lambda: self.cluster.job(run)["JobState"] == "PENDING", 20)
        self.power_down(2)
        time.sleep(POLLS * POLL_MS / 1000)
        self.assertEqual([event["kind"] for event in self.show(run)["events"]], [])  # it has not been resized


class Boot(PowerSavingTest):
    def test_the_boot_of_its_node_is_no_loss_of_a_job(self):
        """Slurm starts one node a minute, and another one first: n1 is without power as long as the test lasts."""
        self.power_down(1)
        self.power_down(2)
        self.sleep_on("n2")
        wait_for("the boot of n2", lambda: "POWERING_UP" in self.node_flags(2), 20)
        job = self.sleep_on("n1")
        self.assertEqual(self.api.call("POST", "/v1/runs", {"job_id": job})[0], 200)
        wait_for("nodes that are to boot", lambda: self.short_state(job) == "CF", 20)
        time.sleep(POLLS * POLL_MS / 1000)
        self.assertIn("POWERED_DOWN", self.node_flags(1))
        self.assertEqual((self.short_state(job), self.cluster.job(job)["Restarts"]), ("CF", "0"))


if __name__ == "__main__":
    harness.main()
