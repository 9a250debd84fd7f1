#!/usr/bin/env python3
"""From a verdict to a new layout: a fault is named, its node is left out, the run goes on on the nodes that are left, and
the command and the dashboards tell all of it."""
import json
import time

import dashboard_queries
import harness
from harness import BUILD, ROOT, wait_for
from training import TrainingTest

ITERATIONS = 288  # more than pass until a rank is stopped
TIMED_ITERATIONS = 48
SCALE = 4  # a step of the timed device takes a quarter of a second
SAVE_EVERY = 8

WORKER = """#!/bin/bash
export WLB_TIMED_MACHINE=machine.json WLB_TIMED_SCALE=%g
[[ $SLURMD_NODENAME == n3 ]] && export WLB_TIMED_SCALE=%g
exec %s/tests/wlb-worker-timed "$@"
"""


class Chain(TrainingTest):
    def command(self, *words):
        return self.cluster.run("wlb", *words).stdout

    def dashboard_rows(self, board, title, run_id):
        """Rows of a panel's query, as Grafana asks for them."""
        query, = [query for query in dashboard_queries.queries(board) if query.title == title]
        return dashboard_queries.ask(self.cluster, [query], run=[run_id], by=["rank"])[0].rows

    def check_row(self, rows, *words):
        """One of the rows has all of these cells."""
        self.assertTrue(any(all(word in row for word in words) for row in rows), f"{words} in {rows}")

    def check_database(self, run, kind, fault):
        """The verdict, the fault that it became, and the next attempt with a layout of its own on the other nodes."""
        verdicts = self.cluster.sql("select kind, state, action, array_to_string(nodes, ' ') from run_verdicts "
                                    f"where run_id = {run['id']} and confirmed_at is not null")
        self.assertEqual(verdicts, [[kind, "over", "evict", "n3"]])
        self.assertEqual([(f["kind"], f["node"]) for f in run["faults"] if f["cause"]], [(fault, "n3")])
        first, second = run["attempts"]
        self.assertEqual((first["nodes"], second["nodes"]), (["n1", "n2", "n3", "n4"], ["n1", "n2", "n4"]))
        self.assertNotEqual(first["layout"], second["layout"])
        self.assertLess(second["resumed_step"], first["last_step"] + 1)
        self.assertEqual(second["first_step"], second["resumed_step"] + 1)
        iterations = run["train_iters"]
        self.assertEqual([step["step"] for step in run["steps"]], list(range(1, iterations + 1)))
        self.assertEqual({step["attempt"] for step in run["steps"] if step["step"] > second["resumed_step"]}, {2})

    def check_samples(self, run):
        """How late ranks were is recorded from time to time: a line for each rank of the first attempt."""
        rows = self.dashboard_rows("ranks", "Lateness", run["id"])
        self.assertEqual({row[1] for row in rows}, {f"rank {rank:05}" for rank in range(run["attempts"][0]["world_size"])})

    def check_told(self, run, kind, reason):
        """`wlb show`, `wlb faults` and the dashboards."""
        name, kind_words = run["run_id"], kind.replace("_", " ")
        shown = self.command("show", name)
        layouts = [" ".join(f"{key}={attempt['layout'][key]}" for key in ("tp", "cp", "pp", "dp"))
                   for attempt in run["attempts"]]
        self.assertRegex(shown, rf"\n +1  \S+ +n\[1-4\] .*  {reason}")
        self.assertRegex(shown, r"\n +2  complete +n\[1-2,4\] ")
        self.assertRegex(shown, rf"\nVerdicts\n.*\n.* {kind_words} +.* on n3|node n3")
        listed = self.command("faults", name)
        self.assertRegex(listed, rf"(?m)^ .* {kind_words} .*n3 +over +.* evict$")
        self.assertRegex(self.command("faults", "--node", "n3"), rf" {name} +1  {kind_words} ")
        rows = self.dashboard_rows("ranks", "Verdicts of the run", run["id"])
        self.check_row(rows, kind, "over", "n3", "evict")
        rows = self.dashboard_rows("ranks", "Attempts ended to exclude a node", run["id"])
        self.check_row(rows, name, "1", "n3")
        self.check_row(self.dashboard_rows("ranks", "Nodes that verdicts name", run["id"]), "n3")
        rows = self.dashboard_rows("run", "Attempts of the run", run["id"])
        for nodes, layout in zip(("n1 n2 n3 n4", "n1 n2 n4"), layouts):
            self.check_row(rows, nodes, layout)
        self.check_row(self.dashboard_rows("run", "Faults", run["id"]), "n3")

    def test_a_rank_that_hangs(self):
        job = self.submit(nodes=4, tasks_per_node=1, iterations=ITERATIONS)
        self.wait_step(job, 20)
        time.sleep(1.5)  # some reports of healthy steps
        self.stop_in_computation(2)
        stopped = time.monotonic()
        wait_for("a verdict", lambda: self.cluster.show(job)["verdicts"], 10)
        self.say(f"named after {time.monotonic() - stopped:.1f} s")
        run = self.finish(job)
        self.check_complete(run, iterations=ITERATIONS)
        verdict, = run["verdicts"]
        self.assertEqual((verdict["kind"], verdict["ranks"]), ("hang", [2]))
        self.assertEqual([fault["rank"] for fault in run["faults"] if fault["cause"]], [2])
        self.assertIn("stopped by a signal", verdict["evidence"])
        self.check_database(run, "hang", "hang")
        self.check_told(run, "hang", r"rank 2 on n3 hangs at step \d+")
        self.check_standstill(run, verdict)

    def check_standstill(self, run, verdict):
        """Where the ranks stood, and the collective that rank 2 had not entered."""
        call = verdict["calls"][0]
        self.assertEqual((call["inside"], call["missing"]), ([0, 1, 3], [2]))
        text = self.command("show", run["run_id"]).split("\nStacks and collectives in progress of attempt 1\n")[1]
        self.assertRegex(text, r"^  3 ranks: 0-1,3: P?MPI_\w+ \(libmpi\.so.*\n  1 rank, suspect: 2: ")
        self.assertIn(f"\n  {call['kind']} of {call['communicator']}, number {call['sequence']}: entered by 0-1,3, "
                      "not by 2\n", text)

    def test_a_node_whose_ranks_are_slow(self):
        self.make_timed_input()
        job = self.cluster.sbatch(
            "wlb run -- ./timed-worker train --model timed.json --data-path even --seq-length 64 --global-batch-size 16 "
            f"--lr 1e-3 --threads 1 --log-interval 100 --train-iters {TIMED_ITERATIONS} --machine machine.json "
            f"--save timed-ck --load timed-ck --save-interval {SAVE_EVERY}",
            "--wlb-layout=auto", "--wlb-on-fault=slow=evict", "--ntasks-per-node=2", "--no-kill", nodes=4)
        run = self.finish(job)
        self.check_database(run, "slow_node", "slow_node")
        self.check_samples(run)
        self.check_told(run, "slow_node", r"node n3 computes slowly at step \d+")
        self.say(run["verdicts"][0]["evidence"])

    def make_timed_input(self):
        """The timed device waits for the time of each operation, on n3 one and a half times as long."""
        work = self.cluster.work
        machine = json.loads((ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
        model = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128,
                 "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 512,
                 "max_position_embeddings": 64}
        for name, text in (("machine.json", json.dumps(machine | {"peak_flops": 1e10})), ("timed.json", json.dumps(model)),
                           ("even.jsonl", (json.dumps({"text": "a" * 255}) + "\n") * 40),
                           ("timed-worker", WORKER % (SCALE, 1.5 * SCALE, BUILD))):
            (work / name).write_text(text, encoding="utf-8")
        (work / "timed-worker").chmod(0o755)
        self.cluster.run("wlb-data", "build", "--input", "even.jsonl", "--output-prefix", "even")


if __name__ == "__main__":
    harness.main()
