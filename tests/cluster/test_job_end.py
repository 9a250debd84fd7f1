#!/usr/bin/env python3
"""A job whose launcher or script was killed goes on, and how a job ended is how its run did."""
import os
import signal
import time

import harness
from harness import ClusterTest, wait_for

# A trainer that knows nothing of WLB: it counts, and goes on from its own checkpoint. {end} is a file that ends it.
TRAINER = ("n=$(cat count-$SLURM_JOB_ID 2>/dev/null || echo 0); while ! [ -e end-$SLURM_JOB_ID ]; do n=$((n + 1)); "
           "[ $SLURM_PROCID != 0 ] || {{ echo $n > count-$SLURM_JOB_ID.new; mv count-$SLURM_JOB_ID.new "
           "count-$SLURM_JOB_ID; }}; sleep 0.2; done")


class JobEndTest(ClusterTest):
    nodes = 4

    def submit(self, *options, after="echo next line", nodes=1, arguments="", trainer=TRAINER):
        script = f"echo start ${{SLURM_RESTART_COUNT:-0}}\nwlb run {arguments} -- bash -c '{trainer.format()}'\n{after}"
        return self.cluster.sbatch(script, "--wlb-layout=auto", "--no-kill", "--requeue", "--open-mode=append",
                                   "--ntasks-per-node=1", *options, nodes=nodes)

    def end(self, job):
        (self.cluster.work / f"end-{job}").touch()

    def count(self, job):
        path = self.cluster.work / f"count-{job}"
        return int(path.read_text(encoding="ascii").strip() or 0) if path.exists() else 0

    def wait_running(self, job, attempts=1, timeout_s=60):
        """The run's newest attempt runs, its trainer counting."""

        def running():
            shown = self.cluster.run("wlb", "show", job, "--json", check=False)
            if shown.returncode != 0:
                return False
            run = self.cluster.show(job)
            return (run["state"] == "running" and len(run["attempts"]) == attempts
                    and run["attempts"][-1]["state"] == "running" and self.count(job) > 0)

        wait_for(f"attempt {attempts} of job {job}", running, timeout_s)

    def pids(self, job, *words, begins=""):
        found = []
        for pid in self.cluster.processes(*words):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = f"SLURM_JOB_ID={job}\0".encode() in file.read()
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if mine and line.startswith(begins):
                found.append(pid)
        return found

    def kill(self, job, *words, begins=""):
        found = self.pids(job, *words, begins=begins)
        self.assertTrue(found, f"no process {words} of job {job}")
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    def kill_launcher(self, job):
        self.kill(job, "wlb run", begins="wlb run")

    def kill_script(self, job):
        self.kill(job, "slurm_script")

    def wait_state(self, job, *states, timeout_s=90):
        wait_for(f"run {job} {states}", lambda: self.cluster.show(job)["state"] in states, timeout_s, 0.5)
        return self.cluster.show(job)

    def causes(self, run):
        return [(fault["attempt"], fault["kind"]) for fault in run["faults"] if fault["cause"]]

    def runs_of(self, job):
        return [row[0] for row in self.cluster.sql(f"select name from runs where job_id = {job} order by id")]

    def requeues(self, run):
        return [event for event in run["events"] if event["kind"] == "job_requeued"]


class WithoutScript(JobEndTest):
    """The node of the script dies; the others keep the job, which was submitted with --no-kill."""

    FIRST_TIME_WAITS = "[ -e again-$SLURM_JOB_ID ] || { touch again-$SLURM_JOB_ID; sleep 1007; }"

    def test_nodes_that_are_left(self):
        """The run is complete, and its job, which is requeued for the rest of its script, does not wait for the dead node."""
        job = self.submit(after=f"{self.FIRST_TIME_WAITS}\necho last line", nodes=4)
        self.wait_running(job)
        self.end(job)
        self.wait_state(job, "complete")
        wait_for("the script", lambda: self.cluster.processes("sleep 1007"), 20)
        self.cluster.kill_node(1)
        try:
            self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED")
        finally:
            self.cluster.restore_node(1)
        self.assertIn("last line", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "complete")
        self.assertNotIn("n1", run["attempts"][-1]["nodes"])
        self.assertEqual([event["detail"] for event in run["events"] if event["kind"] == "job_resized"],
                         [f"job {job} was requeued and may start on 3 to 4 nodes"])

    def test_node_of_the_script(self):
        """Whether its run has ended or not, no job runs on without its script."""
        waits = self.FIRST_TIME_WAITS
        done = self.submit("--nodelist=n1,n2", after=f"{waits}\necho last line", nodes=2)
        failed = self.submit("--nodelist=n1,n3", after=waits, nodes=2, arguments="--max-restarts 0")
        kept = self.submit("--nodelist=n1,n4", "--no-requeue", nodes=2)
        for job in (done, failed, kept):
            self.wait_running(job)
        self.end(done)
        self.wait_state(done, "complete")
        self.cluster.run("scancel", "--signal=KILL", f"{failed}.0")
        self.wait_state(failed, "failed")
        wait_for("the scripts", lambda: len(self.cluster.processes("sleep 1007")) >= 2, 20)
        self.cluster.verb("freeze-node", "1")  # what is killed may still tell Slurm of the script's end
        self.assertEqual(self.cluster.wait_job(failed, 90), "CANCELLED")
        self.assertEqual(self.cluster.wait_job(kept, 90), "CANCELLED")
        self.cluster.kill_node(1)
        self.cluster.restore_node(1)
        self.assertEqual(self.cluster.wait_job(done, 120), "COMPLETED")
        self.assertIn("last line", self.cluster.output(done))
        run = self.cluster.show(done)
        self.assertEqual((run["state"], self.cluster.job(done)["Restarts"]), ("complete", "1"))
        events = {job: [event["detail"] for event in self.cluster.show(job)["events"] if event["kind"] in ("job_requeued", "job_ended")]
                  for job in (done, failed)}
        self.assertEqual(events, {job: [f"job {job} is {what}, since the node of its script, n1, is down"]
                                  for job, what in ((done, "requeued"), (failed, "ended"))})
        run = self.cluster.show(kept)
        self.assertEqual(run["state"], "failed")
        self.assertIn("node n1 is lost", run["reason"])
        self.assertEqual(self.cluster.sql("select count(*) from runs where job_over_restart_count is distinct from restart_count"
                                          f" and name in ('{failed}', '{kept}')"), [["0"]])


class TaskOfAnArray(JobEndTest):
    """Two tasks on two nodes each."""

    def running(self, array):
        """task -> its job's number and the node of its script."""
        listed = self.cluster.run("squeue", "-h", "-t", "R", "-j", array, "-O", "ArrayTaskID:20,JobID:20,BatchHost:20").stdout
        return {int(task): (int(job), node) for task, job, node in map(str.split, listed.splitlines())}

    def test_node_of_the_script(self):
        """The one task is ended whose script is gone: the last, which has the number of the array, and one with its own."""
        array = self.submit("--array=1-2", "--exclusive", "--no-requeue", nodes=2)
        self.addCleanup(self.cluster.run, "scancel", array, check=False)
        wait_for("both tasks", lambda: len(self.running(array)) == 2, 60)
        tasks = self.running(array)
        self.assertEqual(tasks[2][0], int(array))
        for job, _ in tasks.values():
            self.wait_running(job)
        for task, left in ((2, {1}), (1, set())):
            job, node = tasks[task]
            self.cluster.verb("freeze-node", node[1:])
            self.assertIn(f"node {node} is lost", self.wait_state(job, "failed")["reason"])
            wait_for(f"the end of task {task}", lambda left=left: set(self.running(array)) == left, 90)
            time.sleep(5)
            self.assertEqual(set(self.running(array)), left)
            for other in left:
                self.assertEqual(self.cluster.show(tasks[other][0])["state"], "running")
            self.cluster.kill_node(node[1:])
            self.cluster.restore_node(node[1:])


class Requeue(JobEndTest):
    """The waits of several jobs go on side by side."""

    def check_continued(self, job, kind, reason):
        run = self.wait_state(job, "complete")
        self.assertEqual(self.causes(run), [(1, kind)], run["faults"])
        self.assertRegex(run["attempts"][0]["reason"], reason)
        self.assertEqual([a["state"] for a in run["attempts"]], ["failed", "complete"])
        self.assertEqual(len(self.requeues(run)), 1, run["events"])
        waits = self.cluster.sql("select w.began_at < w.ended_at and w.ended_at <= a.created_at from queue_waits w join attempts a "
                                 f"on a.run_id = w.run_id and a.number = 2 where w.run_id = {run['id']}")
        self.assertEqual(waits, [["t"]], "the time in which the job waited in the queue")
        self.assertEqual(self.runs_of(job), [str(job)])
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")

    def test_killed_launcher_and_script(self):
        goes_on, fails, script = self.submit(), self.submit(after="exit $?"), self.submit()
        kept = self.submit("--no-requeue", after="exit $?")
        jobs = (goes_on, fails, script, kept)
        for job in jobs:
            self.wait_running(job)
        self.kill_launcher(goes_on)
        self.kill_launcher(fails)
        self.kill_launcher(kept)
        self.kill_script(script)
        counts = {job: self.count(job) for job in jobs}
        for job in (goes_on, fails, script):
            self.wait_running(job, attempts=2, timeout_s=90)
            self.assertGreaterEqual(self.count(job), counts[job])
            self.end(job)
        self.check_continued(goes_on, "launcher_lost", r"^wlb run on n\d was killed$")
        self.check_continued(fails, "launcher_lost", r"^wlb run on n\d was killed$")
        self.check_continued(script, "script_lost", rf"^the script of job {script} was killed by signal 9$")
        run = self.wait_state(kept, "failed")
        self.assertRegex(run["reason"], rf"^wlb run on n\d was killed; job {kept} ended FAILED with exit code 137$")
        self.assertEqual(self.cluster.job(kept)["Restarts"], "0")

    def test_not_again_after_scancel_or_its_own_failure(self):
        cancelled, failed, limit = self.submit(after="sleep 1000"), self.submit(after="exit 3"), \
            self.submit("--time=1", after="sleep 1000")
        alone = self.submit("--job-name=alone")
        for job in (cancelled, failed, limit, alone):
            self.wait_running(job)
        self.kill_launcher(cancelled)
        self.kill_launcher(limit)
        self.end(failed)  # complete: the script fails of its own
        self.cluster.run("scancel", alone)
        time.sleep(3)
        self.cluster.run("scancel", cancelled)
        self.assertEqual(self.wait_state(alone, "cancelled")["faults"], [])
        self.assertEqual(self.wait_state(failed, "complete", "failed")["state"], "complete")
        self.assertRegex(self.wait_state(cancelled, "cancelled")["reason"], "wlb run on n. was killed; .*CANCELLED")
        self.assertEqual(self.cluster.wait_job(limit, 150), "TIMEOUT")
        self.assertRegex(self.wait_state(limit, "failed")["reason"], f"wlb run on n. was killed; job {limit} ended TIMEOUT")
        time.sleep(15)
        for job in (cancelled, failed, limit, alone):
            self.assertEqual(self.cluster.job(job)["Restarts"], "0")
            self.assertEqual(self.runs_of(job), [str(job)])

    def test_not_more_than_three_times(self):
        job = self.submit()
        for attempt in range(1, 5):
            self.wait_running(job, attempts=attempt, timeout_s=90)
            if attempt == 2:  # the count outlives wlbd
                self.cluster.verb("kill-wlbd")
                self.cluster.verb("start-wlbd")
                time.sleep(2)
            self.kill_launcher(job)
        run = self.wait_state(job, "failed", timeout_s=60)
        self.assertEqual(len(self.requeues(run)), 3)
        self.assertEqual(self.causes(run), [(attempt, "launcher_lost") for attempt in range(1, 5)])
        self.assertIn("is not requeued: it was requeued 3 times, the maximum of a run", run["reason"])
        self.assertEqual(self.cluster.job(job)["Restarts"], "3")

    def test_launcher_and_wlbd_killed_together(self):
        job = self.submit()
        self.wait_running(job)
        self.cluster.verb("kill-wlbd")
        self.kill_launcher(job)
        time.sleep(2)
        self.cluster.verb("start-wlbd")
        self.wait_running(job, attempts=2, timeout_s=90)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.causes(run), [(1, "launcher_lost")])

    def test_killed_batch_slurmstepd(self):
        """Slurm notices it once the steps are over, and requeues the job: the same run goes on."""
        job = self.submit()
        self.wait_running(job)
        for pid in self.cluster.processes(f"slurmstepd: [{job}.batch]"):
            os.kill(pid, signal.SIGKILL)
        self.end(job)
        self.wait_state(job, "complete")

        def ended_again():
            self.cluster.run("scontrol", "reconfigure")  # has the nodes say which jobs they have, now and not in minutes
            return self.cluster.job(job)["Restarts"] == "1" and self.cluster.job(job)["JobState"] == "COMPLETED"

        wait_for("the job's second start", ended_again, 180, 4)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.runs_of(job), [str(job)])
        self.assertEqual([a["state"] for a in run["attempts"]], ["complete", "complete"])


class Ends(JobEndTest):
    nodes = 2

    def test_srun_is_killed(self):
        job = self.submit(nodes=2)
        self.wait_running(job)
        self.kill(job, "srun", "--mpi=pmix")
        self.wait_running(job, attempts=2)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.causes(run), [(1, "step_failed")])
        self.assertEqual(run["attempts"][0]["reason"], "srun was killed by signal 9")

    def test_slurmstepd_is_killed(self):
        """The agent of its node outlives it, and tells; what Slurm and the agent end afterwards is not the cause."""
        job = self.submit(nodes=2)
        self.wait_running(job)
        os.kill(self.cluster.processes(f"slurmstepd: [{job}.0]")[0], signal.SIGKILL)
        self.wait_running(job, attempts=2)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual(self.causes(run), [(1, "step_failed")], run["faults"])
        self.assertRegex(run["attempts"][0]["reason"], rf"^slurmstepd (of step {job}\.0 )?on n[12] is gone$")

    def test_slurmstepd_is_killed_after_its_ranks_ended(self):
        """Its agent was killed too, and srun was not told: it waits without a bound. So also where wlbd was started again since. A
        step whose agents were killed has its slurmstepds and goes on."""
        first, second, without_agents = (self.submit(nodes=2) for _ in range(3))
        for job in (first, second, without_agents):
            self.wait_running(job)
        for agent in self.agents(without_agents):
            os.kill(agent, signal.SIGKILL)
        for job in (first, second):
            stepd = self.cluster.processes(f"slurmstepd: [{job}.0]")[0]
            os.kill(stepd, signal.SIGSTOP)
            self.end(job)
            wait_for("the ranks' end", lambda job=job: not self.pids(job, "count-", begins="bash"), 30)
            for agent in self.agents(job):
                os.kill(agent, signal.SIGKILL)
            os.kill(stepd, signal.SIGKILL)
            if job == second:
                self.cluster.verb("kill-wlbd")
                self.cluster.verb("start-wlbd")
            run = self.wait_state(job, "complete", timeout_s=120)
            self.assertEqual(self.causes(run), [(1, "step_failed")], run["faults"])
            self.assertEqual(run["attempts"][0]["reason"], f"no node has a slurmstepd of step {job}.0 any more, and srun still waits")
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        run = self.cluster.show(without_agents)
        self.assertEqual((run["state"], run["faults"]), ("running", []))
        self.end(without_agents)
        self.assertEqual(len(self.wait_state(without_agents, "complete")["attempts"]), 1)

    def test_slurmstepd_is_killed_before_it_has_told_of_the_end(self):
        """Its ranks have ended, and the agent, which waits for its word, tells that it is gone."""
        job = self.submit(nodes=2)
        self.wait_running(job)
        stepd = self.cluster.processes(f"slurmstepd: [{job}.0]")[0]
        os.kill(stepd, signal.SIGSTOP)
        self.end(job)
        wait_for("the ranks' end", lambda: not self.pids(job, "count-", begins="bash"), 30)
        os.kill(stepd, signal.SIGKILL)
        run = self.wait_state(job, "complete", timeout_s=60)
        self.assertRegex(run["attempts"][0]["reason"], rf"^slurmstepd (of step {job}\.0 )?on n[12] is gone$")

    def agents(self, job):
        return self.cluster.processes(f"wlb-agent --run {job} ")

    def test_rank_is_killed(self):
        job = self.submit(nodes=2)
        self.wait_running(job)
        task = next(pid for pid in self.pids(job, "bash", "count-") if self.environment(pid).get("SLURM_PROCID") == "1")
        os.kill(task, signal.SIGKILL)
        self.wait_running(job, attempts=2)
        self.end(job)
        run = self.wait_state(job, "complete")
        self.assertEqual([(f["kind"], f["rank"]) for f in run["faults"] if f["cause"]], [("rank_lost", 1)], run["faults"])
        self.assertEqual(run["attempts"][0]["reason"], "rank 1 on n2 was killed by signal 9")

    def environment(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(word.split("=", 1) for word in file.read().decode().split("\0") if "=" in word)

    def test_completed_while_the_database_was_away(self):
        job = self.submit()
        self.wait_running(job)
        self.cluster.verb("stop-db")
        self.end(job)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        time.sleep(15)
        self.cluster.verb("start-db")
        wait_for("the database", lambda: self.cluster.run("wlb", "runs", check=False).returncode == 0, 30)
        run = self.wait_state(job, "complete", "failed", timeout_s=60)
        self.assertEqual((run["state"], run["reason"]), ("complete", ""))
        self.cluster.run("wlb", "flush", ".wlb")
        run = self.cluster.show(job)
        self.assertEqual([(a["state"], a["exit_code"]) for a in run["attempts"]], [("complete", 0)])
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")

    def test_failed_while_the_database_could_not_store(self):
        """It answers, and its disk is full: the launcher was not killed, though its end is not recorded."""
        job = self.submit(arguments="--max-restarts 0", trainer=TRAINER + "; exit 1", after="exit $?")
        self.wait_running(job)
        self.cluster.sql("create function disk_full() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' "
                         "using errcode = 'disk_full'; end $$")
        self.cluster.sql("create trigger disk_full before insert or update on sources for each row execute function disk_full()")
        time.sleep(15)  # so that wlbd has recorded for much longer than the job is over
        self.end(job)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        time.sleep(30)
        self.cluster.sql("drop function disk_full cascade")
        run = self.wait_state(job, "complete", "failed", timeout_s=90)
        self.assertEqual(run["state"], "failed")
        self.assertNotIn("launcher_lost", [fault["kind"] for fault in run["faults"]])
        self.assertEqual((self.requeues(run), self.cluster.job(job)["Restarts"]), ([], "0"))


if __name__ == "__main__":
    harness.main()
