#!/usr/bin/env python3
"""Ranks that stand still: a process that the operating system stops is named, its attempt ends, and its node is left
out."""
import json
import os
import signal
import time

import harness
from harness import BUILD, ROOT, wait_for
from training import TrainingTest, arguments

ITERATIONS = 160
SCALE = 6  # a step takes a third of a second


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
        words = " ".join(arguments(iterations=60))
        return self.cluster.sbatch(f"wlb run -- ./corrupt-worker {words} --threads 1 --sdc-check-interval 5",
                                   "--wlb-layout=tp=1,cp=1,pp=1", "--ntasks-per-node=1", "--no-kill", *options,
                                   nodes=nodes)

    def check(self, run, ranks, nodes, evidence, action):
        self.assertEqual([(v["kind"], v["ranks"], v["nodes"], v["action"], v["step"] % 5) for v in run["verdicts"]],
                         [("bad_values", ranks, nodes, action, 0)])
        self.assertIn(evidence, run["verdicts"][0]["evidence"])
        self.assertTrue(run["verdicts"][0]["confirmed_at"])

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
        self.assertRegex(self.cluster.output(job), r"(?m)^wlb-worker: step 5: silent data corruption: one of rank 0 on n1, "
                         r"rank 1 on n2 computed other bits of a micro-batch than rank 1 on n2$")
        self.assertRegex(self.cluster.run("wlb", "faults", str(job)).stdout, "0,? ?1|0-1")


class SlowRanks(Verdicts):
    """wlb-worker on the timed device, which waits for the time of each operation: one rank waits longer."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        machine = json.loads((ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
        (cls.cluster.work / "machine.json").write_text(json.dumps(machine | {"peak_flops": 1e10}), encoding="utf-8")
        lines = [json.dumps({"text": "a" * 255})] * 40  # with their ends four windows, so that all ranks have equal work
        (cls.cluster.work / "even.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        cls.cluster.run("wlb-data", "build", "--input", "even.jsonl", "--output-prefix", "even")
        model = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
                 "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 512,
                 "max_position_embeddings": 64}
        (cls.cluster.work / "timed.json").write_text(json.dumps(model), encoding="utf-8")

    def train(self, layout, slow_rank, factor, iterations=70):
        """Returns the run: the rank takes `factor` times as long for each operation."""
        worker = self.cluster.work / "timed-worker"
        worker.write_text(f"""#!/bin/bash
export WLB_TIMED_MACHINE=machine.json WLB_TIMED_SCALE={SCALE}
[[ $PMIX_RANK == {slow_rank} ]] && export WLB_TIMED_SCALE={SCALE * factor}
exec {BUILD}/tests/wlb-worker-timed "$@"
""", encoding="utf-8")
        worker.chmod(0o755)
        job = self.cluster.sbatch(
            f"wlb run -- ./timed-worker train --model timed.json --data-path even --seq-length 64 --global-batch-size 16 "
            f"--lr 1e-3 --threads 1 --log-interval 100 --train-iters {iterations} --machine machine.json",
            f"--wlb-layout={layout}", "--ntasks-per-node=4", "--no-kill", nodes=2)
        return self.finish(job)

    def check(self, layout, slow_rank, factor):
        run = self.train(layout, slow_rank, factor)
        named = [(v["kind"], v["ranks"]) for v in run["verdicts"] if v["confirmed_at"]]
        self.assertEqual(named, [("slow_compute", [slow_rank])], run["verdicts"])
        self.assertEqual(len(run["attempts"]), 1)  # slow ranks are reported
        self.say(run["verdicts"][0]["evidence"])

    def test_one_rank_of_eight_replicas(self):
        self.check("dp=8", 5, 1.5)

    def test_one_rank_of_four_dimensions(self):
        self.check("tp=2,cp=1,pp=2,dp=2", 6, 1.5)

    def test_no_rank_is_slow(self):
        run = self.train("dp=8", -1, 1)
        self.assertEqual(run["verdicts"], [])


if __name__ == "__main__":
    harness.main()
