#!/usr/bin/env python3
"""A job that will end before its training does saves, stops, and goes on from there once Slurm has requeued it."""
import re
import time

import harness
import training
from harness import BUILD, ROOT, wait_for

# wlb-worker whose ranks read each document slowly, so that a step takes as long on every machine.
SLOW_WORKER = f"""#!/bin/bash
shift
[ $PMIX_RANK != 0 ] || echo "the run has saved step ${{WLB_CHECKPOINT_STEP:-0}}"
export SLOW_DISK_CALL=pread SLOW_DISK_PATH=corpus.bin SLOW_DISK_AFTER=0 SLOW_DISK_WAIT_S=0.03
exec {BUILD}/tests/slow_disk "$@"
"""
# A trainer that knows nothing of WLB: it ends well when it is asked, and completes when it is started again.
OTHER = """trap 'echo told $SLURM_PROCID; exit 0' USR1
[ ! -e done-$SLURM_JOB_ID ] || exit 0
while :; do sleep 0.1; done
"""
# One that fails in the first start of its job.
FAILS_FIRST = "sleep 5\n[ ${SLURM_RESTART_COUNT:-0} != 0 ] || exit 7\n"
# One that survives SIGTERM, and has written what looks like slurmstepd's word that Slurm has sent it.
WRITES_CANCELLED = """trap : TERM
trap 'exit 0' USR1
[ ${SLURM_RESTART_COUNT:-0} = 0 ] || exit 0
echo "upload: StatusCode.CANCELLED, trying again" >&2
echo "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***" >&2
while :; do sleep 0.1; done
"""
# One that saves for 5 s.
SAVES_SLOWLY = """trap 'sleep 5; echo saved slowly; exit 0' USR1
[ ${SLURM_RESTART_COUNT:-0} = 0 ] || exit 0
while :; do sleep 0.1; done
"""
# Ranks in lockstep by the clock, which take no signal and ask themselves whether to stop.
ASKS = f"""import os, sys, time
sys.path.insert(0, "{ROOT}/python")
import wlb
stops = os.environ.get("SLURM_RESTART_COUNT", "0") != "0"
while not stops:
    step = int(time.time() * 10)
    time.sleep(max(0.0, (step + 1) / 10 - time.time()))
    stops = wlb.should_stop(step)
    if stops:
        print("rank", os.environ["RANK"], "stops after step", step, flush=True)
"""
ITERATIONS = 90


class StopTest(training.TrainingTest):
    nodes = 2
    program = "slow_disk"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.cluster.work / "slow").mkdir()
        for name, text in (("slow/wlb-worker", SLOW_WORKER), ("other", "#!/bin/bash\n" + OTHER),
                           ("fails_first", "#!/bin/bash\n" + FAILS_FIRST), ("writes_cancelled", "#!/bin/bash\n" + WRITES_CANCELLED),
                           ("saves_slowly", "#!/bin/bash\n" + SAVES_SLOWLY)):
            (cls.cluster.work / name).write_text(text, encoding="utf-8")
            (cls.cluster.work / name).chmod(0o755)

    def submit_slow(self, arguments, *options, iterations=ITERATIONS, nodes=1, ranks=2, layout="dp=2"):
        """Submits a run whose script ends with the exit code of `wlb run`."""
        words = " ".join(training.arguments(iterations=iterations))
        return self.cluster.sbatch(
            f"wlb run {arguments} -- slow/wlb-worker {words} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID "
            "--metrics-file m-$SLURM_JOB_ID.jsonl --log-interval 1\ncode=$?\necho next line\nexit $code",
            f"--wlb-layout={layout}", f"--ntasks-per-node={ranks // nodes}", "--no-kill", "--open-mode=append", *options, nodes=nodes)

    def check_stops(self, job, run, reason):
        """Each attempt but the last has saved its last step and stopped, and the next has continued from there."""
        attempts = run["attempts"]
        self.assertGreater(len(attempts), 1, self.cluster.output(job))
        for attempt, following in zip(attempts, attempts[1:]):
            step = attempt["last_step"]
            self.assertEqual((attempt["state"], attempt["exit_code"]), ("ended", 85), attempt)
            self.assertEqual(attempt["reason"], f"{reason}: saved step {step} and stopped")
            self.assertEqual((following["resumed_step"], following["first_step"]), (step, step + 1))
            self.assertIn(step, [checkpoint["step"] for checkpoint in run["checkpoints"]])
        self.assertEqual((run["steps_repeated"], run["faults"]), (0, []))
        self.assertEqual(self.cluster.job(job)["Restarts"], str(len(attempts) - 1))
        output = self.cluster.output(job)
        self.assertEqual(output.count("is requeued and continues from its checkpoint"), len(attempts) - 1, output)
        self.assertEqual(output.count("next line"), 1, output)
        self.assertEqual([int(step) for step in re.findall("^the run has saved step (.*)$", output, re.MULTILINE)],
                         [0] + [attempt["last_step"] for attempt in attempts[:-1]])

    def asked(self, run):
        return [event["detail"] for event in run["events"] if event["kind"] == "stop_asked"]

    def check_losses(self, run, iterations):
        """Every step is recorded once, with the loss that it has without a stop."""
        steps = self.cluster.sql("SELECT step, loss FROM steps JOIN runs ON runs.id = run_id "
                                 f"WHERE runs.name = '{run['run_id']}' ORDER BY step")
        self.assertEqual([int(step) for step, _ in steps], list(range(1, iterations + 1)))
        expected = training.single_process_losses(iterations=iterations)
        for step, loss in steps:
            self.assertLess(abs(float(loss) / expected[int(step)] - 1), training.TOLERANCE["float64"])


class TimeLimit(StopTest):
    """The jobs run side by side."""

    def test_limit(self):
        again = self.submit_slow("--stop-before-end 44", "--time=1", "--requeue")
        kept = self.submit_slow("", "--time=1", "--no-requeue", iterations=100000)  # 30 s before
        self.assertEqual(self.cluster.wait_job(kept, 60), "FAILED")
        self.assertEqual(self.cluster.job(kept)["ExitCode"], "85:0")
        run = self.cluster.show(kept)
        self.assertEqual(run["state"], "cancelled")
        self.assertRegex(run["reason"], r"^the time limit is near: saved step \d+ and stopped; the job was submitted without --requeue: "
                         r"submit it again; it continues from its checkpoint \(with sbatch --requeue Slurm does that\)$")
        self.assertIn(run["reason"], self.cluster.output(kept))
        self.assertRegex(self.asked(run)[0], r"^the time limit is near: asked to save and stop (30|2[5-9]) s before the end of the job$")
        self.assertEqual(run["faults"], [])
        self.assertEqual(run["attempts"][0]["last_step"], run["checkpoints"][-1]["step"])

        self.assertEqual(self.cluster.wait_job(again, 200), "COMPLETED", self.cluster.output(again))
        run = self.cluster.show(again)
        self.assertEqual(run["state"], "complete")
        self.check_stops(again, run, "the time limit is near")
        self.check_losses(run, ITERATIONS)
        # The last one too, where its last step ends just then.
        self.assertIn(len(run["attempts"]) - len(self.asked(run)), (0, 1))
        self.assertRegex(self.asked(run)[0], r"^the time limit is near: asked to save and stop 4[0-4] s before the end of the job$")
        self.assertRegex(self.cluster.run("wlb", "show", again).stdout, r"the time limit is near: saved step \d+ and")

    def test_limit_that_is_changed(self):
        """An administrator shortens the time limit: the end that Slurm told at the start is not the one that counts."""
        job = self.submit_slow("--stop-before-end 50", "--time=30", "--no-requeue", iterations=100000)
        self.wait_step(job, 2)
        self.cluster.run("scontrol", "update", f"jobid={job}", "timelimit=1")
        self.assertEqual(self.cluster.wait_job(job, 100), "FAILED")
        self.assertRegex(self.cluster.show(job)["reason"], "^the time limit is near: saved step")

    def test_signal_of_the_user(self):
        """The tasks are signalled by Slurm, as with --signal=USR1@120; `wlb run` learns of it from their exit code."""
        job = self.submit_slow("", "--requeue", iterations=30)
        cancelled = self.submit_slow("", "--requeue", iterations=100000)
        self.wait_step(job, 4)
        self.cluster.run("scancel", "--signal=USR1", job)
        self.wait_step(cancelled, 4)
        began = time.monotonic()
        self.cluster.run("scancel", cancelled)
        wait_for("the end of its tasks", lambda: not self.tasks_of(cancelled), 5)
        self.say(f"scancel took {time.monotonic() - began:.1f} s")
        self.assertEqual(self.cluster.wait_job(cancelled, 30), "CANCELLED")
        wait_for("its end", lambda: self.cluster.show(cancelled)["state"] == "cancelled", 30)
        self.assertEqual(self.cluster.show(cancelled)["checkpoints"], [])
        self.assertEqual(self.cluster.job(cancelled)["Restarts"], "0")
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.check_stops(job, run, "SIGUSR1")
        self.check_losses(run, 30)

    def test_wlb_save(self):
        """It goes on behind the checkpoint. A program that does not expect the signal is not sent it."""
        job = self.submit_slow("", iterations=100000)
        other = self.cluster.sbatch("wlb run -- ./other", "--wlb-layout=auto", "--ntasks-per-node=1", nodes=1)
        self.wait_step(job, 4)
        for _ in range(2):
            said = self.cluster.run("wlb", "save", job).stdout
            step, path = re.fullmatch(r"run \d+: step (\d+) is saved: (.*)\n", said).groups()
            self.assertGreaterEqual(int(step), 4)
            newest = self.cluster.show(job)["checkpoints"][-1]
            self.assertEqual((newest["step"], newest["path"]), (int(step), path))
        self.assertEqual(self.cluster.run("wlb", "save", job, "--wait=0").stdout, f"run {job}: the ranks of attempt 1 were asked\n")
        wait_for("a third checkpoint", lambda: len(self.cluster.show(job)["checkpoints"]) == 3, 30)
        wait_for("the other trainer", lambda: self.cluster.show(other)["state"] == "running", 60)
        refused = self.cluster.run("wlb", "save", other, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, rf"^wlb save: run {other}: attempt 1 has not said that it saves at SIGUSR2, ")
        run = self.cluster.show(job)
        self.assertEqual((run["state"], len(run["attempts"]), run["faults"]), ("running", 1, []))
        self.cluster.run("scancel", job, other)
        wait_for("its end", lambda: self.cluster.show(job)["state"] == "cancelled", 60)
        refused = self.cluster.run("wlb", "save", job, check=False)
        self.assertRegex(refused.stderr, rf"^wlb save: run {job}: it has ended \(cancelled\)")

    def tasks_of(self, job):
        return [pid for pid in self.cluster.processes("slow_disk") if self.is_of(pid, job)]

    def is_of(self, pid, job):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return f"\0SLURM_JOB_ID={job}\0".encode() in b"\0" + file.read()
        except OSError:
            return False

    def test_another_trainer(self):
        """It is asked where its user has said that it expects that. Each start counts as progress, however many there are."""
        job = self.cluster.sbatch(
            "echo start ${SLURM_RESTART_COUNT:-0}\n[ ${SLURM_RESTART_COUNT:-0} -lt 4 ] || touch done-$SLURM_JOB_ID\n"
            "wlb run --stop-before-end 57 -- ./other", "--wlb-layout=auto", "--ntasks-per-node=1", "--time=1", "--requeue",
            "--open-mode=append", nodes=1)
        self.assertEqual(self.cluster.wait_job(job, 200), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual([attempt["state"] for attempt in run["attempts"]], ["ended"] * 4 + ["complete"])
        self.assertEqual({attempt["reason"] for attempt in run["attempts"][:-1]}, {"the time limit is near: the command has stopped"})
        self.assertEqual((run["state"], run["faults"]), ("complete", []))
        self.assertEqual(self.cluster.output(job).count("told 0"), 4)

    def test_a_trainer_that_asks(self):
        """It is asked by its file, also where its user sends SIGUSR1 to `wlb run`: the signal would kill it."""
        (self.cluster.work / "asks.py").write_text(ASKS, encoding="utf-8")
        job = self.cluster.sbatch("exec wlb run -- python3 asks.py", "--wlb-layout=auto", "--ntasks-per-node=2", "--requeue",
                                  "--open-mode=append", nodes=2)
        looked = f"stop-{job}-*.step"
        wait_for("its question", lambda: list((self.cluster.work / ".wlb").glob(looked)), 60)
        self.cluster.run("scancel", "--signal=USR1", "--batch", job)
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        output = self.cluster.output(job)
        stopped = dict(re.findall(r"(?m)^rank (\d) stops after step (\d+)$", output))
        self.assertEqual((sorted(stopped), len(set(stopped.values()))), (["0", "1", "2", "3"], 1), output)
        run = self.cluster.show(job)
        self.assertEqual([(attempt["state"], attempt["exit_code"]) for attempt in run["attempts"]], [("ended", 0), ("complete", 0)])
        self.assertEqual(run["attempts"][0]["reason"], "SIGUSR1: the command has stopped")
        self.assertEqual((self.asked(run), run["faults"]), (["SIGUSR1: asked to save and stop"], []))
        self.assertEqual(list((self.cluster.work / ".wlb").glob("stop-*")), [])

    def test_limit_while_wlbd_is_away(self):
        """No next attempt is decided before the limit: the job is requeued all the same, and goes on when wlbd is back."""
        job = self.cluster.sbatch("wlb run --stop-before-end 40 -- ./fails_first", "--wlb-layout=auto", "--ntasks-per-node=1", "--time=1",
                                  "--requeue", "--open-mode=append", nodes=1)
        wait_for("its attempt", lambda: "attempt 1 on" in self.cluster.output(job), 30)
        self.cluster.verb("kill-wlbd")
        try:
            wait_for("its end in Slurm, or the requeue",
                     lambda: self.cluster.job(job)["JobState"] in harness.JOB_ENDED or self.cluster.job(job)["Restarts"] == "1", 90)
        finally:
            self.cluster.verb("start-wlbd")
        self.assertEqual(self.cluster.wait_job(job, 90), "COMPLETED", self.cluster.output(job))
        output = self.cluster.output(job)
        self.assertIn("waiting for the coordinator: ", output)
        self.assertIn(f"attempt 1: rank 0 on n1 ended with exit code 7; job {job} is requeued and continues from its checkpoint", output)
        run = self.cluster.show(job)
        self.assertEqual((run["state"], [attempt["exit_code"] for attempt in run["attempts"]]), ("complete", [7, 0]))

    def test_a_crash_is_no_reason_to_requeue(self):
        """A program that never works ends its run also where it was to be asked before it has begun."""
        job = self.cluster.sbatch("wlb run --stop-before-end 3600 -- false; exit $?", "--wlb-layout=auto", "--ntasks-per-node=1", "--time=1",
                                  "--requeue", "--open-mode=append", nodes=1)
        self.assertEqual(self.cluster.wait_job(job, 90), "FAILED", self.cluster.output(job))
        self.assertEqual(self.cluster.job(job)["Restarts"], "0")
        output = self.cluster.output(job)
        self.assertEqual(output.count(" s before the end of the job, and not 3600 s (--stop-before-end)"), 1, output)
        run = self.cluster.show(job)
        self.assertEqual((run["state"], len(run["attempts"])), ("failed", 3))
        self.assertIn("3 attempts in a row ended without a new step", run["reason"])

    def test_two_runs_of_a_job(self):
        """The first is asked long before the second, and does not have the job requeued before that has saved."""
        job = self.cluster.sbatch("[ ${SLURM_RESTART_COUNT:-0} = 0 ] || touch done-$SLURM_JOB_ID\n"
                                  "wlb run --stop-before-end 45 -- ./other &\nsleep 2\n"
                                  "wlb run --stop-before-end 25 -- ./saves_slowly &\nwait", "--wlb-layout=auto", "--ntasks-per-node=1",
                                  "--time=1", "--requeue", "--open-mode=append", nodes=1)
        self.assertEqual(self.cluster.wait_job(job, 200), "COMPLETED", self.cluster.output(job))
        output = self.cluster.output(job)
        self.assertIn("saved slowly", output)
        self.assertIn("attempt 1: the time limit is near: the command has stopped; the job is requeued once the other wlb run of the job "
                      "has ended or saved, or 10 s before the job's end", output)
        self.assertEqual(self.cluster.job(job)["Restarts"], "1")
        for name in (job, f"{job}.2"):
            run = self.cluster.show(name)
            self.assertEqual((run["state"], [attempt["state"] for attempt in run["attempts"]]), ("complete", ["ended", "complete"]), output)


class Preemption(StopTest):
    """A partition whose jobs take the nodes from those of the other, after a grace time."""

    GRACE_S = 25

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = cls.cluster.dir / "etc/slurm.conf"
        text = path.read_text(encoding="utf-8")
        partition = re.search("^PartitionName=main.*$", text, re.MULTILINE).group(0)
        text = text.replace(partition, f"{partition} PriorityTier=1 PreemptMode=REQUEUE GraceTime={cls.GRACE_S}\n"
                            f"PartitionName=urgent Nodes=n[1-{cls.nodes}] MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF\n"
                            "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE")
        path.write_text(text, encoding="utf-8")
        cls.cluster.verb("kill-service", "slurmctld")
        cls.cluster.verb("start-service", "slurmctld")

    def test_preempted(self):
        job = self.submit_slow("", "--requeue", "--exclusive", iterations=40, nodes=2)
        self.wait_step(job, 4)
        urgent = self.cluster.sbatch("sleep 1", "-p", "urgent", "--exclusive", nodes=2)
        self.assertEqual(self.cluster.wait_job(urgent, 90), "COMPLETED")
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "complete")
        self.check_stops(job, run, "the job is preempted")
        self.check_losses(run, 40)

    def test_preempted_after_words_like_those_of_slurm(self):
        """The command's words are no answer to why Slurm sends SIGTERM later: the command is asked as soon as it does."""
        job = self.cluster.sbatch("wlb run --stop-before-end 5 -- ./writes_cancelled", "--wlb-layout=auto", "--ntasks-per-node=1", "--requeue",
                                  "--exclusive", "--open-mode=append", nodes=2)
        wait_for("the command's words", lambda: "*** STEP 1.0" in self.cluster.output(job), 30)
        time.sleep(4)  # until its tasks may be signalled, and Slurm was asked why they wrote that
        self.cluster.sbatch("sleep 1", "-p", "urgent", "--exclusive", nodes=2)
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual(run["attempts"][0]["reason"], "the job is preempted: the command has stopped")
        self.assertRegex(self.asked(run)[0], "^the job is preempted: asked to save and stop 2[0-5] s before the end of the job$")

    def test_scancel_ends_at_once(self):
        job = self.submit_slow("", "--requeue", iterations=100000)
        self.wait_step(job, 4)
        began = time.monotonic()
        self.cluster.run("scancel", job)
        wait_for("the end of the tasks", lambda: not self.cluster.processes("slow_disk"), 5)
        self.say(f"scancel took {time.monotonic() - began:.1f} s")
        self.assertEqual(self.cluster.wait_job(job, 30), "CANCELLED")


if __name__ == "__main__":
    harness.main()
