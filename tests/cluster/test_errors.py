#!/usr/bin/env python3
"""What an attempt ran, what it printed, and the exception that broke it: recorded, shown to whom it is for, printed by `wlb logs`."""
import json
import os
import pty
import subprocess

from harness import ClusterTest, main, wait_for
from test_wlbd_api import NOBODY

DAEMON = 1  # another account without rights

# Rank 2 raises, and its peers see a closed connection a moment later.
TRAINER = """import os, sys, time
print("step", os.environ["WLB_ATTEMPT"], os.environ["RANK"], flush=True)
if int(os.environ["WLB_ATTEMPT"]) > 1:
    sys.exit()
if os.environ["RANK"] != "2":
    time.sleep(600)
time.sleep(1)
raise ValueError("token hunter2\\x1b[2J")
"""


class Errors(ClusterTest):
    nodes = 2

    def submit(self, options="", **more):
        (self.cluster.work / "train.py").write_text(TRAINER, encoding="utf-8")
        return self.cluster.sbatch(f"wlb run {options} -- python3 train.py --key=hunter2", "--wlb-layout=auto", "--ntasks-per-node=2",
                                   nodes=2, **more)

    def completed(self, job):
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return wait_for("the end of the run", lambda: (run := self.cluster.show(job))["state"] == "complete" and run, 30)

    def wlb(self, *words, **more):
        return self.cluster.run("wlb", *words, **more)

    def test_who_sees_the_command_and_the_error(self):
        job = self.submit()
        first, second = self.completed(job)["attempts"]
        error = {"text": "ValueError: token hunter2", "cause": "", "rank": None, "is_consequence": False}
        path = str(self.cluster.work / f"{job}.out")
        self.assertEqual((first["error"], second["error"]), (error, None))
        for attempt in (first, second):
            output = attempt["output"]
            self.assertEqual((output["command"], output["stdout"], output["stderr"]), ("python3 train.py --key=hunter2", path, path))
        self.assertGreater(second["output"]["stdout_offset"], first["output"]["stdout_offset"])
        shown = self.wlb("show", job).stdout
        self.assertIn(f"  command: python3 train.py --key=hunter2\n  output: {path}\n", shown)
        self.assertIn("\n      ValueError: token hunter2\n", shown)
        listed = self.wlb("faults", "last").stdout
        self.assertRegex(listed, r"rank 2 on n\d +cause ")
        self.assertIn("ValueError: token hunter2", " ".join(listed.split()))
        self.assertNotIn("hunter2", self.wlb("show", job, user=DAEMON, cwd="/").stdout)
        for words in (("show", job, "--json"), ("faults", job), ("faults", "--json"), ("runs", "--json")):
            self.assertNotIn("hunter2", self.wlb(*words, user=DAEMON, cwd="/").stdout, words)

    def test_owner_sees_his_own_and_a_role_that_reads_all_tables_none(self):
        self.cluster.sql("create role reads_all")
        self.addCleanup(self.cluster.sql, "drop owned by reads_all; drop role reads_all")
        self.cluster.sql("grant select on all tables in schema public, wlb_code to reads_all")
        job = self.submit()
        self.completed(job)
        self.cluster.sql(f"update runs set uid = {NOBODY}, user_name = 'nobody' where job_id = {job}")
        self.assertIn("hunter2", self.wlb("show", "last", user=NOBODY, cwd="/").stdout)
        for query in ("select * from attempt_outputs", "select wlb_attempts_json(id, true) from runs", "select * from run_attempts",
                      "select wlb_faults_list(null, null, null, null, null, 1000, true)"):
            rows = self.cluster.sql(f"set role reads_all; {query}")
            self.assertNotIn("hunter2", str(rows), query)
        self.assertIn("hunter2", str(self.cluster.sql("select * from attempt_outputs")))

    def test_logs_of_attempts_and_of_labelled_ranks(self):
        job = self.submit("--srun-args=--label")
        self.completed(job)
        whole = (self.cluster.work / f"{job}.out").read_bytes()
        self.assertEqual(self.logs(job), whole)
        lines = [set(line for line in self.logs(job, f"--attempt={attempt}").decode().splitlines() if ": step" in line)
                 for attempt in (1, 2)]
        self.assertEqual(lines, [{f"{rank}: step {attempt} {rank}" for rank in range(4)} for attempt in (1, 2)])
        self.assertEqual([line for line in self.logs(job, "--rank=2").decode().splitlines() if "step" in line],
                         ["2: step 1 2", "2: step 2 2"])
        self.assertIn(b"\x1b[2J", self.logs(job, "--rank=2"))
        self.assertNotIn(b"\x1b[2J", self.on_terminal("logs", job))
        refused = self.wlb("logs", job, user=NOBODY, cwd="/", check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("it tells the run's owner, SlurmUser and root", refused.stderr)

    def test_logs_of_a_file_for_each_rank(self):
        job = self.submit("--srun-args=--output=rank-%j-%2t.log")
        self.completed(job)
        self.assertEqual([line for line in self.logs(job, "--rank=3").decode().splitlines() if "step" in line], ["step 1 3", "step 2 3"])
        refused = self.wlb("logs", job, check=False)
        self.assertIn("rank-%j-%2t.log: add --rank=N", refused.stderr)

    def test_unlabelled_ranks_cannot_be_told_and_a_run_is_followed(self):
        job = self.cluster.sbatch("wlb run -- bash -c 'for i in 1 2 3 4; do echo line $i $SLURM_PROCID; sleep 1; done' | tee copy",
                                  "--wlb-layout=auto", "--ntasks-per-node=2", nodes=1)
        wait_for("its command", lambda: "  command: " in self.wlb("show", job, check=False).stdout, 60)
        refused = self.wlb("logs", job, "--rank=1", check=False)
        self.assertIn("the lines of one rank cannot be told, since srun does not label them", refused.stderr)
        followed = self.logs(job, "--follow").decode()
        self.assertEqual({f"line {i} {rank}" for i in range(1, 5) for rank in range(2)} - set(followed.splitlines()), set(), followed)
        self.assertEqual(self.cluster.show(job)["state"], "complete")

    def logs(self, run, *options):
        return subprocess.run(["wlb", "logs", str(run), *options], env=self.cluster.env, cwd=self.cluster.work, check=True, timeout=60,
                              stdout=subprocess.PIPE).stdout

    def on_terminal(self, *words):
        outer, inner = pty.openpty()
        with subprocess.Popen(["wlb", *map(str, words)], env=self.cluster.env, stdout=inner, cwd=self.cluster.work) as process:
            os.close(inner)
            text = b""
            try:
                while part := os.read(outer, 65536):
                    text += part
            except OSError:  # the other end is closed
                pass
            self.assertEqual(process.wait(30), 0)
        os.close(outer)
        return text

    def test_last_is_the_newest_of_mine(self):
        job = self.cluster.sbatch("wlb run -- true", "--wlb-layout=auto")
        self.completed(job)
        self.assertEqual(json.loads(self.wlb("show", "last", "--json").stdout)["run_id"], str(job))
        refused = self.wlb("stacks", "last", user=DAEMON, cwd="/", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "last: user daemon has no run; 'wlb runs' lists those of all users")


if __name__ == "__main__":
    main()
