#!/usr/bin/env python3
"""--wlb-layout=auto with a model that does not fit on one rank: the planner splits it, the run trains to the loss of one
process, loses a node, is planned again on what is left, and ends on the same curve. What cannot be planned is refused in
one line before any step starts."""
import functools
import json
import pathlib
import shutil
import subprocess
import tempfile

import harness
import training

ITERATIONS = 16
SAVE_INTERVAL = 4
# 12 million parameters: more than a machine file may give to a rank as its least memory, 100 MB.
MODEL = {"model_type": "llama", "hidden_size": 320, "intermediate_size": 864, "num_hidden_layers": 6,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 16000, "max_position_embeddings": 64,
         "tie_word_embeddings": True}
TRAIN = ["train", "--model", "model.json", "--data-path", "corpus", "--seq-length", "64", "--global-batch-size", "8",
         "--train-iters", str(ITERATIONS), "--lr", "1e-3", "--seed", "1", "--dtype", "float64", "--log-interval", "1"]


def make_input(folder):
    training.make_input(folder)
    (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")


def least_memory(folder, machine, nodes, tasks):
    """Returns the bytes that data parallelism alone needs on a rank."""
    plan = json.loads(subprocess.run(
        [harness.BUILD / "bin/wlb", "plan", "--model", folder / "model.json", "--gpu", machine, "--nodes", str(nodes),
         "--gpus-per-node", str(tasks), "--seq-length", "64", "--global-batch-size", "8", "--lengths", folder / "corpus",
         "--top", "1000", "--json"], check=True, capture_output=True, text=True, timeout=60).stdout)
    return min(p["memory_bytes"]["total"] for p in [plan, *plan["next_best"]]
               if p["layout"]["tp"] == 1 and p["layout"]["pp"] == 1)


@functools.cache
def single_process_losses():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wlb-test-"))
    try:
        make_input(folder)
        subprocess.run([harness.BUILD / "bin/wlb-worker", *TRAIN, "--layout", "tp=1", "--metrics-file", "m.jsonl"],
                       cwd=folder, check=True, capture_output=True, timeout=400)
        lines = (folder / "m.jsonl").read_text(encoding="utf-8").splitlines()
        return {record["step"]: record["loss"] for record in map(json.loads, lines)}
    finally:
        shutil.rmtree(folder)


class Auto(training.TrainingTest):
    nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_input(cls.cluster.work)

    def write_small_machine(self, nodes, tasks):
        """Writes a machine file with too little memory for data parallelism alone; returns its path."""
        machine = json.loads((harness.ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
        path = self.cluster.work / "small.json"
        path.write_text(json.dumps(machine), encoding="utf-8")
        machine["memory_bytes"] = 0.9 * least_memory(self.cluster.work, path, nodes, tasks)
        self.assertGreater(machine["memory_bytes"], 1e8)
        path.write_text(json.dumps(machine), encoding="utf-8")
        return path

    def start(self, *words, before="", options=(), nodes=3, tasks=2):
        command = " ".join([*TRAIN, *words])
        return self.cluster.sbatch(
            f"{before}\nwlb run -- wlb-worker {command} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID "
            f"--save-interval {SAVE_INTERVAL} --metrics-file m-$SLURM_JOB_ID.jsonl",
            "--wlb-layout=auto", f"--ntasks-per-node={tasks}", "--no-kill", "--requeue", *options, nodes=nodes)

    def test_a_model_that_does_not_fit_and_a_lost_node(self):
        machine = self.write_small_machine(3, 2)
        job = self.start("--machine", str(machine))
        self.wait_step(job, SAVE_INTERVAL + 2, 200)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        run = self.finish(job, 400)
        output = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertEqual(run["state"], "complete", output)
        layouts = [attempt["layout"] for attempt in run["attempts"]]
        self.assertEqual(len(layouts), 2)
        for layout in layouts:
            self.assertGreater(layout["tp"] * layout["pp"], 1, layouts)
        self.assertNotEqual(*layouts)
        expected = single_process_losses()
        self.assertEqual([step["step"] for step in run["steps"]], list(range(1, ITERATIONS + 1)))
        for step in run["steps"]:
            self.assertLess(abs(step["loss"] - expected[step["step"]]) / expected[step["step"]], 1e-9, step)
        for attempt in run["attempts"]:
            plan = attempt["plan"]
            self.assertEqual(plan["layout"], attempt["layout"])
            self.assertGreater(plan["step_s"], 0)
            self.assertGreater(plan["no_memory"], 0)
            self.assertTrue(any(other["missing_bytes"] > 0 for other in plan["misfits"]), plan)
            self.assertLessEqual(len(plan["next"]), 3)
        self.assertGreater(run["attempts"][-1]["step_s"], 0)
        for words in ("Why this layout", "does not fit", "chosen", "measured"):
            self.assertIn(words, output)

    def test_ranks_that_no_layout_uses(self):
        """One head, two layers and a batch of two windows: four ranks at most have work, and the third node none."""
        small = {**MODEL, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 1,
                 "num_key_value_heads": 1, "vocab_size": 300}
        (self.cluster.work / "two.json").write_text(json.dumps(small), encoding="utf-8")
        job = self.start("--model", "two.json", "--global-batch-size", "2", "--train-iters", "4")
        run = self.finish(job)
        attempt = run["attempts"][0]
        self.assertEqual((run["state"], run["steps_done"]), ("complete", 4))
        self.assertLessEqual(attempt["world_size"], 4)
        self.assertEqual(attempt["plan"]["idle_ranks"], 6 - attempt["world_size"])
        self.assertEqual(attempt["plan"]["idle"], {1: "n[2-3]", 2: "n3"}[len(run["nodes"])])
        shown = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertIn(f"all of {attempt['plan']['idle']}", shown)

    def refused(self, job, *words):
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        output = self.cluster.output(job)
        for word in words:
            self.assertIn(word, output)
        self.assertNotIn("srun: error", output)
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "failed")
        self.assertEqual([attempt["started_at"] for attempt in run["attempts"]], [None])
        self.assertIn(words[0], run["reason"])

    def test_what_cannot_be_planned(self):
        small = self.cluster.work / "tiny.json"
        machine = json.loads((harness.ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
        machine["memory_bytes"] = 1.001e8
        small.write_text(json.dumps(machine), encoding="utf-8")
        large = {**MODEL, "hidden_size": 4096, "intermediate_size": 11008}
        (self.cluster.work / "large.json").write_text(json.dumps(large), encoding="utf-8")
        self.refused(self.start("--machine", "/none/m.json"), "bad input", "/none/m.json")
        self.refused(self.start("--machine", str(small), "--model", "large.json"), "bad input", "none of", "use more")
        self.refused(self.start("--model", "/none/config.json"), "bad input", "/none/config.json",
                     "file system that all nodes share")


if __name__ == "__main__":
    harness.main()
