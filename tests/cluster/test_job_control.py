#!/usr/bin/env python3
"""What users and administrators do to a job that trains: suspend it, requeue it, Ctrl-C in salloc."""
import os
import signal
import subprocess
import time

import harness
import test_time_limit
from harness import wait_for
from training import arguments

SUSPENDED_S = 25  # longer than wlbd lets ranks be silent, and a call last


class JobControl(test_time_limit.StopTest):
    nodes = 2

    def test_suspended(self):
        """All processes of the job are stopped: that is no hang and no lost node, and the same attempt goes on."""
        job = self.submit_slow("", "--requeue", iterations=40, nodes=2)
        self.wait_step(job, 5)
        self.cluster.run("scontrol", "suspend", job)
        wait_for("the suspension", lambda: self.cluster.job(job)["JobState"] == "SUSPENDED", 10)
        time.sleep(1)  # for a step that is just being recorded
        step = self.step_done(job)
        time.sleep(SUSPENDED_S)
        self.assertEqual(self.step_done(job), step)
        self.cluster.run("scontrol", "resume", job)
        run = self.finish(job)
        self.assertEqual((run["state"], run["faults"], len(run["attempts"])), ("complete", [], 1), self.cluster.output(job))
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")
        self.check_losses(run, 40)
        self.check_time_held(run)

    def check_time_held(self, run):
        """The time of the suspension is not counted, though the clock by which steps are timed runs on."""
        spans = self.cluster.sql(f"select extract(epoch from ended_at - began_at), began_at, ended_at from suspensions where run_id = {run['id']}")
        self.assertEqual(len(spans), 1)
        self.assertTrue(SUSPENDED_S <= float(spans[0][0]) <= SUSPENDED_S + 10, spans)
        whole_s, = self.cluster.sql(f"select extract(epoch from ended_at - created_at) from runs where id = {run['id']}")[0]
        self.assertAlmostEqual(run["time_lost"]["held_s"], float(whole_s) - float(spans[0][0]), delta=0.01)

    def test_queued_again_by_an_administrator(self):
        """The run goes on from its checkpoint, and no rank or node is blamed."""
        job = self.submit_slow("", "--requeue", iterations=40, nodes=2)
        self.wait_step(job, 5)
        self.cluster.run("scontrol", "requeue", job)
        run = self.finish(job, 300)
        self.assertEqual((run["state"], len(run["attempts"])), ("complete", 2))
        self.assertEqual([fault for fault in run["faults"] if fault["kind"] in ("rank_lost", "node_lost", "hang")], [])
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        self.check_losses(run, 40)

    def test_interrupt_in_salloc(self):
        """Ctrl-C ends the run at once, as cancelled; the allocation is released and nothing is left. At a terminal it reaches
        the command, elsewhere salloc, which gives the nodes back and waits for its command."""
        for name in ("command", "salloc"):
            with self.subTest(name):
                self.interrupt(name)

    def interrupt(self, name):
        words = ["salloc", "--wlb-layout=pp=1", "-N2", "--ntasks-per-node=1", "wlb", "run", "--", "slow/wlb-worker",
                 *arguments(iterations=100000), "--save", f"ck-{name}", "--load", f"ck-{name}", "--metrics-file", f"m-{name}.jsonl"]
        salloc = subprocess.Popen(words, cwd=self.cluster.work, env=self.cluster.env, start_new_session=True, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(salloc.kill)
        wait_for("its steps", lambda: self.step_done(name) >= 3, 60)
        job = self.cluster.run("squeue", "-h", "-o", "%i", "-t", "R").stdout.split()[-1]
        command = subprocess.run(["pgrep", "-P", str(salloc.pid)], capture_output=True, text=True, check=True).stdout
        os.killpg(int(command) if name == "command" else salloc.pid, signal.SIGINT)
        began = time.monotonic()
        output = salloc.communicate(timeout=30)[0]
        wait_for("the end of the tasks", lambda: not self.cluster.processes("slow_disk"), 10)
        self.say(f"{name}: {time.monotonic() - began:.1f} s")
        wait_for("the end of the job", lambda: self.cluster.job(job)["JobState"] not in ("RUNNING", "COMPLETING"), 20)
        run = wait_for("the run's end", lambda: (shown := self.cluster.show(job))["state"] != "running" and shown, 20)
        self.assertEqual((run["state"], run["faults"]), ("cancelled", []), output)


if __name__ == "__main__":
    harness.main()
