#!/usr/bin/env python3
"""wlb-agent: one process of a node for each step of a run. Nothing of it is seen by a job but that faults are noticed,
whatever the trainer is."""
import os
import pathlib
import re
import signal
import statistics
import time
import urllib.request
import uuid

import harness
import report_tap
import training
from harness import clock_s, wait_for

AGENT = "wlb-agent --run"


class AgentTest(training.TrainingTest):
    nodes = 3

    def sleep(self, seconds, *options, nodes=3, tasks=2, more=""):
        """Submits a run of a trainer that is not ours: its first attempt sleeps. Returns the job when all ranks do."""
        job = self.cluster.sbatch(f"wlb run -- sh -c '[ $WLB_ATTEMPT != 1 ] || exec sleep {seconds}'{more}",
                                  "--wlb-layout=auto", "--no-kill", "--requeue", f"--ntasks-per-node={tasks}", *options,
                                  nodes=nodes)
        wait_for(f"all ranks of job {job}", lambda: len(self.ranks(seconds)) == nodes * tasks, 30)
        return job

    def ranks(self, seconds):
        """Rank -> pid of the tasks that sleep so long."""
        found = {}
        for pid in self.cluster.processes(f"sleep {seconds}"):
            try:
                if os.readlink(f"/proc/{pid}/exe").endswith("/sleep"):
                    found[int(self.variable(pid, "SLURM_PROCID"))] = pid
            except OSError:
                pass  # it has just ended
        return found

    @staticmethod
    def variable(pid, name):
        entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return next((entry.split(b"=", 1)[1].decode() for entry in entries if entry.startswith(name.encode() + b"=")), None)

    @staticmethod
    def parent(pid):
        return int(re.search(r"PPid:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1])

    def agents(self):
        """Node -> number of tasks, of every agent."""
        found = {}
        for pid in self.cluster.processes(AGENT):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
            if "--node" in words:
                found[words[words.index("--node") + 1]] = int(words[words.index("--tasks") + 1])
        return found

    def set_agent(self, value):
        """The plugin's argument, until the test ends."""
        plugstack = self.cluster.dir / "etc" / "plugstack.conf"
        before = plugstack.read_text(encoding="utf-8")
        self.addCleanup(plugstack.write_text, before, encoding="utf-8")
        plugstack.write_text(re.sub(r"agent=\S+", f"agent={value}", before), encoding="utf-8")

    def tap(self):
        """Reports of jobs from now on pass through the tap that is returned."""
        tap = report_tap.Tap(self.cluster.env["WLB_COORDINATOR"])
        self.addCleanup(tap.close)
        plugstack = self.cluster.dir / "etc" / "plugstack.conf"
        before = plugstack.read_text(encoding="utf-8")
        self.addCleanup(plugstack.write_text, before, encoding="utf-8")
        plugstack.write_text(re.sub(r"coordinator=\S+", f"coordinator=127.0.0.1:{tap.port}", before), encoding="utf-8")
        return tap

    def causes(self, job):
        return self.cluster.sql("SELECT f.kind, coalesce(f.node, ''), coalesce(f.rank::text, '') FROM faults f "
                                "JOIN attempts a ON a.id = f.attempt_id JOIN runs r ON r.id = a.run_id "
                                f"WHERE r.name = '{job}' AND f.cause")

    def check_noticed(self, job, began, fault, within_s=3):
        """The fault is recorded as the first attempt's cause within the 2 s that are promised, and what this test itself takes."""
        wait_for(f"the cause {fault}", lambda: self.causes(job) == [list(fault)], 30, 0.02)
        took_s = clock_s() - began
        print(f"noticed after {took_s:.2f} s", end=" ")
        self.assertLess(took_s, within_s)

    def check_nothing_left(self, *words):
        for what in (AGENT, *words):
            wait_for(f"end of '{what}'", lambda what=what: not self.cluster.processes(what), 20)


class Noticed(AgentTest):
    def test_a_killed_rank(self):
        for seconds, rank in ((2001, 3), (2002, 2), (2003, 0)):  # any; the first of a node; the first of all
            with self.subTest(rank=rank):
                job = self.sleep(seconds)
                began = clock_s()
                os.kill(self.ranks(seconds)[rank], signal.SIGKILL)
                self.check_noticed(job, began, ("rank_lost", f"n{rank // 2 + 1}", str(rank)))
                self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
                self.check_nothing_left(f"sleep {seconds}")

    def test_a_killed_node(self):
        job = self.sleep(2004)
        began = clock_s()
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        self.check_noticed(job, began, ("node_lost", "n3", ""), within_s=4)  # kill-node looks for the node's processes first
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.check_nothing_left("sleep 2004")

    def test_a_rank_while_slurmstepd_is_stopped(self):
        """Nobody reaps the rank, but the kernel says how it ended."""
        job = self.sleep(2005)
        ranks = self.ranks(2005)
        stepd = self.parent(ranks[3])
        os.kill(stepd, signal.SIGSTOP)
        self.addCleanup(self.signal, stepd, signal.SIGCONT)
        began = clock_s()
        os.kill(ranks[3], signal.SIGKILL)
        self.check_noticed(job, began, ("rank_lost", "n2", "3"))
        os.kill(stepd, signal.SIGCONT)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.check_nothing_left("sleep 2005")

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Ended(AgentTest):
    def test_scancel(self):
        job = self.sleep(2011)
        self.assertEqual(self.agents(), {"n1": 2, "n2": 2, "n3": 2})
        self.cluster.run("scancel", job)
        self.assertEqual(self.cluster.wait_job(job), "CANCELLED")
        self.check_nothing_left("sleep 2011")

    def test_signals_do_not_end_it(self):
        job = self.sleep(2012)
        agents = sorted(self.cluster.processes(AGENT))
        for pid in agents:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
                os.kill(pid, number)
        time.sleep(1)
        self.assertEqual(sorted(self.cluster.processes(AGENT)), agents)
        self.assertEqual(self.causes(job), [])
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)
        self.check_nothing_left("sleep 2012")

    def test_slurmstepd_is_killed(self):
        """Its ranks, and what they have started, are nobody's then but the agent's."""
        job = self.sleep(2013, "--no-requeue", nodes=2)
        os.kill(self.parent(self.ranks(2013)[3]), signal.SIGKILL)
        time.sleep(2)
        self.assertEqual(self.agents().get("n2"), 2)  # as long as its ranks live
        self.cluster.run("scancel", job)
        wait_for("end of the ranks", lambda: not self.ranks(2013), 90)
        self.check_nothing_left("sleep 2013")

    def test_ranks_that_nobody_else_can_end(self):
        """`wlb run` and srun are stopped, and slurmctld is: the agents obey."""
        job = self.sleep(2014)
        ranks = self.ranks(2014)
        launcher = [pid for pid in self.cluster.processes("wlb run --") + self.cluster.processes("srun")
                    if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() in ("wlb", "srun")]
        self.cluster.verb("freeze-service", "slurmctld")
        self.addCleanup(self.cluster.verb, "thaw-service", "slurmctld")
        for pid in launcher:
            os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        os.kill(ranks[5], signal.SIGKILL)
        wait_for("end of the ranks", lambda: not self.ranks(2014), 20)
        print(f"ended after {time.monotonic() - began:.1f} s", end=" ")
        self.check_nothing_left()
        self.cluster.verb("thaw-service", "slurmctld")
        for pid in launcher:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))


class Steps(AgentTest):
    """Which steps have an agent, and what it costs them."""

    nodes = 2

    def srun(self, *words, layout="WLB_DP=5", attempt=True, **options):
        variables = dict(item.split("=") for item in ("WLB_TP=1", "WLB_CP=1", "WLB_PP=1", layout))
        # Without an attempt: a step of a job that has the option.
        variables |= {"WLB_ATTEMPT_ID": str(uuid.uuid4())} if attempt else {"SLURM_WLB_LAYOUT": "auto"}
        return self.cluster.run("srun", "--wlb-layout=auto", *words, env=variables, **options)

    def test_uneven_tasks(self):
        out = self.srun("-N2", "-n5", "sh", "-c",
                        "sleep 0.5; ps -eo args | grep \"[w]lb-agent.*$WLB_ATTEMPT_ID\"; echo $WLB_NODE_PAGE")
        counts = {(m[1], int(m[2])) for m in re.finditer(r"--node (\w+) --nodes 2 --tasks (\d)", out.stdout)}
        self.assertEqual(counts, {("n1", 4), ("n2", 1)}, out.stdout)
        self.assertEqual(len(set(re.findall(r"^/proc/\d+/fd/\d+$", out.stdout, re.M))), 2)
        self.check_nothing_left()

    def test_other_steps_have_none(self):
        page = "echo page=$WLB_NODE_PAGE"
        for words, options in ((("-N2", "-n4", "sh", "-c", page), {}),  # not of the layout's size
                               (("-N1", "-n5", "sh", "-c", page), {"attempt": False})):
            result = self.srun(*words, **options)
            self.assertEqual(set(result.stdout.split()), {"page="}, result.stdout)
        # A step that a rank starts, with all of the rank's environment.
        result = self.srun("-N1", "-n1", "sh", "-c", f"{page}; srun --overlap -N1 -n1 sh -c '{page}'", layout="WLB_DP=1")
        lines = [line for line in result.stdout.split() if line.startswith("page=")]
        self.assertRegex(lines[0], r"^page=/proc/\d+/fd/\d+$")
        self.assertEqual(lines[1:], ["page="], result.stdout)

    def test_without_the_program_a_step_runs(self):
        self.set_agent("/nowhere/wlb-agent")
        result = self.srun("-N1", "-n5", "sh", "-c", "echo page=$WLB_NODE_PAGE")
        self.assertEqual(result.stdout.split(), ["page="] * 5)
        self.assertEqual(result.stderr.count("/nowhere/wlb-agent: cannot be started: No such file"), 1, result.stderr)

    def test_the_end_of_a_step_is_not_delayed(self):
        times_s = {True: [], False: []}
        for _ in range(10):
            for attempt, times in times_s.items():
                began = time.monotonic()
                self.srun("-N2", "-n2", "true", layout="WLB_DP=2", attempt=attempt)
                times.append(time.monotonic() - began)
        print(f"srun takes {statistics.median(times_s[False]):.3f} s, "
              f"with agents {statistics.median(times_s[True]):.3f} s", end=" ")
        wait_for("end of the agents", lambda: not self.cluster.processes(AGENT), 5)


class Worker(AgentTest):
    """wlb-worker leaves reports to the agent."""

    def reports(self):
        with urllib.request.urlopen(f"http://{self.cluster.env['WLB_COORDINATOR']}/metrics", timeout=5) as reply:
            return int(re.search(r"^wlbd_reports_total (\d+)", reply.read().decode(), re.M)[1])

    def test_a_stopped_rank_does_not_silence_its_node(self):
        job = self.submit(nodes=3, iterations=400)
        self.wait_step(job, 3)
        pid = self.rank_pid(2)  # the first of n2
        os.kill(pid, signal.SIGSTOP)
        before, began = self.reports(), time.monotonic()
        time.sleep(5)
        count, seconds = self.reports() - before, time.monotonic() - began
        os.kill(pid, signal.SIGCONT)
        self.assertGreaterEqual(count, 4 * (seconds - 1))  # of three nodes and the launcher
        self.wait_step(job, self.step_done(job) + 3)
        self.assertEqual(self.causes(job), [])
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)
        self.check_nothing_left("wlb-worker train")

    def test_the_step_is_reported(self):
        job = self.submit(nodes=2)
        self.wait_step(job, 20)
        os.kill(self.rank_pid(2), signal.SIGKILL)
        run = self.finish(job)
        self.assertGreaterEqual(max(fault["step"] or 0 for fault in run["faults"] if fault["cause"]), 15)
        self.assertEqual([(f["kind"], f["node"], f["rank"]) for f in run["faults"] if f["cause"]], [("rank_lost", "n2", 2)])

    def test_without_an_agent_its_ranks_report(self):
        self.set_agent("no")
        job = self.submit(nodes=2)
        self.wait_step(job, training.SAVE_INTERVAL + 6)
        self.assertEqual(self.agents(), {})
        os.kill(self.rank_pid(2), signal.SIGKILL)
        run = self.finish(job)
        self.check_complete(run)
        self.assertEqual([(f["kind"], f["node"], f["rank"]) for f in run["faults"] if f["cause"]], [("rank_lost", "n2", 2)])


class ToldSteps(AgentTest):
    """What the reports say of the steps that ranks have ended."""

    nodes = 2

    def counter(self, name):
        with urllib.request.urlopen(f"http://{self.cluster.env['WLB_COORDINATOR']}/metrics", timeout=5) as reply:
            return int(re.search(rf"^{name} (\d+)", reply.read().decode(), re.M)[1])

    def test_reports_have_the_steps_of_all_ranks(self):
        tap, counted = self.tap(), self.counter("wlbd_rank_steps_total")
        job = self.submit(nodes=2, tasks_per_node=2, layout="tp=1,cp=1,pp=2")
        self.check_complete(self.finish(job))
        reports = tap.reports()
        entries = [entry for report in reports for entry in report.get("steps", ())]
        self.assertEqual(self.counter("wlbd_rank_steps_total") - counted, len(entries))
        self.assertEqual(sum(report.get("lost_steps", 0) for report in reports), 0)
        self.assertEqual({report["node"] for report in reports if report.get("steps")}, {"n1", "n2"})
        of_rank = {rank: [entry for entry in entries if entry[0] == rank] for rank in range(4)}
        steps = [entry[1] for entry in of_rank[0]]
        self.assertGreater(len(steps), 5)
        self.assertEqual(steps, sorted(set(steps)))
        stored = dict(self.cluster.sql("SELECT step, step_time_s FROM steps JOIN runs ON runs.id = run_id "
                                       f"WHERE runs.name = '{job}'"))
        stored_s = sum(float(stored[str(step)]) for step in steps)
        for rank, told in of_rank.items():
            self.assertEqual([entry[1] for entry in told], steps, f"of rank {rank}")
            seconds, aside, computed, work, loader, storage = (sum(entry[i] for entry in told) for i in range(2, 8))
            self.say(f"rank {rank}: {len(told)} steps of {1e-6 * (seconds - aside):.2f} s, {stored_s:.2f} s are stored;")
            self.assertLess(abs(1e-6 * (seconds - aside) / stored_s - 1), 0.2)
            self.assertGreater(computed, 0)
            self.assertGreater(work, 0)
            self.assertLessEqual(storage, loader)
            blocked = sum(transfer[2] for entry in told for transfer in entry[10])
            self.assertLess(computed + loader + aside + blocked, 1.05 * seconds)
            names = {transfer[0] for entry in told for transfer in entry[10]}
            self.assertTrue({"data", "world"} <= names and any(name.startswith("pp") for name in names), names)
        self.assertTrue(all(entry[8] is not None for entry in entries if entry[0] % 2 == 1), "losses of the last stage")
        self.assertTrue(all(entry[9] is None for entry in entries), "no norm of own gradients is told")
        works = {activity["rank"] for report in reports for activity in report.get("activities", ()) if "work" in activity}
        self.assertEqual(works, {0, 1, 2, 3})


if __name__ == "__main__":
    harness.main()
