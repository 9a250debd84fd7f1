#!/usr/bin/env python3
"""A node of which Slurm says that it does not respond, while processes on it report to wlbd, is not lost."""
import re
import time

import harness
from harness import wait_for
from test_job_end import JobEndTest

SLURMD_TIMEOUT_S = 60  # after which Slurm sets the node DOWN
WATCHED_S = 10
BACK_OFF_S = 60  # in which Slurm finds that the node does not respond


class NotResponding(JobEndTest):
    nodes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        settings = cls.cluster.dir / "etc/wlbd.conf"
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace("back_off_ms = 0", f"back_off_ms = {BACK_OFF_S * 1000}"), encoding="utf-8")
        cls.cluster.restart_wlbd("job_poll_ms = 500\n")
        conf = cls.cluster.dir / "etc/slurm.conf"
        text = conf.read_text(encoding="utf-8")
        conf.write_text(re.sub(r"\bSlurmdTimeout=\d+", f"SlurmdTimeout={SLURMD_TIMEOUT_S}", text), encoding="utf-8")
        cls.cluster.run("scontrol", "reconfigure")

    def state(self, node):
        return self.cluster.run("sinfo", "-h", "-n", node, "-o", "%t").stdout.strip()

    def wait_not_responding(self, *step):
        self.cluster.run("scancel", "--signal=CONT", *step, check=False)  # a message that n1 does not answer
        wait_for("Slurm's word that n1 does not respond", lambda: self.state("n1").endswith("*"), 60)

    def test_node_of_the_script(self):
        """Its script and its ranks go on: the job is not requeued."""
        job = self.submit("--nodelist=n1,n2", nodes=2)
        self.wait_running(job)
        self.cluster.verb("freeze-service", "slurmd-n1")
        self.wait_not_responding(f"{job}.0")
        counted, until = self.count(job), time.monotonic() + WATCHED_S
        while time.monotonic() < until:
            self.assertEqual(self.cluster.job(job)["Restarts"], "0")
            self.assertEqual([attempt["state"] for attempt in self.cluster.show(job)["attempts"]], ["running"])
            time.sleep(1)
        self.assertGreater(self.count(job), counted)
        self.cluster.verb("thaw-service", "slurmd-n1")
        self.end(job)
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED")

    def check_between_attempts(self, before, runs):
        """`before` comes before the last of the script's runs, whose wlb run waits for its next attempt."""
        job = self.cluster.sbatch(f"{before}\nwlb run -- bash -c '[ -e ready-$SLURM_JOB_ID ] || exit 3'", "--wlb-layout=auto", "--no-kill", "--requeue",
                                  "--ntasks-per-node=1", "--nodelist=n1,n2", nodes=2)
        wait_for("the pause", lambda: "the next one starts in" in self.cluster.output(job), 60)
        left = self.cluster.sql(f"select run->>'run' from json_array_elements(wlb_runs_left()) run where run->>'job_id' = '{job}'")
        self.assertEqual(left, [], "the job is judged by its open run")
        self.cluster.verb("freeze-service", "slurmd-n1")
        self.wait_not_responding("--batch", job)
        until = time.monotonic() + WATCHED_S
        while time.monotonic() < until:
            self.assertEqual(self.cluster.job(job)["Restarts"], "0")
            self.assertEqual([len(self.cluster.show(run)["attempts"]) for run in self.runs_of(job)], [1] * runs)
            time.sleep(1)
        (self.cluster.work / f"ready-{job}").touch()
        self.cluster.verb("thaw-service", "slurmd-n1")
        self.assertEqual(self.cluster.wait_job(job, 2 * BACK_OFF_S), "COMPLETED")
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_node_of_the_script_between_attempts(self):
        """Nothing reports while wlb run waits for its next attempt."""
        self.check_between_attempts("", runs=1)

    def test_node_of_the_script_after_an_earlier_run(self):
        """The launcher of the script's second run works, though that of its first has ended."""
        self.check_between_attempts("wlb run -- true", runs=2)

    def test_node_of_a_script_that_has_no_launcher(self):
        """It works after its wlb run: nothing reports to wlbd that it is alive."""
        job = self.cluster.sbatch("wlb run -- true\nwhile ! [ -e ready-$SLURM_JOB_ID ]; do sleep 0.2; done", "--wlb-layout=auto",
                                  "--no-kill", "--requeue", "--ntasks-per-node=1", "--nodelist=n1,n2", nodes=2)
        wait_for("the end of wlb run", lambda: f"run {job} complete" in self.cluster.output(job), 60)
        self.cluster.verb("freeze-service", "slurmd-n1")
        self.wait_not_responding("--batch", job)
        until = time.monotonic() + 2 * WATCHED_S  # for 10 s its launcher counts as one that works
        while time.monotonic() < until:
            seen = self.cluster.job(job)
            self.assertEqual((seen["JobState"], seen["Restarts"]), ("RUNNING", "0"))
            time.sleep(1)
        (self.cluster.work / f"ready-{job}").touch()
        self.cluster.verb("thaw-service", "slurmd-n1")
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED")


if __name__ == "__main__":
    harness.main()
