#!/usr/bin/env python3
"""`wlb run` in real jobs, with commands that are not wlb-worker: what a user of another trainer sees."""
import hashlib
import json
import os
import re
import signal
import time
import urllib.request

from harness import ClusterTest, main, wait_for

LINE = "echo task $WLB_RUN_ID $WLB_ATTEMPT $SLURM_PROCID $SLURMD_NODENAME $WLB_TP $WLB_CP $WLB_PP $WLB_DP"


class RunTest(ClusterTest):
    nodes = 4

    def submit(self, script, *options, nodes=3, tasks=2):
        return self.cluster.sbatch(script, "--wlb-layout=auto", "--no-kill", f"--ntasks-per-node={tasks}", *options,
                                   nodes=nodes)

    def tasks(self, job):
        """The fields of the lines that LINE printed."""
        return [line.split()[1:] for line in self.cluster.output(job).splitlines() if line.startswith("task ")]

    def wait_output(self, job, text, timeout_s=30):
        wait_for(f"'{text}' in the output of job {job}", lambda: text in self.cluster.output(job), timeout_s)

    def spool(self):
        return sorted(path.name for path in (self.cluster.work / ".wlb").glob("*.jsonl"))

    def sleepers(self, seconds):
        """Pids of the tasks themselves, not of launchers that have their command line."""
        return [pid for pid in self.cluster.processes(f"sleep {seconds}")
                if os.readlink(f"/proc/{pid}/exe").endswith("/sleep")]

    def assert_nothing_left(self, *words):
        wait_for(f"end of {words}", lambda: not self.cluster.processes(*words), 20)


class Plain(RunTest):
    def test_command_finds_its_layout(self):
        job = self.submit(f"wlb run -- sh -c '{LINE}'")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual(sorted(self.tasks(job)),
                         [[str(job), "1", str(rank), f"n{rank // 2 + 1}", "1", "1", "1", "6"] for rank in range(6)])
        self.assertEqual(self.spool(), [])
        run = self.cluster.show(job)
        self.assertEqual((run["state"], run["nodes"], run["layout"]["dp"]), ("complete", ["n1", "n2", "n3"], 6))
        self.assertEqual([(a["state"], a["exit_code"]) for a in run["attempts"]], [("complete", 0)])

    def test_second_run_of_a_job_is_a_run_of_its_own(self):
        job = self.submit(f"wlb run -- sh -c '{LINE}'\nwlb run -- sh -c '{LINE}'", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual([task[0] for task in self.tasks(job)], [str(job), f"{job}.2"])
        self.assertEqual(self.cluster.show(f"{job}.2")["state"], "complete")

    def test_two_runs_of_a_job_side_by_side(self):
        """The second is a run of its own while the first works, which it does not end."""
        job = self.submit("wlb run -- sh -c 'sleep 12; echo first $WLB_RUN_ID $WLB_ATTEMPT' &\nsleep 4\n"
                          "wlb run -- sh -c 'echo second $WLB_RUN_ID $WLB_ATTEMPT'\nwait", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertIn(f"first {job} 1", self.cluster.output(job))
        self.assertIn(f"second {job}.2 1", self.cluster.output(job))
        for name in (job, f"{job}.2"):
            run = self.cluster.show(name)
            self.assertEqual((run["state"], len(run["attempts"])), ("complete", 1))

    def test_a_command_that_records_nothing_is_seen_to_run(self):
        job = self.submit("wlb run -- sleep 777", nodes=1, tasks=1)
        wait_for("a running attempt", lambda: self.cluster.run("wlb", "show", job, "--json", check=False).returncode == 0
                 and [a["state"] for a in self.cluster.show(job)["attempts"]] == ["running"], 30)
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "running")
        self.assertIsNotNone(run["started_at"])
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)

    def test_wrong_input_is_not_tried_again(self):
        """By one task; that srun then ends the other by SIGTERM is not what it failed of."""
        job = self.submit("wlb run -- sh -c '[ $SLURM_PROCID != 1 ] || exit 2; sleep 60'; exit $?", nodes=2, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertEqual(self.cluster.job(job)["ExitCode"], "2:0")
        run = self.cluster.show(job)
        self.assertEqual((run["state"], len(run["attempts"])), ("failed", 1))

    def test_attempts_without_progress_end(self):
        job = self.submit("wlb run -- sh -c 'exit 7'; exit $?", nodes=2, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertEqual(self.cluster.job(job)["ExitCode"], "7:0")
        run = self.cluster.show(job)
        self.assertEqual((run["state"], len(run["attempts"])), ("failed", 3), run["reason"])
        self.assertEqual([a["exit_code"] for a in run["attempts"]], [7, 7, 7])

    def test_max_restarts(self):
        job = self.submit("wlb run --max-restarts 0 -- false", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertEqual(len(self.cluster.show(job)["attempts"]), 1)

    def test_a_script_that_ignores_the_ends_of_its_children(self):
        """The kernel would discard how srun ended, and that it did."""
        job = self.submit("trap '' CHLD\nwlb run -- sh -c 'exit 2'; exit $?", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job, 60), "FAILED", self.cluster.output(job))
        self.assertEqual(self.cluster.job(job)["ExitCode"], "2:0")

    def test_layout_off_is_srun_and_nothing_else(self):
        for options in ((), ("--wlb-layout=off",)):
            job = self.cluster.sbatch("wlb run -- sh -c 'echo task $SLURM_PROCID $WLB_DP'; wlb run -- sh -c 'exit 5'; exit $?",
                                      "--ntasks-per-node=2", *options, nodes=2)
            self.assertEqual(self.cluster.wait_job(job), "FAILED")
            self.assertEqual(self.cluster.job(job)["ExitCode"], "5:0")
            self.assertEqual(sorted(self.tasks(job)), [["0"], ["1"], ["2"], ["3"]])
            self.assertNotIn("attempt", self.cluster.output(job))
            self.assertEqual(self.cluster.run("wlb", "show", job, check=False).returncode, 1)

    def test_layout_off_has_the_tasks_of_the_job(self):
        """Also where the nodes have different numbers of them."""
        job = self.cluster.sbatch("wlb run -- sh -c 'echo task $SLURM_PROCID'; exit $?", "-n7", nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual(sorted(self.tasks(job)), [[str(rank)] for rank in range(7)])

    def test_export_none(self):
        path = self.cluster.env["PATH"]  # of this cluster's srun; nothing is exported
        job = self.submit(f"PATH={path} {self.cluster.build}/bin/wlb run -- /bin/sh -c '{LINE}'", "--export=NONE",
                          nodes=2, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual([task[0] for task in self.tasks(job)], [str(job)] * 2)

    def test_salloc(self):
        result = self.cluster.run("salloc", "--wlb-layout=auto", "-N2", "--ntasks-per-node=1", "wlb", "run", "--", "sh",
                                  "-c", LINE)
        self.assertEqual(result.stdout.count("task "), 2, result.stdout + result.stderr)

    def test_salloc_from_two_shells(self):
        """At the same time."""
        (self.cluster.work / "one.sh").write_text(f"wlb run -- sh -c '{LINE}; sleep 2'\n", encoding="utf-8")
        result = self.cluster.run("salloc", "--wlb-layout=auto", "-N1", "-n1", "sh", "-c", "sh one.sh & sh one.sh & wait")
        names = re.findall(r"(?m)^task (\S+) 1 ", result.stdout)
        self.assertEqual(len(names), 2, result.stdout + result.stderr)
        self.assertEqual([self.cluster.show(name)["state"] for name in names], ["complete"] * 2)
        self.assertEqual(len(set(names)), 2, names)

    def test_a_hang_up_that_is_ignored(self):
        """As by nohup, so that the run outlives the terminal from which it was started."""
        job = self.submit("nohup wlb run -- sh -c 'touch began; sleep 3' & until [ -e began ]; do sleep 0.1; done\n"
                          "kill -HUP $!; wait $!; echo exit code $?", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertIn("exit code 0\n", self.cluster.output(job))

    def test_a_command_that_is_not_asked_before_the_time_limit(self):
        """A job of this cluster has no limit unless it asks for one."""
        limited, unlimited = self.submit("wlb run -- true", "--time=5", nodes=1), self.submit("wlb run -- true", nodes=1)
        told = "true is not asked to save before the job's time limit"
        for job, count in ((limited, 1), (unlimited, 0)):
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
            self.assertEqual(self.cluster.output(job).count(told), count, self.cluster.output(job))

    def test_cancelled_while_there_is_no_step(self):
        """srun has failed each time, but that is not what the run ended of."""
        busy = self.cluster.work / "busy"
        busy.mkdir()
        srun = busy / "srun"
        srun.write_text('#!/bin/sh\ntouch busy/tried\n'
                        'echo "srun: error: Unable to create step for job $SLURM_JOB_ID: Requested nodes are busy" >&2\nexit 1\n',
                        encoding="utf-8")
        srun.chmod(0o755)
        job = self.submit("PATH=$PWD/busy:$PATH wlb run -- true & until [ -e busy/tried ]; do sleep 0.1; done\n"
                          "sleep 2; kill -TERM $!; wait $!; echo exit code $?", nodes=1, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertIn("exit code 143\n", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "cancelled")
        self.assertEqual([(a["state"], a["exit_code"], a["reason"]) for a in run["attempts"]],
                         [("ended", 143, "cancelled while it waited for a Slurm step")])

    def test_srun_arguments_and_tasks(self):
        job = self.submit("wlb run --tasks-per-node 3 --srun-args '--label --cpu-bind=none' -- sh -c 'echo x'", nodes=2,
                          tasks=4)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        for rank in range(6):
            self.assertIn(f"{rank}: x\n", self.cluster.output(job))

    def test_usage(self):
        for words, text in ((["run", "--", "true"], "SLURM_JOB_ID is not set"), (["run"], "COMMAND [ARGUMENTS] is needed"),
                            (["run", "--bogus"], "--bogus"), (["run", "--max-restarts", "x", "--", "true"], "'x'"),
                            (["run", "--stop-before-end", "1x", "--", "true"], "--stop-before-end '1x'"),
                            (["run", "--name", "a b", "--", "true"], "--name 'a b': must have"),
                            (["show"], "RUN is needed"), (["show", "a/b"], "'a/b'"), (["runs", "--state", "odd"], "'odd'"),
                            (["bogus"], "'bogus'"), (["db", "bogus"], "'bogus' must be migrate, status, reader or prune"), ([], "a command is needed")):
            result = self.cluster.run("wlb", *words, check=False)
            self.assertEqual(result.returncode, 2, f"{words}: {result.stderr}")
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class Faults(RunTest):
    def test_rank_dies(self):
        """kill -9 of one task: the others are ended, and all start again."""
        job = self.submit("wlb run -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || sleep 1011'".replace("LINE", LINE))
        self.wait_output(job, f"task {job} 1 5")
        os.kill(wait_for("a task", lambda: self.sleepers(1011), 10)[0], signal.SIGKILL)
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual([a["state"] for a in run["attempts"]], ["failed", "complete"])
        self.assertEqual(run["nodes"], ["n1", "n2", "n3"])
        self.assert_nothing_left("sleep 1011")

    def test_node_dies(self):
        job = self.submit("wlb run -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || sleep 1012'".replace("LINE", LINE))
        self.wait_output(job, f"task {job} 1 5")
        self.cluster.kill_node(2)
        self.addCleanup(self.restore, 2)
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        again = sorted(task[2:] for task in self.tasks(job) if task[1] == "2")
        self.assertEqual(again, [[str(rank), f"n{(1, 3)[rank // 2]}", "1", "1", "1", "4"] for rank in range(4)])
        run = self.cluster.show(job)
        self.assertEqual((run["state"], run["nodes"]), ("complete", ["n1", "n3"]))
        self.assertIn(("node_lost", "n2"), [(fault["kind"], fault["node"]) for fault in run["faults"]])

    def test_order_to_end(self):
        """The coordinator hears of a lost rank that srun does not notice, and has the attempt ended."""
        job = self.submit("wlb run -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || sleep 1016'".replace("LINE", LINE), nodes=2)
        self.wait_output(job, f"task {job} 1 3")
        attempt = self.cluster.show(job)["attempts"][0]["attempt_id"]
        self.post(f"/v1/runs/{job}/report",
                  {"attempt_id": attempt, "source": "node", "node": "n2", "rank": 2, "ranks": [2, 3], "step": 1,
                   "lost_ranks": [{"rank": 3, "time": time.time()}], "goodbye": False})
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertIn("ending attempt 1: ", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual([a["state"] for a in run["attempts"]], ["failed", "complete"])
        self.assert_nothing_left("sleep 1016")

    def post(self, path, body):
        """One request as any client makes it: docs/api.md."""
        text = json.dumps(body)
        digest = hashlib.sha256(f"POST\n{path}\n{text}".encode()).hexdigest()
        credential = self.cluster.run("munge", "-S", self.cluster.env["WLB_MUNGE_SOCKET"], "-s", digest).stdout.strip()
        request = urllib.request.Request(f"http://{self.cluster.env['WLB_COORDINATOR']}{path}", text.encode(),
                                         {"Authorization": f"MUNGE {credential}"})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def restore(self, node):
        self.cluster.restore_node(node)
        wait_for("all nodes", lambda: self.cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "4\n", 30)

    def test_coordinator_away_at_the_start(self):
        self.cluster.verb("kill-wlbd")
        job = self.submit(f"wlb run -- sh -c '{LINE}; while ! [ -e go ]; do sleep 0.2; done'", nodes=2)
        self.wait_output(job, f"task {job} 1 3")
        self.assertEqual(self.cluster.output(job).count("continuing without the coordinator"), 1)
        self.cluster.verb("start-wlbd")
        (self.cluster.work / "go").touch()
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertEqual(self.spool(), [])
        run = self.cluster.show(job)
        self.assertEqual((run["state"], [a["state"] for a in run["attempts"]]), ("complete", ["complete"]))
        self.assert_places(run)

    def test_node_dies_in_an_attempt_that_began_without_the_coordinator(self):
        """wlbd watches the nodes that the launcher has recorded."""
        self.cluster.verb("kill-wlbd")
        job = self.submit("wlb run -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || sleep 1017'".replace("LINE", LINE), nodes=2)
        self.wait_output(job, f"task {job} 1 3")
        self.cluster.verb("start-wlbd")
        wait_for("the attempt's nodes", lambda: self.cluster.run("wlb", "show", job, "--json", check=False).returncode == 0
                 and self.cluster.show(job)["nodes"], 30)
        self.assert_places(self.cluster.show(job))
        self.cluster.kill_node(2)
        self.addCleanup(self.restore, 2)
        self.assertEqual(self.cluster.wait_job(job, 120), "COMPLETED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual((run["state"], run["nodes"]), ("complete", ["n1"]))
        self.assertIn(("node_lost", "n2"), [(fault["kind"], fault["node"]) for fault in run["faults"]])
        self.assert_nothing_left("sleep 1017")

    def assert_places(self, run):
        """Of an attempt with two ranks on each of n1 and n2."""
        attempt = run["attempts"][0]
        self.assertEqual((attempt["nodes"], attempt["layout"]), (["n1", "n2"], {"tp": 1, "cp": 1, "pp": 1, "dp": 4}))
        self.assertEqual([(place["rank"], place["node"], place["local_rank"]) for place in attempt["rank_map"]],
                         [(0, "n1", 0), (1, "n1", 1), (2, "n2", 0), (3, "n2", 1)])

    def test_coordinator_away_to_the_end(self):
        """The records wait, and `wlb flush` delivers them."""
        self.cluster.verb("kill-wlbd")
        job = self.submit("wlb run -- true", nodes=1)
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertEqual(len(self.spool()), 1)
        self.assertNotEqual(self.cluster.run("wlb", "flush", ".wlb", "--timeout", "1", check=False).returncode, 0)
        self.cluster.verb("start-wlbd")
        self.cluster.run("wlb", "flush", ".wlb")
        self.assertEqual(self.spool(), [])
        self.assertEqual([a["exit_code"] for a in self.cluster.show(job)["attempts"]], [0])

    def test_coordinator_away_at_a_fault(self):
        job = self.submit("wlb run --wait 60 -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || { sleep 3; exit 9; }'"
                          .replace("LINE", LINE), nodes=2)
        self.wait_output(job, f"task {job} 1 3")
        self.cluster.verb("kill-wlbd")
        self.wait_output(job, "waiting for the coordinator")
        self.cluster.verb("start-wlbd")
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertEqual([a["state"] for a in self.cluster.show(job)["attempts"]], ["failed", "complete"])

    def test_no_wait_for_a_coordinator_that_is_away(self):
        """One that answers is waited for all the same: after a fault it has no decision yet."""
        job = self.submit("wlb run --wait 0 -- sh -c 'LINE; [ $WLB_ATTEMPT != 1 ] || { sleep 3; exit 9; }'"
                          .replace("LINE", LINE), nodes=2)
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        self.assertEqual([a["state"] for a in self.cluster.show(job)["attempts"]], ["failed", "complete"])

    def test_coordinator_stays_away_after_a_fault(self):
        job = self.submit("wlb run --wait 2 -- sh -c 'LINE; sleep 3; exit 9'; exit $?".replace("LINE", LINE), nodes=1)
        self.wait_output(job, f"task {job} 1 1")
        self.cluster.verb("kill-wlbd")
        self.addCleanup(self.cluster.verb, "start-wlbd")
        self.assertEqual(self.cluster.wait_job(job, 90), "FAILED")
        self.assertEqual(self.cluster.job(job)["ExitCode"], "9:0")
        self.assertIn("there is no next attempt", self.cluster.output(job))


class Ends(RunTest):
    def test_scancel(self):
        job = self.submit(f"wlb run -- sh -c '{LINE}; sleep 1013'")
        self.wait_output(job, f"task {job} 1 5")
        self.cluster.run("scancel", job)
        self.assertEqual(self.cluster.wait_job(job, 30), "CANCELLED")
        self.assert_nothing_left("sleep 1013")
        self.assert_nothing_left("wlb run")
        wait_for("the run's end", lambda: self.cluster.show(job)["state"] == "cancelled", 20)

    def test_launcher_is_killed(self):
        """kill -9 of `wlb run` takes srun and its tasks along; the script goes on with its next line."""
        job = self.submit(f"wlb run -- sh -c '{LINE}; sleep 1014'\necho next line")
        for rank in range(6):  # Slurm may not end a task that it is just starting
            self.wait_output(job, f"task {job} 1 {rank}")
        launcher = [pid for pid in self.cluster.processes("wlb run") if os.readlink(f"/proc/{pid}/exe").endswith("/wlb")]
        self.assertEqual(len(launcher), 1)
        os.kill(launcher[0], signal.SIGKILL)
        self.assert_nothing_left("sleep 1014")
        self.cluster.wait_job(job, 30)
        self.assertIn("next line", self.cluster.output(job))
        self.assertEqual(self.cluster.run("squeue", "-h", "-s").stdout, "")

    def test_srun_is_killed(self):
        job = self.submit(f"wlb run --max-restarts 0 -- sh -c '{LINE}; sleep 1015'", nodes=2, tasks=1)
        self.wait_output(job, f"task {job} 1 1")
        for pid in self.cluster.processes("srun", "--mpi=pmix"):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.cluster.wait_job(job, 60), "FAILED", self.cluster.output(job))
        self.assert_nothing_left("sleep 1015")

    def test_signals_reach_the_command(self):
        job = self.submit("trap : USR1\nwlb run -- sh -c 'trap \"echo got it; exit 0\" USR1; echo ready; while :; do sleep 0.1; done'",
                          nodes=1, tasks=1)
        self.wait_output(job, "ready")
        self.cluster.run("scancel", "--signal=USR1", "--full", job)
        self.assertEqual(self.cluster.wait_job(job, 30), "COMPLETED", self.cluster.output(job))
        self.assertIn("got it", self.cluster.output(job))


class Looks(RunTest):
    nodes = 2

    def test_tables(self):
        job = self.submit("wlb run -- true", nodes=2, tasks=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        table = self.cluster.run("wlb", "runs").stdout.splitlines()
        self.assertEqual(table[0].split(), "RUN NAME USER STATE NODES LAYOUT STEP LOSS ATTEMPTS STARTED ELAPSED".split())
        self.assertIn("n[1-2]", table[1])
        self.assertEqual(table[1].split()[0], str(job))
        self.assertIn("Attempts\n", self.cluster.run("wlb", "show", job).stdout)
        self.assertEqual(json.loads(self.cluster.run("wlb", "runs", "--json", "--limit", "1").stdout)["runs"][0]["run_id"],
                         str(job))
        more = "more runs are not listed; --limit and the filters choose others"
        self.assertNotIn(more, self.cluster.run("wlb", "runs", "--limit", "1").stdout)
        self.cluster.sql("insert into runs (name, job_id, uid, user_name) values ('990', 990, 0, 'root')")
        limited = self.cluster.run("wlb", "runs", "--limit", "1").stdout.splitlines()
        self.assertEqual((limited[1].split()[0], limited[2:]), ("990", [more]))
        self.assertNotIn(more, self.cluster.run("wlb", "runs", "--limit", "2").stdout)
        missing = self.cluster.run("wlb", "show", "999", check=False)
        self.assertEqual((missing.returncode, missing.stderr.count("\n")), (1, 1), missing.stderr)


if __name__ == "__main__":
    main()
