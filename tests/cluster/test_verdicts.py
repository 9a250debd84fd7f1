#!/usr/bin/env python3
"""Ranks that hang or are slow: a process that the operating system stops is named, its attempt ends, and its node
is left out; slow ranks are named and no others."""
import contextlib
import os
import signal
import time

import harness
from harness import BUILD, ClusterTest, wait_for
from live_run import STOPPED_IN, CoreRun, TimedRun, make_input
from training import TrainingTest, arguments

ITERATIONS = 160
SCALE = 1
STEP_S = 0.18  # of computation
LEARN_STEPS = 20  # what is usual is learnt in them


class Verdicts(TrainingTest):
    def start(self, *options, iterations=ITERATIONS, **more):
        job = self.submit(*options, iterations=iterations, **more)
        self.wait_step(job, 20)
        time.sleep(1.5)  # some reports of healthy steps
        return job

    def stop_rank(self, rank):
        pid = self.rank_pid(rank)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def verdicts(self, job):
        return self.cluster.show(job)["verdicts"]

    def wait_verdict(self, job, state, timeout_s):
        """Returns the first verdict that has reached the state."""
        order = ["suspected", "confirmed", "over"]

        def found():
            return [v for v in self.verdicts(job) if order.index(v["state"]) >= order.index(state)]

        return wait_for(f"a verdict of job {job} that is {state}", found, timeout_s)[0]

    def finish_on(self, job, nodes):
        """Waits for the end; the second attempt has these nodes."""
        run = self.finish(job)
        self.assertEqual(run["state"], "complete")
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]][1:], [nodes])
        return run


class Hangs(Verdicts):
    def test_local_rank_0(self):
        job = self.start(nodes=2, tasks_per_node=2)
        self.stop_rank(2)  # the first on n2
        run = self.finish_on(job, ["n1"])
        self.assertRegex(run["attempts"][0]["reason"], r"^rank 2 on n2 hangs at step \d+$")

    def test_a_verdict_ends_with_its_attempt_while_the_coordinator_is_away(self):
        job = self.start("--wlb-on-fault=report", nodes=2, tasks_per_node=1)
        pid = self.stop_rank(1)
        self.assertEqual(self.wait_verdict(job, "confirmed", 20)["action"], "report")
        self.cluster.verb("kill-wlbd")
        self.cluster.run("scancel", str(job))
        with contextlib.suppress(ProcessLookupError):  # Slurm may have killed it by now
            os.kill(pid, signal.SIGCONT)
        self.cluster.wait_job(job, 60)
        self.cluster.verb("start-wlbd")
        wait_for("the end of the verdict", lambda: [v["state"] for v in self.verdicts(job)] == ["over"], 60)


class SilentCorruption(Verdicts):
    """wlb-worker whose rank on n2 flips a bit in each of its passes (tests/unit/worker/worker_corrupt.c)."""

    def train(self, nodes, *options):
        worker = self.cluster.work / "corrupt-worker"
        worker.write_text(f"""#!/bin/bash
[[ $SLURMD_NODENAME == n2 ]] && export CORRUPT_PLACE=1 CORRUPT_IN=forward
exec {BUILD}/tests/worker_corrupt "$@"
""", encoding="utf-8")
        worker.chmod(0o755)
        words = " ".join(arguments(iterations=400))  # more than are trained until a rank is left out
        return self.cluster.sbatch(f"wlb run -- ./corrupt-worker {words} --threads 1 --sdc-check-interval 40",
                                   "--wlb-layout=tp=1,cp=1,pp=1", "--ntasks-per-node=1", "--no-kill", *options,
                                   nodes=nodes)

    def check(self, run, ranks, nodes, evidence, action):
        # Ranks that report a second earlier than others that are suspected with them are suspected alone until then. Ranks are
        # slow while another test takes their processor.
        confirmed = [verdict for verdict in run["verdicts"] if verdict["confirmed_at"] and verdict["kind"] != "slow_compute"]
        self.assertEqual({(v["kind"], *v["ranks"], *v["nodes"], v["action"], v["step"] % 40) for v in confirmed},
                         {("bad_values", *ranks, *nodes, action, 0)})
        self.assertIn(evidence, confirmed[0]["evidence"])

    def test_of_three_replicas_one_is_named_and_its_node_left_out(self):
        run = self.finish(self.train(3, "--wlb-on-fault=corrupt=evict"))
        self.check(run, [1], ["n2"], "rank 1 (node n2) computed other bits of a micro-batch than rank 0 (node n1)", "evict")
        self.assertRegex(run["attempts"][0]["reason"], r"^rank 1 on n2 computes values unlike its peers' at step \d+$")
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2", "n3"], ["n1", "n3"]])

    def test_of_two_replicas_both_are_named(self):
        job = self.train(2)
        run = self.finish(job)
        self.check(run, [0, 1], ["n1", "n2"], "one of 2 ranks, the first of them rank 0 (node n1), computed other bits",
                   "report")
        self.assertRegex(self.cluster.output(job), r"(?m)^wlb-worker: step 40: silent data corruption: one of rank 0 on n1, "
                         r"rank 1 on n2 computed other bits of a micro-batch than rank 1 on n2$")
        self.assertRegex(self.cluster.run("wlb", "faults", str(job)).stdout, "0,? ?1|0-1")


class LiveRuns(ClusterTest):
    """Runs whose verdicts are reported, and whose ranks go on after them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_input(cls.cluster)

    def timed(self, layout, **more):
        run = TimedRun(self.cluster, layout, 8, SCALE, "--wlb-on-fault=report", **more)
        self.addCleanup(run.cancel)
        return run

    def named(self, run, state="confirmed"):
        return sorted((verdict["kind"], *verdict["ranks"]) for verdict in run.verdicts() if verdict[state])

    def check_slow(self, run, rank, before, most_steps):
        """The rank, slow since a step, is named within so many."""
        expected = [("slow_compute", rank)]
        wait_for(f"a verdict on rank {rank}", lambda: self.named(run) == expected or run.step() > before + most_steps, 150)
        self.say(f"rank {rank} named after {run.step() - before} steps")
        self.assertEqual(self.named(run, "found"), expected, run.verdicts())
        self.assertLessEqual(run.step(), before + most_steps)

    def say(self, text):
        print(text, end="; ")

    def test_slow_ranks(self):
        """Two runs beside each other: of neither a rank is named before one is slow, and then that one alone."""
        runs = {5: self.timed("dp=8"), 6: self.timed("tp=2,cp=1,pp=2,dp=2")}
        for run in runs.values():
            run.wait_step(4)
            run.make_ranks_compute(STEP_S)
        for run in runs.values():
            run.wait_step(2 * LEARN_STEPS)
            self.assertEqual(run.verdicts(), [])
        before = {rank: run.step() for rank, run in runs.items()}
        for rank, run in runs.items():
            run.slow(rank, 1.5)
        for rank, run in runs.items():
            self.check_slow(run, rank, before[rank], 50)
            self.assertEqual(len(self.cluster.show(run.job)["attempts"]), 1)

    def test_a_rank_at_half_speed(self):
        """Of two ranks, each on a core, one is stopped and continued in turns: it is slow and does not hang."""
        run = CoreRun(self.cluster, "--wlb-on-fault=report")
        self.addCleanup(run.cancel)
        run.wait_step(2 * LEARN_STEPS)
        self.assertEqual(run.verdicts(), [])
        before = run.step()
        with run.half_speed(0):
            self.check_slow(run, 0, before, 90)  # 30 where no other test shares the cores: scripts/bench real_verdicts

    def test_stops_in_loader_and_checkpoint(self):
        """Of two nodes the first rank of one and another of the other; both activities wait for files, which are held."""
        run, ranks = self.timed("dp=8", save_interval=8), (0, 5)
        run.wait_step(4)
        for place, words in ((run.in_loader, "waiting for its loader"), (run.in_checkpoint, "writing a checkpoint")):
            last = max((verdict["id"] for verdict in run.verdicts()), default=0)

            def new(after=last):
                return [verdict for verdict in run.verdicts() if verdict["id"] > after]

            with place(*ranks):
                stopped = [run.stop(rank) for rank in ranks]
                wait_for("both verdicts", lambda: len(new()) >= len(ranks), 15)
                verdicts = new()
            self.assertEqual(sorted((verdict["kind"], *verdict["ranks"]) for verdict in verdicts), [("hang", rank) for rank in ranks])
            self.say(f"named after {max(verdict['found'] for verdict in verdicts) - min(stopped):.1f} s")
            self.assertLess(max(verdict["found"] for verdict in verdicts) - min(stopped), 10)
            # One of them may be a step ahead of the other, in a call. Rank 0 alone writes while the others wait for it.
            places = {rank: STOPPED_IN.search(verdict["evidence"]).group(1) for verdict in verdicts for rank in verdict["ranks"]}
            self.assertIn(words, places.values() if place == run.in_loader else [places[0]])
            self.assertTrue(place != run.in_loader or set(places.values()) <= {words, "in a call"}, places)
            for rank in ranks:
                run.go_on(rank)
            run.wait_steps(2)
            self.assertEqual(len(self.cluster.show(run.job)["attempts"]), 1)


if __name__ == "__main__":
    harness.main()
