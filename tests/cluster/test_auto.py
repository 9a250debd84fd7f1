#!/usr/bin/env python3
"""--wlb-layout=auto as the user sees it. A model that does not fit on one rank is split by the planner, trains to the loss
of one process, loses a node, is split otherwise on what is left because that is better there, and ends on the same curve.
A calibration that changes changes the next answer, and its record says why. What cannot be planned is refused in one line
before any step starts. Other trainers, and runs without wlbd, have the same search."""
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import harness
import test_wlbd_api
import training

ITERATIONS = 10
SAVE_INTERVAL = 3
NODES, TASKS = 4, 2
SEQ_LENGTH, WINDOWS = 32, 8
# 10 million parameters: more than a machine file may give to a rank as its least memory, 100 MB.
MODEL = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 1280, "num_hidden_layers": 6,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 12000, "max_position_embeddings": 64,
         "tie_word_embeddings": True}
# A core of about 40 GFLOP/s, so that communication is cheap beside products.
CORE = {**json.loads((harness.ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8")), "name": "core",
        "peak_flops": 4e10, "memory_bytes_per_s": 4e9, "element_bytes": 8, "gpus_per_node": TASKS}
TRAIN = ["train", "--model", "model.json", "--data-path", "corpus", "--seq-length", str(SEQ_LENGTH), "--global-batch-size",
         str(WINDOWS), "--train-iters", str(ITERATIONS), "--lr", "1e-3", "--seed", "1", "--dtype", "float64",
         "--log-interval", "1"]
# Another trainer: its task of rank 0 prints what auto tells it.
FOREIGN = "sh -c 'if [ $SLURM_PROCID = 0 ]; then env | grep ^WLB_ | sort; echo arguments: \"$@\"; fi' trainer"


def make_input(folder):
    training.make_input(folder)
    (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")


def write_index(path, lengths):
    """Writes Megatron-LM's index of documents of so many tokens; common/index_format.h has the format."""
    count = len(lengths)
    pointers = [4 * sum(lengths[:i]) for i in range(count)]
    path.write_bytes(b"MMIDIDX\0\0" + struct.pack(f"<QBQQ{count}i{count}q{count + 1}q", 1, 4, count, count + 1, *lengths,
                                                   *pointers, *range(count + 1)))


def headings(text):
    """How the lines of a run begin that `wlb show` prints first, and the titles of sections and of their columns; without
    verdicts and stacks, which a busy machine may add."""
    lines = [re.sub("^[0-9]+$", "a number", line.split()[0]) for line in text[:text.index("\n\n")].splitlines()]
    titles = re.findall(r"^([A-Z][a-z]+(?: [a-z]+)*)(?: \(.*\))?$", text, re.MULTILINE)
    columns = [" ".join(line.split()) for line in text.splitlines() if line.isupper()]
    return ([word for word in lines if word != "stacks"], [title for title in titles if title != "Verdicts"],
            {heads for heads in columns if "COST" not in heads})


def least_memory(folder, machine):
    """Returns the bytes that a rank needs at least without pipeline parallelism."""
    plan = json.loads(subprocess.run(
        [harness.BUILD / "bin/wlb", "plan", "--trainer", "worker", "--model", folder / "model.json", "--machine", machine,
         "--nodes", str(NODES), "--gpus-per-node", str(TASKS), "--seq-length", str(SEQ_LENGTH), "--global-batch-size",
         str(WINDOWS), "--lengths", folder / "corpus", "--pp", "1", "--recompute", "full", "--top", "1000", "--json"],
        check=True, capture_output=True, text=True, timeout=60).stdout)
    return min(p["memory_bytes"]["reserved"] for p in [plan, *plan["next_best"]])


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


def products(narrow, wide):
    """Returns the measured rates of matrix products, FLOP/s: `narrow` where depth or columns are 128 at most."""
    rates = [[wide if depth > 128 and columns > 128 else narrow for columns in (128, 256)] for depth in (128, 256)]
    return {"rows": [32, 256], "depth": [128, 256], "columns": [128, 256], "flops_per_s": [rates, rates]}


def split_of(layout):
    return layout["tp"], layout["cp"], layout["pp"]


class Auto(training.TrainingTest):
    nodes = NODES

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_input(cls.cluster.work)
        cls.write_machine("core.json")

    @classmethod
    def write_machine(cls, name, **changed):
        path = cls.cluster.work / name
        path.write_text(json.dumps({**CORE, **changed}), encoding="utf-8")
        return path

    def start(self, *words, before="", options=(), nodes=NODES):
        command = " ".join([*TRAIN, *words])
        return self.cluster.sbatch(
            f"{before}\nwlb run -- wlb-worker {command} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID "
            f"--save-interval {SAVE_INTERVAL} --metrics-file m-$SLURM_JOB_ID.jsonl",
            "--wlb-layout=auto", f"--ntasks-per-node={TASKS}", "--no-kill", "--requeue", *options, nodes=nodes)

    def start_foreign(self, *options, before="export WLB_MACHINE=core.json", nodes=2, data="corpus", words="", run=""):
        return self.cluster.sbatch(
            f"{before}\nwlb run {run} -- {FOREIGN} --seq-length {SEQ_LENGTH} --global-batch-size {WINDOWS} --data-path {data} {words}",
            "--wlb-layout=auto", f"--ntasks-per-node={TASKS}", *options, nodes=nodes)

    def told(self, job):
        """Returns the layout and all variables that the other trainer was started with."""
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        output = self.cluster.output(job)
        variables = dict(re.findall(r"^(WLB_\w+)=(.*)$", output, re.MULTILINE))
        return {key: int(variables[f"WLB_{key.upper()}"]) for key in ("tp", "cp", "pp", "dp")}, variables

    def plan_of(self, job):
        return self.cluster.show(job)["attempts"][0]["plan"]

    def test_a_model_that_does_not_fit_and_a_lost_node(self):
        """Memory is too small without pipeline parallelism. On four nodes pp=2 is the fastest; on three it would leave
        ranks idle, and pp=3 is faster."""
        memory = 0.97 * least_memory(self.cluster.work, self.write_machine("core.json"))
        job = self.start("--machine", str(self.write_machine("small.json", memory_bytes=memory)))
        self.wait_step(job, SAVE_INTERVAL + 2, 200)
        self.cluster.kill_node(NODES)
        self.addCleanup(self.cluster.restore_node, NODES)
        run = self.finish(job, 400)
        expected = single_process_losses()
        output = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertEqual((run["state"], len(run["attempts"])), ("complete", 2), output)
        for attempt in run["attempts"]:
            plan = attempt["plan"]
            self.assertEqual(plan["layout"], attempt["layout"])
            self.assertGreater(attempt["layout"]["tp"] * attempt["layout"]["pp"], 1, output)
            self.assertGreater(plan["no_memory"], 0)
            self.assertTrue(any(other["missing_bytes"] > 0 for other in plan["misfits"]), plan)
            self.assertLessEqual(len(plan["next"]), 3)
            # Also that the ranks share the head where the plan says so.
            self.assertAlmostEqual((plan["memory_bytes"] - plan["memory_margin_bytes"]) / attempt["memory_bytes"], 1.0, delta=0.02)
            for other in plan["next"]:
                self.assertGreaterEqual(other.get("step_s", plan["step_s"]), plan["step_s"])
        self.check_split_again(*run["attempts"])
        self.assertEqual([step["step"] for step in run["steps"]], list(range(1, ITERATIONS + 1)))
        for step in run["steps"]:
            self.assertLess(abs(step["loss"] - expected[step["step"]]) / expected[step["step"]], 1e-9, step)
        self.assertGreater(run["attempts"][-1]["step_s"], 0)
        plans = [plan for attempt in run["attempts"] for plan in (attempt["plan"], *attempt["plan"]["next"])]
        shared = [plan for plan in plans if plan.get("head_stages") == "all"]
        self.assertGreater(len(shared), 0, plans)
        self.assertGreaterEqual(output.count("head on all stages\n"), len(shared), output)
        for words in ("Why this layout", "does not fit", "chosen", "before", "measured", f"n{NODES} is lost", "(from --machine)"):
            self.assertIn(words, output)
        self.check_page(output)

    def check_page(self, output):
        """docs/demo.md has what the demo prints of such a run: lines of the run, sections and columns."""
        page = (harness.ROOT / "docs/demo.md").read_text(encoding="utf-8")
        printed = page[page.index("Run 1: complete\n"):page.index(" step | attempt ")]
        for what, found, shown in zip(("lines of the run", "sections", "columns"), headings(printed), headings(output)):
            self.assertGreater(len(found), 3, what)
            self.assertEqual(found, shown, what)

    def check_split_again(self, first, second):
        """The split of the first attempt can run on the nodes that are left, and is slower there."""
        before = second["plan"]["before"]
        self.assertNotEqual(split_of(first["layout"]), split_of(second["layout"]))
        self.assertEqual(split_of(before["layout"]), split_of(first["layout"]))
        self.assertGreater(before["step_s"], second["plan"]["step_s"])
        self.assertNotIn("before", first["plan"])

    def test_ranks_that_no_layout_uses(self):
        """One head, two layers and a batch of two windows: four ranks at most have work, and the third node none."""
        small = {**MODEL, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 1,
                 "num_key_value_heads": 1, "vocab_size": 300}
        (self.cluster.work / "two.json").write_text(json.dumps(small), encoding="utf-8")
        job = self.start("--model", "two.json", "--global-batch-size", "2", "--train-iters", "4", nodes=3)
        held = self.start("--model", "two.json", "--micro-batch-size", "4", "--recompute-granularity", "full",
                          "--recompute-num-layers", "1", "--train-iters", "1",
                          nodes=1)
        run = self.finish(job)
        attempt = run["attempts"][0]
        self.assertEqual((run["state"], run["steps_done"]), ("complete", 4))
        self.assertLessEqual(attempt["world_size"], 4)
        self.assertEqual(attempt["plan"]["idle_ranks"], 6 - attempt["world_size"])
        idle = self.cluster.run("scontrol", "show", "hostnames", attempt["plan"]["idle"]).stdout.split()
        self.assertEqual(len(idle) + len(run["nodes"]), 3)
        shown = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertIn(f"all of {attempt['plan']['idle']}", shown)
        self.assertEqual(self.finish(held)["state"], "complete")
        plan = self.plan_of(held)
        self.assertEqual((plan["micro_batch_size"], plan["recompute"], plan["recompute_layers"]), (4, "full", 1),
                         "flags of the user are held")

    def test_a_node_with_fewer_ranks_than_others(self):
        """One head, one layer and a batch of five windows: five of six ranks have work, and no number of nodes has as
        many tasks on each."""
        one = {**MODEL, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 1, "num_attention_heads": 1,
               "num_key_value_heads": 1, "vocab_size": 300}
        (self.cluster.work / "one.json").write_text(json.dumps(one), encoding="utf-8")
        words = " ".join([*TRAIN, "--model", "one.json", "--global-batch-size", "5", "--train-iters", "4"])
        job = self.cluster.sbatch(f"wlb run --tasks-per-node 3 -- wlb-worker {words}", "--wlb-layout=auto", "--ntasks-per-node=3",
                                  "--overcommit", nodes=2)
        run = self.finish(job)
        output = self.cluster.output(job)
        attempt = run["attempts"][0]
        self.assertEqual((run["state"], run["steps_done"], attempt["world_size"]), ("complete", 4, 5), output)
        self.assertEqual([entry["local_rank"] for entry in attempt["rank_map"]], [0, 1, 2, 0, 1])
        last = attempt["rank_map"][-1]["node"]
        self.assertNotEqual(attempt["rank_map"][0]["node"], last)
        self.assertNotIn("srun: warning", output)
        plan = attempt["plan"]
        self.assertEqual((plan["idle_ranks"], plan["idle_local_ranks"]), (1, [{"nodes": last, "first": 2, "last": 2}]))
        self.assertNotIn("idle", plan)
        self.assertIn(f"the best layout uses 5 of 6 ranks: 1 is idle, local rank 2 of {last}", output)
        self.assertIn(f"idle: 1 rank, local rank 2 of {last}\n", self.cluster.run("wlb", "show", str(job)).stdout)

    def test_ranks_stay_idle_where_that_is_faster(self):
        """Five ranks for a batch of four windows: pp=5 has work for all, and a longer step than dp=4."""
        words = " ".join([*TRAIN, "--global-batch-size", "4", "--train-iters", "2"])
        job = self.cluster.sbatch(f"export WLB_MACHINE=core.json\nwlb run --tasks-per-node 5 -- wlb-worker {words}",
                                  "--wlb-layout=auto", "--ntasks-per-node=5", "--overcommit", nodes=1)
        run = self.finish(job)
        attempt = run["attempts"][0]
        self.assertEqual((run["state"], attempt["world_size"], attempt["plan"]["idle_ranks"]), ("complete", 4, 1),
                         self.cluster.output(job))

    def test_another_trainer_and_wlbd_away(self):
        """Auto's answer reaches the environment of another trainer; with wlbd down it is the same."""
        planned = self.start_foreign("--wlb-model=model.json")
        unknown = self.start_foreign()
        layout, variables = self.told(planned)
        plan = self.plan_of(planned)
        self.assertEqual(layout, plan["layout"])
        self.assertNotEqual(layout["dp"], 2 * TASKS)
        self.assertEqual((variables["WLB_MICRO_BATCH_SIZE"], variables["WLB_INTERLEAVE"], variables["WLB_RECOMPUTE"],
                          variables["WLB_HEAD_STAGES"]),
                         (str(plan["micro_batch_size"]), str(plan["interleave"]), "none", "last"))
        self.assertEqual(plan["recompute"], "none", "a fused kernel keeps no scores")
        self.assertIn(f"arguments: --seq-length {SEQ_LENGTH}", self.cluster.output(planned))
        layout, variables = self.told(unknown)
        self.assertEqual(layout, {"tp": 1, "cp": 1, "pp": 1, "dp": 2 * TASKS})
        lines = [line for line in self.cluster.output(unknown).splitlines() if "data parallel" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("add --wlb-model=FILE", lines[0])
        self.assertNotIn("WLB_RECOMPUTE", variables)
        self.cluster.verb("kill-wlbd")
        try:
            away = self.start_foreign("--wlb-model=model.json")
            self.assertEqual(self.told(away)[0], plan["layout"])
            self.assertIn("continuing without the coordinator", self.cluster.output(away))
        finally:
            self.cluster.verb("start-wlbd")
        self.cluster.run("wlb", "flush", ".wlb")
        self.assertEqual(self.plan_of(away)["layout"], plan["layout"])

    def test_another_trainer_fills_windows(self):
        """Documents of which no number fills a window of 32 tokens: Megatron-LM cuts them, so every layout is possible."""
        write_index(self.cluster.work / "skewed.idx", [19 + i * i % 11 for i in range(2000)])
        job = self.start_foreign("--wlb-model=model.json", data="skewed")
        layout, _ = self.told(job)
        plan = self.plan_of(job)
        self.assertEqual(layout, plan["layout"])
        self.assertEqual(plan["idle_ranks"], 0)

    def test_other_datasets_of_another_trainer(self):
        """Megatron-LM takes several datasets with weights; other programs have datasets of another kind."""
        write_index(self.cluster.work / "brief.idx", [5 + i * i % 11 for i in range(2000)])
        blend = self.start_foreign("--wlb-model=model.json", data="0.3 brief 0.7 corpus")
        other = self.start_foreign("--wlb-model=model.json", data="s3://bucket/web")
        for job, lines in ((blend, 0), (other, 1)):
            layout, _ = self.told(job)
            self.assertEqual(layout, self.plan_of(job)["layout"])
            said = [line for line in self.cluster.output(job).splitlines() if "lengths of the documents are not known" in line]
            self.assertEqual(len(said), lines, self.cluster.output(job))
            self.assertTrue(all("--data-path: s3://bucket/web.idx cannot be read" in line for line in said), said)

    def test_options_of_another_trainer_are_kept(self):
        """Also where another layout is faster, by the file of a trainer that the user names."""
        cases = (("--tensor-model-parallel-size 1 --context-parallel-size=4", (1, 4, 1), None),
                 ("--tensor-model-parallel-size 1 --context-parallel-size 1 --pipeline-model-parallel-size=1 --micro-batch-size 4",
                  (1, 1, 1), "4"))
        jobs = [self.start_foreign("--wlb-model=model.json", words=words, run="--trainer nemo") for words, _, _ in cases]
        for job, (words, split, windows) in zip(jobs, cases):
            with self.subTest(words=words):
                layout, variables = self.told(job)
                self.assertEqual(split_of(layout), split)
                self.assertIn(windows, (None, variables["WLB_MICRO_BATCH_SIZE"]))
                self.assertIn(" for nemo: ", self.plan_of(job)["reason"])

    def test_another_trainer_runs_with_its_own_layout(self):
        """It may need less memory than is predicted for it, and mean something else by a value."""
        self.write_machine("small.json", memory_bytes=1.001e8)
        one = "--tensor-model-parallel-size 1 --context-parallel-size 1 --pipeline-model-parallel-size 1 --micro-batch-size 1"
        large = {**MODEL, "hidden_size": 4096, "intermediate_size": 11008}
        (self.cluster.work / "too-large.json").write_text(json.dumps(large), encoding="utf-8")
        unfit = self.start_foreign("--wlb-model=too-large.json", before="export WLB_MACHINE=small.json", words=one)
        other = self.start_foreign("--wlb-model=model.json", words="--micro-batch-size auto")
        self.assertEqual(self.told(unfit)[0], {"tp": 1, "cp": 1, "pp": 1, "dp": 2 * TASKS})
        self.assertRegex(self.cluster.output(unfit), "the layout is that of the command, for which nothing is predicted: layout auto: ")
        self.assertEqual(self.told(other)[0], self.plan_of(other)["layout"])

    def start_told(self, trainer, words, *options, program="stand-in", nodes=3, tasks=TASKS, waits=False):
        """A stand-in for a trainer: its task of rank 0 prints its arguments in each attempt, if it has an agent."""
        path = self.cluster.work / program
        path.write_text('#!/bin/sh\n[ $SLURM_PROCID != 0 ] || [ -z $WLB_NODE_PAGE ] || echo told $WLB_ATTEMPT $WLB_DP "$@"\n'
                        "[ $WLB_ATTEMPT -gt 1 ] || [ -z $WAITS ] || sleep 600\n", encoding="utf-8")
        path.chmod(0o755)
        return self.cluster.sbatch(
            f"export WLB_MACHINE=core.json WAITS={'yes' if waits else ''}\nwlb run --for={trainer} -- ./{program} {words}",
            "--wlb-layout=auto", "--wlb-model=model.json", "--no-kill", f"--ntasks-per-node={tasks}", *options, nodes=nodes)

    def told_words(self, job):
        """Returns the words and dp of each attempt so far."""
        return {int(attempt): (int(dp), words.split())
                for attempt, dp, words in re.findall(r"^told (\d+) (\d+) (.*)$", self.cluster.output(job), re.MULTILINE)}

    def lose_a_node(self, job, node):
        """Returns the words of both attempts."""
        harness.wait_for(f"the first attempt of job {job}", lambda: self.told_words(job), 60)
        self.cluster.kill_node(node)
        self.addCleanup(self.cluster.restore_node, node)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return self.told_words(job)

    def test_a_trainer_is_told_its_layout_in_each_attempt(self):
        """Its own names and its own word for tp; after the loss of a node dp alone changes."""
        words = f"--seq-length {SEQ_LENGTH} --global-batch-size 12 --data-path corpus --tensor-model-parallel-size 2"
        job = self.start_told("megatron", words, waits=True)
        told = self.lose_a_node(job, 3)
        output = self.cluster.output(job)
        self.assertEqual(sorted(told), [1, 2], output)
        plans = [attempt["plan"] for attempt in self.cluster.show(job)["attempts"]]
        for attempt, plan in zip((1, 2), plans):
            layout = plan["layout"]
            self.assertEqual(split_of(layout), (2, 1, 1), output)
            self.assertEqual(told[attempt], (4 - attempt, [
                *words.split(), "--context-parallel-size=1", "--pipeline-model-parallel-size=1", "--sequence-parallel",
                f"--micro-batch-size={plan['micro_batch_size']}"]))
            self.assertEqual(layout["dp"], 4 - attempt)
            self.assertIn(f"wlb: attempt {attempt} runs: ./stand-in {' '.join(told[attempt][1])}\n", output)
        self.assertIn("wlb: --for=megatron: these options of the command stay as they are: --tensor-model-parallel-size\n", output)
        self.assertNotIn("needs every node", output)

    def test_nodes_that_cannot_hold_the_layout(self):
        """Of another layout the trainer could read no checkpoint."""
        words = f"--seq-length {SEQ_LENGTH} --global-batch-size 8 --pipeline-model-parallel-size 3 --tensor-model-parallel-size 2"
        job = self.start_told("megatron", words, waits=True)
        harness.wait_for(f"the first attempt of job {job}", lambda: self.told_words(job), 60)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.restore_node, 3)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        output = self.cluster.output(job)
        self.assertEqual(sorted(self.told_words(job)), [1], output)
        self.assertIn("wlb: --for=megatron: this layout needs every node: the run will end when one is lost", output)
        self.assertRegex(output, "its product is 6 and there are 4 usable GPUs; the attempts before had tp=2, cp=1 and pp=3, and "
                                 "megatron reads their checkpoint in no other layout: give the run more nodes, or have it save "
                                 "with --ckpt-format torch_dist")

    def test_a_launcher_and_a_configuration_file(self):
        """The ranks are the launcher's processes, and the words are behind its script; nanotron gets a file."""
        (self.cluster.work / "nanotron.yaml").write_text(
            "parallelism:\n  dp: 2\n  pp: 1\n  tp: 1\ntokens:\n  batch_accumulation_per_replica: 2\n  micro_batch_size: 2\n"
            f"  sequence_length: {SEQ_LENGTH}\n", encoding="utf-8")
        titan = self.start_told("torchtitan", f"--nproc-per-node=2 t.py --training.seq_len={SEQ_LENGTH} "
                                "--training.global_batch_size=8 --parallelism.tensor-parallel-degree 2", program="torchrun", nodes=2,
                                tasks=1)
        nano = self.start_told("nanotron", "--config-file nanotron.yaml", nodes=2)
        shell = self.start_told("megatron", "-c true", program="bash", nodes=1)
        for job in (titan, nano):
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        launchers, words = self.told_words(titan)[1]
        plan = self.plan_of(titan)
        self.assertIn(" for torchtitan: ", plan["reason"])
        layout = plan["layout"]
        self.assertEqual((launchers, layout["tp"], layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"]), (2, 2, 4))
        self.assertLess(words.index("t.py"), words.index("--parallelism.data_parallel_shard_degree=-1"))
        self.assertIn("--nnodes=2", words[:words.index("t.py")])
        self.assertIn(f"--parallelism.context_parallel_degree={layout['cp']}", words)
        dp, words = self.told_words(nano)[1]
        text = pathlib.Path(words[-1].removeprefix("--config-file=")).read_text(encoding="utf-8")
        plan = self.plan_of(nano)
        values = dict(line.split(": ") for line in text.splitlines() if ": " in line)
        self.assertEqual([int(values[f"  {name}"]) for name in ("dp", "pp", "tp", "micro_batch_size")],
                         [dp, plan["layout"]["pp"], plan["layout"]["tp"], plan["micro_batch_size"]])
        self.assertEqual(dp * plan["micro_batch_size"] * int(values["  batch_accumulation_per_replica"]), 8)
        self.assertEqual(self.cluster.wait_job(shell), "FAILED")
        self.assertIn("the trainer's options cannot be added to a text for a shell", self.cluster.output(shell))

    def check_refused(self, job, *words):
        self.assertEqual(self.cluster.wait_job(job), "FAILED", self.cluster.output(job))
        output = self.cluster.output(job)
        self.assertNotIn("srun: error", output)
        self.assertRegex(output, r"attempt 1 on \S+, no layout")
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "failed")
        self.assertEqual([attempt["started_at"] for attempt in run["attempts"]], [None])
        self.assertIn("bad input", run["reason"])
        lines = [line for line in output.splitlines() if all(word in line for word in words)]
        self.assertEqual(len(lines), 1, output)

    def test_what_cannot_be_planned(self):
        self.write_machine("tiny.json", memory_bytes=1.001e8)
        self.write_machine("wrong.json", peak_flops="fast")
        for name, changed in (("large.json", {"hidden_size": 4096, "intermediate_size": 11008}), ("only-here.json", {})):
            (self.cluster.work / name).write_text(json.dumps({**MODEL, **changed}), encoding="utf-8")
        cases = (
            ({"words": ["--machine", "/none/m.json"]}, ("--machine", "/none/m.json", "cannot be opened")),
            ({"words": ["--machine", "wrong.json"]}, ("--machine", "wrong.json", "peak_flops", "must be a number")),
            ({"words": ["--machine", "tiny.json", "--model", "large.json"]}, ("none of", "use more")),
            ({"words": ["--model", "only-here.json"], "before": "rm only-here.json"},
             ("only-here.json", "on node n", "a file system that all nodes share")),
        )
        jobs = [self.start(*how["words"], before=how.get("before", ""), nodes=1) for how, _ in cases]
        for job, (_, words) in zip(jobs, cases):
            with self.subTest(words=words):
                self.check_refused(job, *words)

    def store(self, nodes=("n1", "n2"), node_type=None, **changed):
        """Stores a calibration of the nodes, as root, with this host's type or the one that is given; returns its id."""
        name = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        node_type = node_type or f"{name[1][:47].strip() if name else 'processor'} x {os.sysconf('SC_NPROCESSORS_ONLN')}"
        status, reply = test_wlbd_api.Api(self.cluster).call("POST", "/v1/calibrations", {
            "node_type": node_type, "ranks_per_node": TASKS, "nodes": list(nodes), "machine": {**CORE, **changed}})
        self.assertEqual(status, 200, reply)
        self.addCleanup(self.cluster.sql, "delete from calibrations")
        return reply["id"], node_type

    def test_nodes_of_two_processors(self):
        """A job on nodes of two types that were measured is planned with the slower, whichever node the script runs on; one
        on nodes of one type with that type."""
        fast, node_type = self.store(memory_bytes=9e8)
        slow, _ = self.store(("n3",), "old processor x 8", name="old", peak_flops=1e10)
        jobs = {nodes: self.start_foreign("--wlb-model=model.json", f"-w{nodes}", before="") for nodes in ("n[1-2]", "n[1,3]")}
        for job in jobs.values():
            self.told(job)
        plan = self.plan_of(jobs["n[1-2]"])
        self.assertEqual((plan["machine"], plan["calibration"]["id"]), (CORE["name"], fast))
        self.assertNotIn("types", plan["calibration"])
        plan = self.plan_of(jobs["n[1,3]"])
        self.assertEqual((plan["machine"], plan["calibration"]["id"], plan["memory_limit_bytes"]), ("old", slow, 9e8))
        self.assertIn("of nodes of type 'old processor x 8', the slowest of 2 types", self.cluster.output(jobs["n[1,3]"]))
        self.assertIn("of nodes of type 'old processor x 8', the slowest of 2 types, used as",
                      self.cluster.run("wlb", "show", str(jobs["n[1,3]"])).stdout)
        self.cluster.dir.joinpath("munge").chmod(0o755)
        api = test_wlbd_api.Api(self.cluster)
        path = f"/v1/calibrations?attempt_id={self.cluster.show(jobs['n[1,3]'])['attempts'][0]['attempt_id']}"
        types = [{"node_type": "old processor x 8", "nodes": 1, "node": "n3"}, {"node_type": node_type, "nodes": 1, "node": "n1"}]
        status, reply = api.call("GET", path)
        self.assertEqual((status, sorted(reply["node_types"], key=lambda entry: entry["node"])), (200, types[::-1]))
        self.assertEqual(api.call("GET", path, uid=test_wlbd_api.NOBODY), (200, {"node_types": []}))
        status, reply = api.call("GET", "/v1/calibrations?attempt_id=1")
        self.assertEqual((status, "attempt_id" in str(reply)), (400, True), reply)

    def test_a_calibration_changes_the_next_layout(self):
        """Where narrow matrices are measured slower, tensor parallelism, which cuts them, is no longer the fastest."""
        first, node_type = self.store(gemm=products(2.8e10, 2.8e10))
        jobs = [self.start_foreign("--wlb-model=model.json", before="")]
        self.told(jobs[0])
        second, _ = self.store(gemm=products(2e9, 2.8e10))
        jobs.append(self.start_foreign("--wlb-model=model.json", before=""))
        # A run that is requeued keeps the machine of its first attempt.
        jobs.append(self.start_foreign("--wlb-model=model.json", "--hold", before=""))
        spool = self.cluster.work / ".wlb"
        shutil.copy(spool / f"machine-{jobs[0]}.json", spool / f"machine-{jobs[2]}.json")
        self.cluster.run("scontrol", "release", jobs[2])
        layouts = [self.told(job)[0] for job in jobs]
        old, new, kept = (self.plan_of(job) for job in jobs)
        self.assertEqual([plan["layout"] for plan in (old, new, kept)], layouts)
        self.assertGreater(layouts[0]["tp"], 1)
        self.assertEqual(layouts[1]["tp"], 1)
        self.assertEqual(layouts[0], layouts[2])
        self.assertEqual(kept["calibration"], old["calibration"])
        self.assertEqual([plan["calibration"]["id"] for plan in (old, new)], [first, second])
        self.assertEqual(old["calibration"]["compared_with"], "the machine CPU")
        self.assertLess(max(old["calibration"]["times_as_fast"]["matrix_products"]), 0.5)
        self.assertEqual(new["calibration"]["compared_with"], f"calibration {first}")
        for part, times in new["calibration"]["times_as_fast"].items():
            for time, expected in zip(times, [1 / 14, 1] if part == "matrix_products" else [1, 1]):
                self.assertAlmostEqual(time, expected, 6, part)
        slower = [plan["step_s"] for plan in new["next"] if split_of(plan["layout"]) == split_of(layouts[0])]
        self.assertEqual([step_s > new["step_s"] for step_s in slower], [True], new)
        shown = self.cluster.run("wlb", "show", str(jobs[1])).stdout
        why = shown[shown.index("Why this layout"):]
        for words in (f"calibration {second}, measured by root, ", f"of nodes of type '{node_type}', used as administrator",
                      f"times as fast as calibration {first}: matrix products 0.0714 to 1\n"):
            self.assertIn(words, why)


if __name__ == "__main__":
    harness.main()
