#!/usr/bin/env python3
"""Tests a whole run without faults, from sbatch to its records in PostgreSQL and the output of `wlb show`."""
import itertools
import json
import pathlib

import harness
import training


class Run(training.TrainingTest):
    def test_recorded_run(self):
        job = self.submit("--job-name=recorded", "--wlb-model=model.json", "--wlb-seq-length=256")
        run = self.finish(job)
        self.check_complete(run)
        self.check_repeats(run, attempts=1)
        self.assertEqual((run["job_id"], run["job_name"], run["train_iters"]), (job, "recorded", training.ITERATIONS))
        self.assertEqual(run["nodes"], ["n1", "n2", "n3", "n4"])
        self.assertEqual(run["layout"]["tp"] * run["layout"]["cp"] * run["layout"]["pp"] * run["layout"]["dp"], 8)
        self.assertEqual([(place["rank"], place["node"]) for place in run["rank_map"]],
                         [(rank, f"n{rank // 2 + 1}") for rank in range(8)])
        self.assertEqual([c["step"] for c in run["checkpoints"]],
                         list(range(training.SAVE_INTERVAL, training.ITERATIONS + 1, training.SAVE_INTERVAL)))
        self.assertEqual(run["faults"], [])
        self.assertEqual(run["model"]["hidden_size"], training.MODEL["hidden_size"])
        self.assertEqual(list((self.cluster.work / ".wlb").glob("*.jsonl")), [], "all is recorded")

    def test_float32(self):
        job = self.submit(dtype="float32")
        self.check_complete(self.finish(job), dtype="float32")

    def test_four_dimensions(self):
        layout = {"tp": 2, "cp": 2, "pp": 2, "dp": 2}
        for dtype in ("float32", "float64"):
            with self.subTest(dtype):
                job = self.submit(layout=",".join(f"{name}={ways}" for name, ways in layout.items()), tasks_per_node=4,
                                  dtype=dtype)
                run = self.finish(job)
                self.check_complete(run, dtype=dtype)
                self.assertEqual(run["layout"], layout)
                self.assertEqual([(place["rank"], place["node"]) for place in run["rank_map"]],
                                 [(rank, f"n{rank // 4 + 1}") for rank in range(16)])

    def test_plain_srun_is_placed_and_recorded(self):
        words = " ".join(training.arguments())
        job = self.cluster.sbatch(f"srun --mpi=pmix wlb-worker {words}", "--wlb-layout=auto", "--ntasks-per-node=1", nodes=2)
        run = self.finish(job)
        self.check_complete(run)
        self.assertEqual(run["nodes"], ["n1", "n2"])

    def test_two_runs_of_one_job(self):
        words = " ".join(training.arguments(iterations=5))
        job = self.cluster.sbatch(f"wlb run -- wlb-worker {words}\nwlb run -- wlb-worker {words}", "--wlb-layout=auto",
                                  "--ntasks-per-node=1", nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        for name in (f"{job}", f"{job}.2"):
            run = self.cluster.show(name)
            self.assertEqual((run["state"], run["steps_done"]), ("complete", 5), name)

    def test_phases(self):
        """The example, with few steps: windows of 1,024 tokens, then of 8,192 in another layout, evaluated before and after."""
        script = (harness.ROOT / "examples/phases.sbatch").read_text(encoding="utf-8")
        (self.cluster.work / "long.json").write_text(json.dumps({**training.MODEL, "max_position_embeddings": 8192}), encoding="utf-8")
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(pathlib.Path("/usr/share/common-licenses").glob("GPL-?")))
        with open(self.cluster.work / "texts.jsonl", "w", encoding="utf-8") as texts:
            for length in itertools.islice(itertools.cycle((90, 700, 250, 1100, 40, 2500)), 90):
                print(json.dumps({"text": text[:length]}), file=texts)
                text = text[length:]
        self.cluster.run("wlb", "data", "build", "--input", "texts.jsonl", "--output-prefix", "texts")
        sizes = "export MODEL=long.json DATA=texts HELD_OUT=texts ITERS=4\n"
        job = self.cluster.sbatch(script.replace("set -e\n", f"set -e\n{sizes}"), "--wlb-layout=auto", "--ntasks-per-node=2", nodes=4)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        short, long = self.cluster.show(f"{job}"), self.cluster.show(f"{job}.2")
        self.assertEqual([(run["state"], run["steps_done"]) for run in (short, long)], [("complete", 4)] * 2)
        self.assertEqual((short["seq_length"], long["seq_length"], long["layout"]), (1024, 8192, {"tp": 1, "cp": 4, "pp": 1, "dp": 2}))
        self.assertEqual([e["step"] for e in long["evaluations"]], [0, 1, 2, 3, 4])
        self.assertLess(long["evaluations"][-1]["loss"], long["evaluations"][0]["loss"])
        self.assertRegex([e["detail"] for e in long["events"] if e["kind"] == "phase"][0], r"^step 1: the weights of short/step_00000004$")
        index = self.cluster.work / "published/model.safetensors"
        self.assertIn(b'"dtype":"BF16"', index.read_bytes()[:4096])

    def test_what_people_read(self):
        words = " ".join(training.arguments(iterations=5))
        job = self.cluster.sbatch(f"wlb run -- wlb-worker {words} --trace-dir traces --trace-steps 2:3 --rampup-batch-size 8 8 24",
                                  "--wlb-layout=auto", "-J", "readable")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertIn("readable", self.cluster.run("wlb", "runs").stdout)
        self.assertIn("complete", self.cluster.run("wlb", "show", job).stdout)
        self.assertEqual(self.cluster.run("wlb", "show", "999999", check=False).returncode, 1)
        rows = self.cluster.sql("select coalesce(global_batch_size, 0), loss_tokens is null from run_steps "
                                f"where run = '{job}' order by step")
        self.assertEqual(rows, [["8", "t"]] * 3 + [["0", "t"]] * 2, "the batch of a step is stored in the ramp alone")
        self.check_trace(job)

    def check_trace(self, job):
        self.cluster.run("wlb", "trace", job, "--steps", "3", "-o", "trace.json")
        events = json.loads((self.cluster.work / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        ranks = {place["rank"] for place in self.cluster.show(job)["rank_map"]}
        self.assertEqual({span["pid"] for span in spans if span["name"] == "step"}, ranks)
        self.assertEqual({span["args"]["step"] for span in spans}, {3})
        refused = self.cluster.run("wlb", "trace", "999999", "-o", "trace.json", check=False)
        self.assertEqual(refused.returncode, 1, refused)


if __name__ == "__main__":
    harness.main()
