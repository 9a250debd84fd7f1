#!/usr/bin/env python3
"""`wlb pack` and `wlb shard` judged from outside: every dump is checked token by token and measured anew, with
arithmetic of its own, against what --json says. Usage: test_calculators.py WLB [UNITTEST-OPTION...]"""
import collections
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

WLB = sys.argv.pop(1)
PUBLISHED = pathlib.Path(__file__).parents[3] / "tests/reference/published.json"
MODEL = {"hidden": 4096, "intermediate": 11008, "layers": 32, "heads": 32, "head_dim": 128}


def work_of(tokens, keys_before=0):
    """FLOPs of one forward pass over `tokens` tokens that see themselves causally, and `keys_before` keys more each."""
    heads = MODEL["heads"] * MODEL["head_dim"]
    linear = 2 * (4 * MODEL["hidden"] * heads + 3 * MODEL["hidden"] * MODEL["intermediate"])
    pairs = tokens * (tokens + 1) // 2 + tokens * keys_before
    return MODEL["layers"] * (linear * tokens + 4 * heads * pairs)


def wlb(*words, stdin=None):
    return subprocess.run([WLB, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=100,
                          check=False)


UNITS = {"MiB": 2**20, "GiB": 2**30}
GPU_BYTES = 84.987e9  # of H100.json


def amount(of_bytes):
    """As people read it."""
    unit = "MiB" if of_bytes < UNITS["GiB"] else "GiB"
    return f"{of_bytes / UNITS[unit]:.2f} {unit}"


def some_lengths(seed, count, window):
    """Very skewed, with what is hard: nothing, one token, the window, far above it."""
    dice = random.Random(seed)
    lengths = [0, 1, window, window + 1, 5 * window + 3]
    lengths += [min(3 * window, int(dice.lognormvariate(0, 1.6) * window / 40)) for _ in range(count)]
    dice.shuffle(lengths)
    return lengths


def cut(lengths, window):
    """(document, start, tokens) of each piece, in order."""
    for document, length in enumerate(lengths):
        for start in range(0, length, window):
            yield document, start, min(window, length - start)


def batches(lengths, window, most):
    """Pieces until the next would make a batch longer than `most` tokens; the last may not be full."""
    batch, tokens = [], 0
    for piece in cut(lengths, window):
        if tokens + piece[2] > most:
            yield batch
            batch, tokens = [], 0
        batch.append(piece)
        tokens += piece[2]
    yield batch


class Calculator(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.work = pathlib.Path(self.dir.name)

    def lengths_file(self, lengths):
        path = self.work / "lengths"
        path.write_text("".join(f"{length}\n" for length in lengths), encoding="utf-8")
        return path

    def calculate(self, *words):
        """The object of --json and the rows of --dump, by column."""
        dump = self.work / "dump"
        done = wlb(*words, "--json", "--dump", dump)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        names, *lines = dump.read_text(encoding="utf-8").splitlines()
        row = collections.namedtuple("row", names.split())
        return json.loads(done.stdout), [row(*map(int, line.split())) for line in lines]

    def check_tokens(self, rows, lengths):
        """No token twice, none that is not there; how many there are."""
        spans = collections.defaultdict(list)
        for row in rows:
            self.assertGreater(row.length, 0)
            spans[row.document_index].append((row.start, row.start + row.length))
        for document, of_document in spans.items():
            end = 0
            for start, stop in sorted(of_document):
                self.assertGreaterEqual(start, end, f"document {document} is there twice from token {start} on")
                end = stop
            self.assertLessEqual(end, lengths[document], f"document {document}")
        return sum(row.length for row in rows)


class Pack(Calculator):
    window, micro_batches = 4096, 8

    def measure(self, report, rows, lengths, ratio):
        """Everything of --json that the dump tells, computed from the dump."""
        came = {}
        for step, batch in enumerate(batches(lengths, self.window, self.window * self.micro_batches)):
            came.update({(document, start // self.window): step for document, start, _ in batch})
        work = collections.defaultdict(lambda: [0] * self.micro_batches)
        tokens = collections.Counter()
        waits = []
        for row in rows:
            work[row.step][row.micro_batch] += work_of(row.length)
            tokens[row.step, row.micro_batch] += row.length
            waits.append((row.step - came[row.document_index, row.start // self.window], row.length))
        steps = sorted(work)
        imbalances = sorted(max(work[s]) * self.micro_batches / sum(work[s]) for s in steps)
        self.assertEqual(steps, list(range(report["steps"])))
        self.assertLessEqual(max(tokens.values()), int(self.window * ratio))
        self.assertGreaterEqual(min(wait for wait, _ in waits), 0)
        self.assertAlmostEqual(report["imbalance_mean"], sum(imbalances) / len(imbalances), places=9)
        self.assertAlmostEqual(report["imbalance_p99"], imbalances[len(imbalances) * 99 // 100], places=9)
        self.assertEqual(report["delay_max_steps"], max(wait for wait, _ in waits))
        mean = sum(wait * length for wait, length in waits) / sum(length for _, length in waits)
        self.assertAlmostEqual(report["delay_mean_steps"], mean, places=9)

    def check(self, strategy, ratio, *more, lengths):
        report, rows = self.calculate("pack", "--seq-length", self.window, "--micro-batches", self.micro_batches,
                                    "--lengths", self.lengths_file(lengths), "--packing", strategy,
                                    "--max-length-ratio", ratio, *more)
        packed = self.check_tokens(rows, lengths)
        self.assertEqual(report["tokens_in"], sum(lengths))
        self.assertEqual(report["tokens_packed"], packed)
        self.assertEqual(report["tokens_held"], sum(lengths) - packed)
        self.measure(report, rows, lengths, ratio if strategy in ("balanced", "greedy") else 1.0)
        return report

    def test_every_strategy(self):
        lengths = some_lengths(1, 6000, self.window)
        imbalance = {}
        for strategy in ("plain", "fixed", "greedy", "balanced"):
            with self.subTest(strategy):
                imbalance[strategy] = self.check(strategy, 1.25, lengths=lengths)["imbalance_mean"]
        self.assertLess(max(imbalance["balanced"], imbalance["greedy"]), imbalance["plain"])

    def test_drained(self):
        for seed, count, ratio in ((2, 3000, 1.25), (3, 500, 1.5), (4, 0, 1.0)):
            lengths = some_lengths(seed, count, self.window)
            for strategy in ("plain", "fixed", "greedy", "balanced"):
                with self.subTest(f"{strategy}, {count} documents"):
                    report = self.check(strategy, ratio, "--drain", lengths=lengths)
                    self.assertEqual(report["tokens_held"], 0)

    def test_delay_is_bounded(self):
        lengths = some_lengths(5, 6000, self.window)
        for bound in (0, 1, 5):
            report = self.check("balanced", 1.25, "--max-delay", bound, "--drain", lengths=lengths)
            self.assertLessEqual(report["delay_max_steps"], bound)

    def test_fewer_documents_than_a_batch(self):
        self.assertEqual(self.check("balanced", 1.25, lengths=[100])["steps"], 1)

    def test_lengths_from_everywhere(self):
        words = ["pack", "--seq-length", 131072, "--micro-batches", 4, "--json"]
        lengths = some_lengths(6, 3000, 131072)
        text = "".join(f"{length}\n" for length in lengths)
        timed = ("pack_us_per_step",)
        report = [json.loads(wlb(*words, "--lengths", "-", stdin=text).stdout),
                json.loads(wlb(*words, "--lengths", self.lengths_file(lengths)).stdout)]
        for one in report:
            for name in timed:
                one.pop(name)
        self.assertEqual(report[0], report[1])
        made = json.loads(wlb(*words, "--lengths", "gen:skewed,seed=3,tail=2,count=1000").stdout)
        self.assertEqual(made["documents"], 1000)

    def test_picture(self):
        picture = self.work / "step.svg"
        done = wlb("pack", "--seq-length", 4096, "--micro-batches", 4, "--lengths", "-", "--svg", picture,
                   stdin="9\n" * 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(picture.read_text(encoding="utf-8").count("<title>"), 2 * 3)


class Shard(Calculator):
    def measure(self, report, rows, lengths, window, ranks, groups):
        """Tokens and work of each rank of each micro-batch, from the queries and the keys they see."""
        tokens = collections.defaultdict(lambda: [0] * ranks)
        work = collections.defaultdict(lambda: [0] * ranks)
        first_key = {}
        for number, batch in enumerate(batches(lengths, window, window * groups)):
            at = 0
            for document, start, length in batch:
                first_key[number, document, start] = at
                at += length
        for row in rows:
            before = row.start % window
            self.assertEqual(row.keys, before + row.length)
            self.assertEqual(row.key_start, first_key[row.micro_batch, row.document_index, row.start - before])
            tokens[row.micro_batch][row.rank] += row.length
            work[row.micro_batch][row.rank] += work_of(row.length, before)
        imbalances = [max(of_ranks) * ranks / sum(of_ranks) for of_ranks in work.values()]
        self.assertEqual(report["micro_batches"], len(imbalances))
        self.assertAlmostEqual(report["work_imbalance_mean"], sum(imbalances) / len(imbalances), places=9)
        self.assertAlmostEqual(report["work_imbalance_max"], max(imbalances), places=9)
        spread = max(max(of_ranks) - min(of_ranks) for of_ranks in tokens.values())
        self.assertEqual(report["token_spread_max"], spread)

    def check(self, strategy, ranks, lengths, window, groups=1):
        report, rows = self.calculate("shard", "--cp", ranks // groups, "--dp", groups, "--seq-length", window,
                                    "--cp-sharding", strategy, "--lengths", self.lengths_file(lengths))
        self.assertEqual(self.check_tokens(rows, lengths), sum(lengths))
        self.assertEqual(report["tokens"], sum(lengths))
        self.measure(report, rows, lengths, window, ranks, groups)
        if strategy != "dynamic":
            self.assertLessEqual(report["token_spread_max"], 1)
        return report

    def test_every_strategy(self):
        lengths = some_lengths(7, 600, 8192)
        for strategy in ("per-document", "per-sequence", "adaptive"):
            for ranks in (1, 2, 3, 4, 8, 16):
                with self.subTest(f"{strategy} over {ranks}"):
                    self.check(strategy, ranks, lengths, 8192)

    def test_dynamic(self):
        lengths = some_lengths(9, 3000, 131072)
        for ranks, groups in ((8, 1), (16, 2), (64, 8), (6, 2)):
            with self.subTest(f"{ranks} ranks in {groups} groups"):
                self.assertLess(self.check("dynamic", ranks, lengths, 131072, groups)["work_imbalance_mean"], 1.03)

    def test_per_document_is_equal(self):
        dice = random.Random(8)
        lengths = [max(32, int(dice.lognormvariate(8, 1))) for _ in range(800)]
        for ranks in (2, 4, 8, 16):
            self.assertLess(self.check("per-document", ranks, lengths, 131072)["work_imbalance_max"], 1.001)


class Plan(unittest.TestCase):
    job = ("--nodes", 8, "--seq-length", 65536, "--global-batch-size", 32)

    def calculate(self, *words):
        done = wlb(words[0], "--json", *words[1:])
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return json.loads(done.stdout)

    def check_time(self, time):
        self.assertAlmostEqual(sum(time.values()) - time["step_s"], time["step_s"], places=9)
        self.assertGreaterEqual(min(time.values()), -1e-9)

    def check_plan(self, report, usable):
        """Every rank on a GPU of its own that is there, tensor-parallel ones on one node; what is left is idle."""
        ranks, idle = ([(gpu["node"], gpu["gpu"]) for gpu in report[name]] for name in ("ranks", "idle"))
        layout = report["layout"]
        self.assertEqual(len(ranks), layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"])
        self.assertEqual(sorted(ranks + idle), sorted(usable))
        for first in range(0, len(ranks), layout["tp"]):
            self.assertEqual(len({node for node, _ in ranks[first:first + layout["tp"]]}), 1)
        self.assertLessEqual(report["memory_bytes"]["reserved"], GPU_BYTES)
        self.check_time(report["time"])
        steps = [report["step_s"], *(other["time"]["step_s"] for other in report["next_best"])]
        self.assertEqual(steps[1:], sorted(steps[1:]))
        self.assertEqual(report["fastest_s"], min(steps))
        self.assertEqual(report["preferred"], steps[0] > min(steps))
        self.assertLessEqual(steps[0], 1.01 * min(steps))
        for misfit in report["misfits"]:
            self.assertAlmostEqual(misfit["missing_bytes"], misfit["memory_bytes"]["reserved"] - GPU_BYTES, delta=1.0)

    def test_all_nodes(self):
        self.check_plan(self.calculate("plan", *self.job), [(str(n), g) for n in range(8) for g in range(8)])

    def test_nodes_that_are_out(self):
        usable = [(str(n), g) for n in range(8) for g in range({2: 0, 5: 6}.get(n, 8))]
        self.check_plan(self.calculate("plan", *self.job, "--down", "2,5:6"), usable)

    def test_topology(self):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("SwitchName=a Nodes=n[1,3,5,7]\nSwitchName=b Nodes=n[2,4,6,8]\nSwitchName=c Switches=a,b\n")
            file.flush()
            report = self.calculate("plan", *self.job, "--topology", file.name, "--down", "n4")
        self.check_plan(report, [(f"n{n}", g) for n in (1, 3, 5, 7, 2, 6, 8) for g in range(8)])
        nodes = list(dict.fromkeys(gpu["node"] for gpu in report["ranks"]))
        self.assertEqual(nodes, [node for node in ("n1", "n3", "n5", "n7", "n2", "n6", "n8") if node in nodes])

    @staticmethod
    def plans_of(report):
        return [report, *report["next_best"], *report["misfits"]]

    def test_what_is_held(self):
        # 32 windows by twos: Megatron-LM must divide them; wlb-worker takes a multiple of pp on 3 replicas too.
        for trainer, replicas in (("megatron", 2), ("worker", 3)):
            held = {"tp": 2, "cp": 2, "pp": 4, "dp": replicas}
            words = [word for way, ways in held.items() for word in (f"--{way}", ways)]
            report = self.calculate("plan", *self.job, *words, "--interleave", 2, "--micro-batch-size", 2, "--recompute",
                                    "full", "--trainer", trainer)
            for plan in self.plans_of(report):
                self.assertEqual(plan["layout"], held)
                self.assertEqual((plan["interleave"], plan["recompute"]), (2, "full"))
                self.assertEqual(plan["micro_batches"], 8)

    def test_rates(self):
        """Tokens a second and MFU are those of the step, by FLOPs counted here."""
        window, batch = self.job[3], self.job[5]
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("4096\n")
            file.flush()
            words = ("plan", *self.job, "--lengths", file.name)
            report = {mfu: self.calculate(*words, "--mfu", mfu) for mfu in ("causal", "full")}
        pairs = {"causal": 4096 * 4097 / 2, "full": 4096 * 4096}
        for mfu, plan in report.items():
            self.assertEqual(plan["mfu_counts"], mfu)
            self.assertAlmostEqual(plan["tokens_per_s"] * plan["step_s"], window * batch, delta=1)
            hidden, kv = MODEL["hidden"], MODEL["heads"] * MODEL["head_dim"]
            linear = 2 * (4 * hidden * kv + 3 * hidden * MODEL["intermediate"])
            flops = MODEL["layers"] * (linear + 4 * kv * pairs[mfu] / 4096) + 2 * hidden * 32000
            gpus = plan["gpus"] * 989.4e12 * plan["step_s"]
            self.assertAlmostEqual(plan["mfu"] / (3 * flops * window * batch / gpus), 1.0, delta=0.01)
        self.assertEqual(report["causal"]["step_s"], report["full"]["step_s"])

    def test_memory_is_that_of_the_micro_batches_that_packing_makes(self):
        """No micro-batch of documents of 4,096 tokens is longer than its windows."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("4096\n")
            file.flush()
            report = self.calculate("plan", *self.job, "--lengths", file.name, "--micro-batch-size", 1)
        self.assertEqual(report["micro_batch_tokens"], self.job[3])

    def test_embedding_and_head_count_as_layers(self):
        """126 layers on 16 x 8 chunks, as Llama 3 405B was trained."""
        report = self.calculate("plan", "--model", "Llama-3-405B", "--nodes", 64, "--seq-length", 8192, "--global-batch-size",
                              64, "--tp", 8, "--pp", 16, "--interleave", 8)
        self.assertTrue(report["account_for_embedding"] and report["account_for_loss"])
        self.assertEqual(report["layout"]["pp"] * report["interleave"], 128)

    def test_a_head_on_all_stages(self):
        """Llama 3 8B has few layers and many words: the last of 8 stages would have half as much work again. Only
        wlb-worker's stages can share the head."""
        job = ("--model", "Llama-3-8B", "--nodes", 1, "--seq-length", 8192, "--global-batch-size", 64, "--tp", 1, "--cp", 1,
               "--pp", 8)
        plans = {trainer: self.calculate("plan", *job, "--trainer", trainer) for trainer in ("megatron", "worker")}
        self.assertEqual({name: plan["head_stages"] for name, plan in plans.items()}, {"megatron": "last", "worker": "all"})
        self.assertIn("computed by all pipeline stages", wlb("plan", *job, "--trainer", "worker").stdout)
        held = {stages: self.calculate("plan", *job, "--trainer", "worker", "--head-stages", stages) for stages in ("last", "all")}
        self.assertEqual({name: plan["head_stages"] for name, plan in held.items()}, {"last": "last", "all": "all"})
        words = (*job[:8], "--layout", "tp=1,cp=1,pp=8", "--trainer", "worker", "--steps", 5)
        steps = {stages: self.calculate("sim", *words, "--head-stages", stages) for stages in ("last", "all")}
        self.assertEqual({name: report["head_stages"] for name, report in steps.items()}, {"last": "last", "all": "all"})

    def test_dynamic_packing_of_the_worker(self):
        """Of documents of one window alone a few long ones make their replicas late, unless their ranks share them."""
        job = ("--model", "Llama-3-8B", "--nodes", 1, "--seq-length", 65536, "--global-batch-size", 16, "--trainer", "worker")
        fixed = ("--tp", 2, "--cp", 1, "--pp", 1)
        plans = {packing: self.calculate("plan", *job, *fixed, "--packing", packing) for packing in ("balanced", "dynamic")}
        self.assertGreater(plans["dynamic"]["memory_bytes"]["runtime"], plans["balanced"]["memory_bytes"]["runtime"])
        report = self.calculate("sim", *job, "--layout", "tp=2,cp=1,pp=1,dp=4", "--steps", 5, "--strategies", "balanced,dynamic")
        runs = {run["strategy"]: run for run in report["strategies"]}
        self.assertEqual(runs["dynamic"]["packing"], "dynamic")
        time = {name: run["time"] for name, run in runs.items()}
        self.assertTrue(time["balanced"]["cp_s"] == 0 < time["dynamic"]["cp_s"])
        self.assertLess(time["dynamic"]["imbalance_s"] + time["dynamic"]["cp_imbalance_s"], 0.02 * time["dynamic"]["step_s"])

    def test_configurations_that_only_other_trainers_train(self):
        config = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
                  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
                  "rope_scaling": {"rope_type": "llama3", "factor": 32.0}, "tie_word_embeddings": True}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            words = ("plan", "--model", file.name, "--nodes", 1, "--seq-length", 8192, "--global-batch-size", 32)
            self.assertEqual(wlb(*words).returncode, 0)
            refused = wlb(*words, "--trainer", "worker")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("rope_scaling: ", refused.stderr)

    def test_experts(self):
        models = json.loads(PUBLISHED.read_text(encoding="utf-8"))
        (model,) = (model for model in models if model["name"] == "mistralai/Mixtral-8x7B-v0.1")
        dense = {**model["config"], "model_type": "mistral", "architectures": ["MistralForCausalLM"], "intermediate_size": 2 * 14336}
        del dense["num_local_experts"], dense["num_experts_per_tok"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            path.write_text(json.dumps(model["config"]), encoding="utf-8")
            sizes = ("--model", folder, "--nodes", 16, "--seq-length", 4096, "--global-batch-size", 256, "--machine", "H100")
            job = ("plan", *sizes, "--tp", 2, "--cp", 1, "--pp", 8, "--recompute", "selective", "--interleave", 1,
                   "--micro-batch-size", 1, "--ep", 1)
            plan, text = self.calculate(*job), wlb(*job).stdout
            divided, told = self.calculate(*job[:-2]), wlb(*job[:-2]).stdout
            steps = [self.calculate("sim", *sizes, "--layout", "tp=4,cp=1,pp=8", "--steps", 2, *more) for more in ((), ("--ep", 2))]
            wrong = wlb("sim", *sizes, "--layout", "tp=4,cp=1,pp=8", "--ep", 3)
            refused = wlb(*job, "--trainer", "worker")
            lengths = [wlb("shard", "--model", folder, "--cp", 2, "--lengths", "-", stdin="5\n4097\n"),
                       wlb("pack", "--model", folder, "--seq-length", 4096, "--micro-batches", 2, "--lengths", "-", stdin="5\n4097\n")]
            path.write_text(json.dumps(dense), encoding="utf-8")
            other = self.calculate(*job)
        self.assertIn("46.70 billion parameters, of which 12.88 compute a token", text)
        self.assertEqual((plan["parameters"], plan["active_parameters"]), (model["parameters"], model["active_parameters"]))
        self.assertEqual([(report["ep"], report["time"]["ep_s"] > 0) for report in (plan, divided)], [(1, False), (4, True)])
        self.assertIn("expert parallelism 4: 2 of 8 experts of a layer on each rank", told)
        self.assertNotIn("expert parallelism", text)
        self.assertLess(divided["memory_bytes"]["weights"], 0.32 * plan["memory_bytes"]["weights"])
        self.assertEqual([report["ep"] for report in steps], [4, 2])
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("ep must divide num_experts and dp x cp", wrong.stderr)
        self.assertEqual((refused.returncode, [done.returncode for done in lengths]), (2, [0, 0]))
        self.assertIn("it has experts; wlb-worker does not train this family", refused.stderr)
        # With an MLP as wide as the experts of a token: about as many operations, and 36.3 billion parameters fewer.
        self.assertEqual(other["active_parameters"], other["parameters"])
        self.assertAlmostEqual(plan["active_parameters"] - other["parameters"], 32 * 8 * 4096)
        self.assertLess(plan["step_s"], 1.5 * other["step_s"])
        self.assertGreater(plan["step_s"], other["step_s"])
        self.assertGreater(plan["memory_bytes"]["weights"], 3.0 * other["memory_bytes"]["weights"])

    def test_attention_within_a_sliding_window(self):
        """Its time is that of the pairs within it, of the layers that have it, in every calculator."""
        config = {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "vocab_size": 32000}
        models = {"none": {**config, "sliding_window": None}, "all": config,
                  "some": {**config, "model_type": "qwen2", "num_key_value_heads": 8, "use_sliding_window": True, "max_window_layers": 16}}
        seconds = {}
        for name, fields in models.items():
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "config.json").write_text(json.dumps(fields), encoding="utf-8")
                job = ("--model", folder, "--nodes", 1, "--global-batch-size", 8, "--seq-length", 32768, "--json")
                shard = ("shard", "--model", folder, "--cp", 2, "--lengths", "-", "--json")
                seconds[name] = (json.loads(wlb("plan", *job).stdout)["step_s"],
                                 1 / json.loads(wlb("sim", *job).stdout)["strategies"][0]["tokens_per_s"],
                                 json.loads(wlb(*shard, stdin="32768\n").stdout)["attention_s"])
                within = json.loads(wlb(*shard, stdin="4096\n").stdout)["attention_s"]
                seconds.setdefault("within", within)
                self.assertEqual(within, seconds["within"])
        for none, some, all_layers in zip(seconds["none"], seconds["some"], seconds["all"], strict=True):
            self.assertLess(all_layers, some)
            self.assertLess(some, none)
        # Of tiles of 128 tokens: 256 x 257 / 2 shared out; in the window 33 for each of 128 of queries in the middle half.
        self.assertAlmostEqual(seconds["none"][2] / seconds["all"][2], 256 * 257 / 4 / (128 * 33))

    def test_interleaving_has_no_bound_but_the_layers(self):
        job = ("plan", "--model", "Llama-3-405B", "--nodes", 2048, "--seq-length", 8192, "--global-batch-size", 2048, "--machine", "H100")
        plan = self.calculate(*job)
        self.assertGreater(plan["interleave"], 4)  # such as 16 x 8 chunks of 126 layers, with the embedding and the head
        fixed = self.calculate(*job, "--interleave", 4)
        self.assertLess(plan["step_s"], fixed["step_s"])

    def test_no_accuracy_is_claimed_where_no_step_was_published(self):
        job = ("plan", "--model", "7B", "--nodes", 2, "--global-batch-size", 16, "--machine", "B200", "--seq-length", 8192)
        self.assertNotRegex(wlb(*job).stdout, "predicted:|calibrated:|9 of 10")
        self.assertEqual(self.calculate(*job)["uncertainty"], {"kind": "unknown"})

    def test_what_became_of_the_plans(self):
        text = wlb("plan", "--model", "7B", "--nodes", 2, "--seq-length", 8192, "--global-batch-size", 16).stdout
        self.assertRegex(text, r"(?m)^  \d+ plans: \d+ do not fit, \d+ pruned by their lower bound, \d+ simulated(, |$)")
        self.assertRegex(text, r"(?m)^Memory of a GPU of stage \d+, which needs the most: ")

    def test_of_nearly_equal_plans_one_without_idle_gpus_is_chosen(self):
        job = ("plan", "--model", "7B", "--nodes", 3, "--gpus-per-node", 4, "--seq-length", 4096, "--global-batch-size", 4, "--lengths",
               "gen:skewed,count=2000")
        self.assertEqual(self.calculate(*job)["gpus"], 12)
        self.assertRegex(wlb(*job).stdout, r"chosen of nearly equal plans as one that leaves no GPU idle: "
                         r"tp=4,cp=1,pp=1,dp=2 on 8 GPUs takes 0\.\d% less time")

    def test_numbers_are_shown_as_they_are(self):
        text = wlb("plan", "--model", "7B", "--nodes", 2, "--gpus-per-node", 6, "--seq-length", 16384, "--global-batch-size", 32,
                   "--trainer", "worker").stdout
        self.assertRegex(text, r"chosen as the most usual of nearly equal layouts(.|\n)* -0\.\d%")  # one is faster
        self.assertNotIn("+-", text)
        config = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 257}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            text = wlb("plan", "--model", file.name, "--nodes", 1, "--seq-length", 1024, "--global-batch-size", 16, "--machine", "CPU").stdout
        self.assertIn("0.12 million parameters", text)

    # Megatron-LM's examples/llama/train_llama3_8b_h100_fp8.sh, expanded, but for its options of files and of the log.
    recipe = """torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --use-mcore-models --num-layers 32 --hidden-size 4096
        --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128 --seq-length 8192
        --swiglu --normalization RMSNorm --attention-backend fused --untie-embeddings-and-output-weights --disable-bias-linear
        --micro-batch-size 1 --global-batch-size 128 --lr 0.00015 --bf16 --grad-reduce-in-bf16 --use-distributed-optimizer
        --overlap-grad-reduce --overlap-param-gather --fp8-format hybrid --tensor-model-parallel-size 1 --context-parallel-size 1
        --sequence-parallel --vocab-size 128256 --split 99,1,0 --tensorboard-dir t""".split()

    @staticmethod
    def settings(report, name):
        return {setting["option"]: setting[name] for setting in report["compare"]["settings"]}

    def test_comparison_with_a_published_command(self):
        report = self.calculate("plan", "--nodes", 1, "--machine", "H100", "--compare", "--", *self.recipe)
        named = self.calculate("plan", "--nodes", 1, "--machine", "H100", "--model", "Llama-3-8B", "--seq-length", 8192,
                               "--global-batch-size", 128, "--gradient-type", "bfloat16", "--fp8", "delayed", "--fp8-param-gather", "no")
        self.assertEqual(report["parameters"], named["parameters"])
        self.assertEqual(report["time"], named["time"])
        self.assertEqual(report["compare"]["asked"], {"tp": 1, "cp": 1, "pp": 1, "dp": 8})
        self.assertEqual(report["compare"]["not_looked_at"], ["--attention-backend"])
        given = self.settings(report, "given")
        self.assertEqual([name for name in given if not given[name]],
                         ["--pipeline-model-parallel-size", "--num-virtual-stages-per-pipeline-rank", "--recompute-granularity",
                          "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
                          "sends between stages beside computation", "--tp-comm-overlap"])

    def test_comparison_with_a_published_pipeline(self):
        """Megatron-LM's examples/gpt3/train_gpt3_175b_distributed.sh, with the vocabulary that it has in a file."""
        report = self.calculate("plan", "--nodes", 16, "--machine", "H100", "--compare", "--", *"""torchrun --nnodes 16 pretrain_gpt.py
            --num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048
            --attention-backend auto --micro-batch-size 1 --global-batch-size 1536 --train-iters 500000 --fp16 --lr 6.0e-5
            --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --split 949,50,1 --vocab-size 50257""".split())
        matrices = 96 * 12 * 12288 * 12288  # 4 of attention, 2 of the MLP that are 4 times as wide
        vectors = (2 * 96 + 1) * 2 * 12288
        self.assertEqual(report["parameters"], matrices + vectors + 12288 * 51200)  # a multiple of 128 x tp
        mine = report["compare"]["plan"]
        self.assertEqual((mine["layout"], mine["micro_batches"], mine["interleave"], mine["recompute"], mine["zero_stage"]),
                         ({"tp": 8, "cp": 1, "pp": 16, "dp": 1}, 1536, 1, "none", 0))

    def test_comparison_with_experts(self):
        """The command's degree of expert parallelism is held: 1 where it has none."""
        model = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
                 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
                 "num_local_experts": 8, "num_experts_per_tok": 2}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(model, file)
            file.flush()
            job = ("plan", "--nodes", 16, "--machine", "H100", "--model", file.name, "--compare", "--", "x.py", "--seq-length", 4096,
                   "--micro-batch-size", 1, "--global-batch-size", 256, "--tensor-model-parallel-size", 8, "--use-distributed-optimizer")
            selective = ("--recompute-granularity", "selective")
            for words, ep, recompute in (((), 1, "none"), (("--expert-model-parallel-size=4", *selective), 4, "core_attn"),
                                         ((*selective, "--recompute-modules", "moe_act", "layernorm"), 1, "layernorm,moe_act")):
                report = self.calculate(*job, *words)
                self.assertEqual((report["compare"]["plan"]["ep"], report["compare"]["plan"]["recompute"]), (ep, recompute))

    def test_comparison_that_lacks_memory(self):
        """18 bytes for each of 8e9 parameters: the step is that of a GPU with more memory."""
        command = [word for word in self.recipe if word != "--use-distributed-optimizer"]
        job = ("plan", "--nodes", 1, "--machine", "H100", "--compare", "--", *command)
        report, text = self.calculate(*job), wlb(*job).stdout
        self.assertFalse(report["compare"]["runs"])
        self.assertRegex(report["compare"]["reason"], r"stage 0 needs .* a rank has \d\d\.\d GB")
        self.assertGreater(report["compare"]["plan"]["memory_bytes"]["optimizer"], 11.9 * report["parameters"])
        self.assertGreater(report["compare"]["plan"]["time"]["step_s"], 0)
        self.assertIn("it would run with more memory, with 16 x 1 micro-batches", text)
        self.assertIn("change --use-distributed-optimizer from off to on\n", text)
        self.assertNotIn("keep it", text)
        self.assertRegex(text, r"needs the most: \S+ GiB of \d\d\.\d\d GiB")  # the limit that there is

    def test_comparison_is_the_plan_of_the_command(self):
        """Its step is that of the same plan, held and without overlap; with the best plan's settings it is the best."""
        job = ("plan", "--nodes", 16, "--machine", "H100", "--model", "Llama-3-70B")
        command = ("x.py", "--seq-length", 8192, "--global-batch-size", 128, "--micro-batch-size", 1, "--tensor-model-parallel-size", 8,
                   "--pipeline-model-parallel-size=4", "--num-layers-per-virtual-pipeline-stage", 5, "--recompute-granularity", "full",
                   "--recompute-method", "block", "--recompute-num-layers", 2, "--sequence-parallel", "--use-distributed-optimizer")
        report = self.calculate(*job, "--compare", "--", *command)
        mine = report["compare"]
        self.assertEqual({name: mine["plan"][name] for name in ("layout", "micro_batches", "interleave", "zero_stage", "recompute",
                                                                "recompute_layers")},
                         {"layout": {"tp": 8, "cp": 1, "pp": 4, "dp": 4}, "micro_batches": 32, "interleave": 4, "zero_stage": 1,
                          "recompute": "full", "recompute_layers": 2})
        self.assertGreater(mine["step_over_best"], 1.02)
        self.assertAlmostEqual(mine["plan"]["time"]["step_s"] / report["step_s"], mine["step_over_best"])
        batch = ("--seq-length", 8192, "--global-batch-size", 128)
        held = self.calculate(*job, *batch, "--tp", 8, "--cp", 1, "--pp", 4, "--interleave", 4, "--micro-batch-size", 1, "--recompute",
                              "full", "--tp-overlap", 0, "--overlap-gradients", "no", "--overlap-parameters", "no")
        uniform = self.calculate(*job, "--compare", "--", *command, "--recompute-method", "uniform")
        self.assertEqual(uniform["compare"]["plan"]["time"], held["time"])
        whole = self.calculate(*job, "--compare", "--", *(word for word in command if word != "--use-distributed-optimizer"))["compare"]
        self.assertEqual(whole["plan"]["zero_stage"], 0)
        for strategy, stage in (((), 3), (("--data-parallel-sharding-strategy", "optim_grads"), 2)):
            fsdp = self.calculate(*job, "--compare", "--", "x.py", *command[1:7], "--tensor-model-parallel-size=8",
                                  "--use-megatron-fsdp", *strategy)
            self.assertEqual(fsdp["compare"]["plan"]["zero_stage"], stage)
            self.assertEqual(fsdp["zero_stage"], stage if fsdp["layout"]["pp"] == 1 else 1)
        self.assertGreater(whole["plan"]["memory_bytes"]["optimizer"], 3 * mine["plan"]["memory_bytes"]["optimizer"])
        layout = report["layout"]
        windows = 128 // (layout["dp"] * report["micro_batches"])
        best = ["x.py", *batch, "--micro-batch-size", windows, "--tensor-model-parallel-size", layout["tp"], "--context-parallel-size",
                layout["cp"], "--pipeline-model-parallel-size", layout["pp"], "--sequence-parallel", "--use-distributed-optimizer",
                "--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap", "--num-virtual-stages-per-pipeline-rank",
                report["interleave"]]
        if report["recompute"] == "full":
            best += ["--recompute-granularity", "full", "--recompute-method", "block", "--recompute-num-layers", report["recompute_layers"]]
        for account in ("embedding", "loss"):
            best += [f"--account-for-{account}-in-pipeline-split"] * report[f"account_for_{account}"]
        again = self.calculate(*job, "--compare", "--", *best)
        self.assertEqual(again["compare"]["step_over_best"], 1)
        self.assertEqual(self.settings(again, "command"), self.settings(again, "best"))
        text = wlb(*job, "--compare", "--", *best).stdout
        self.assertIn("no plan has a step that is more than 1% shorter: keep it", text)
        self.assertNotIn("  change ", text)
        changes = wlb(*job, "--compare", "--", *command).stdout
        self.assertIn("  change --overlap-grad-reduce from off to on\n", changes)
        self.assertNotIn("keep it", changes)

    def test_comparison_with_stages_of_other_lengths(self):
        """126 layers: 6 on the first of 16 stages, and 8 on each other one."""
        job = ("plan", "--nodes", 64, "--machine", "H100", "--model", "Llama-3-405B", "--gradient-type", "bfloat16")
        command = ("x.py", "--seq-length", 8192, "--global-batch-size", 256, "--micro-batch-size", 1, "--tensor-model-parallel-size", 8,
                   "--pipeline-model-parallel-size", 16, "--sequence-parallel", "--use-distributed-optimizer")
        report = self.calculate(*job, "--compare", "--", *command, "--decoder-first-pipeline-num-layers", 6)
        plan, settings = report["compare"]["plan"], self.settings(report, "command")
        self.assertEqual((plan["first_stage_less_layers"], plan["last_stage_less_layers"]), (2, 0))
        self.assertEqual((settings["--decoder-first-pipeline-num-layers"], settings["--decoder-last-pipeline-num-layers"]), ("6", "8"))
        self.assertEqual(settings["--account-for-embedding-in-pipeline-split"], "off")

    def test_comparison_with_other_trainers(self):
        job = ("plan", "--nodes", 16, "--machine", "H100", "--model", "Llama-3-8B")
        report = self.calculate(*job, "--trainer", "torchtitan", "--compare", "--", "torchrun", "--nproc_per_node=8", "-m",
                                "torchtitan.train", "--training.seq_len", 8192, "--training.local_batch_size=2",
                                "--parallelism.data_parallel_shard_degree", -1, "--activation_checkpoint.selective_ac_option", "op",
                                "--model.flavor=8B")
        plan = report["compare"]["plan"]
        self.assertEqual((plan["layout"]["dp"], plan["micro_batches"], plan["zero_stage"], plan["recompute"], plan["recompute_layers"]),
                         (128, 1, 3, "full", 16))
        self.assertEqual(report["zero_stage"], 3)
        self.assertEqual(report["compare"]["not_looked_at"], ["--model.flavor"])
        self.assertFalse(self.settings(report, "given")["--training.global_batch_size"])
        self.assertEqual(self.settings(report, "command")["--training.global_batch_size"], "256")
        report = self.calculate(*job, "--trainer", "nemo", "--compare", "--", "nemo", "llm", "pretrain", "trainer.num_nodes=16",
                                "trainer.devices=8", "trainer.strategy.tensor_model_parallel_size=2",
                                "trainer.strategy.context_parallel_size=2", "trainer.strategy.pipeline_model_parallel_size=1",
                                "data.micro_batch_size=1", "data.global_batch_size=128",
                                "data.seq_length=8192", "optim.lr=1")
        self.assertEqual(report["compare"]["plan"]["layout"], {"tp": 2, "cp": 2, "pp": 1, "dp": 32})
        self.assertEqual(self.settings(report, "command")["overlap_grad_reduce"], "on")
        self.assertEqual(report["compare"]["not_looked_at"], [])

    def test_explanations(self):
        report = self.calculate("plan", *self.job)
        asked = self.calculate("plan", *self.job, "--explain", "tp=8,pp=8")["explain"]
        self.assertTrue(asked["runs"])
        self.assertEqual(asked["plan"]["layout"], {"tp": 8, "cp": 1, "pp": 8, "dp": 1})
        self.assertGreater(asked["plan"]["time"]["step_s"], report["step_s"])
        for layout, reason in (("tp=3", "must divide num_attention_heads"), ("tp=8,cp=8,pp=2", "its product is 128"),
                               ("tp=1,dp=64", "dp=64 is fixed: it must be from 1 to --global-batch-size, 32")):
            asked = self.calculate("plan", *self.job, "--explain", layout)["explain"]
            self.assertFalse(asked["runs"])
            self.assertIn(reason, asked["reason"])
        large = self.calculate("plan", *self.job, "--model", "Llama-3-70B", "--explain", "tp=8")["explain"]
        self.assertRegex(large["reason"], r"stage 0 needs [\d.]+ GB \(weights, gradients and optimizer [\d.]+")
        again = self.calculate("plan", *self.job, "--explain", ",".join(f"{way}={n}" for way, n in report["layout"].items()))
        self.assertEqual(again["explain"]["plan"]["time"], report["time"])

    def test_csv(self):
        job = (*self.job, "--recompute", "act,layernorm")
        report = self.calculate("plan", *job)
        done = wlb("plan", *job, "--csv")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(len(rows), len(self.plans_of(report)))
        for rank, (row, plan) in enumerate(zip(rows, self.plans_of(report)), 1):
            simulated = "time" in plan
            self.assertEqual(row["rank"], str(rank) if simulated else "")
            self.assertEqual([int(row[way]) for way in ("tp", "cp", "pp", "dp")], list(plan["layout"].values()))
            self.assertEqual((int(row["ep"]), row["recompute"], plan["recompute"]), (plan["ep"], *["layernorm,act"] * 2))
            for part in ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "allocated", "fragmentation", "runtime",
                         "reserved"):
                self.assertAlmostEqual(float(row[f"{part}_bytes"]), plan["memory_bytes"][part], delta=1)
            self.assertEqual((row["mfu"] != "", row["step_s"] != ""), (simulated, simulated))
            for name in ("mfu", "tokens_per_s") if simulated else ():
                self.assertAlmostEqual(float(row[name]) / plan[name], 1.0, places=6)
            for part, seconds in plan.get("time", {}).items():
                self.assertAlmostEqual(float(row[part]), seconds, delta=1e-7)
        words = ("sim", *self.job, "--layout", "tp=4,cp=2,pp=4", "--steps", 2)
        runs = list(csv.DictReader(wlb(*words, "--csv").stdout.splitlines()))
        for row, run in zip(runs, self.calculate(*words)["strategies"], strict=True):
            self.assertEqual(row["strategy"], run["strategy"])
            self.assertAlmostEqual(float(row["mfu"]), run["utilization"], delta=1e-7)

    def test_a_simulated_layout_that_does_not_fit(self):
        words = ("sim", *self.job, "--model", "Llama-3-70B", "--steps", 1, "--strategies", "balanced", "--layout",
                 "tp=8,cp=1,pp=8", "--recompute")
        for recompute, fits in (("selective", False), ("full", True)):
            run = self.calculate(*words, recompute)["strategies"][0]
            missing = run["memory_bytes"]["reserved"] - GPU_BYTES
            self.assertAlmostEqual(run["missing_bytes"], max(0.0, missing), delta=1)
            self.assertEqual(run["missing_bytes"] == 0.0, fits)
            self.assertEqual("Does not fit with balanced: a GPU of stage" in wlb(*words, recompute).stdout, not fits)

    def test_simulation(self):
        with tempfile.TemporaryDirectory() as work:
            picture = pathlib.Path(work) / "pipelines.svg"
            report = self.calculate("sim", *self.job, "--layout", "tp=4,cp=2,pp=4", "--strategies",
                                  "greedy,plain,balanced,dynamic,hybrid,servers", "--steps", 20, "--svg", picture)
            bars = picture.read_text(encoding="utf-8").count("<title>")
        self.assertEqual(report["layout"], {"tp": 4, "cp": 2, "pp": 4, "dp": 2})
        self.assertEqual(bars, 6 * 2 * 4 * 16)
        speed = {run["strategy"]: run["tokens_per_s"] for run in report["strategies"]}
        for run in report["strategies"]:
            self.check_time(run["time"])
            self.assertAlmostEqual(run["speedup"], speed[run["strategy"]] / speed["plain"], places=12)
        self.assertGreater(speed["balanced"], speed["plain"])
        self.assertGreater(speed["servers"], speed["plain"])
        # All have the same documents, so that the rates are those of the same work, whatever is held back.
        held = {run["strategy"]: run["held_back_share"] for run in report["strategies"]}
        self.assertEqual(held["plain"], 0.0)
        self.assertNotEqual(held["balanced"], 0.0)
        arrived = [run["tokens_per_s"] * run["time"]["step_s"] * (1 + run["held_back_share"]) for run in report["strategies"]]
        for tokens in arrived:
            self.assertAlmostEqual(tokens / arrived[0], 1.0, places=12)

    def test_windows_of_a_micro_batch(self):
        """One micro-batch of all windows has no other to be unequal to, and the documents are those of one window each."""
        words = ("sim", *self.job, "--layout", "tp=8,cp=1,pp=4,dp=2", "--strategies", "plain,fixed,balanced", "--steps", 3)
        arrived = []
        for windows, most in ((1, 65536), (4, 4 * 65536), (16, 16 * 65536)):
            report = self.calculate(*words, "--micro-batch-size", windows)
            self.assertEqual(report["micro_batches"], 16 // windows)
            for run in report["strategies"]:
                arrived.append(run["tokens_per_s"] * run["time"]["step_s"] * (1 + run["held_back_share"]))
                self.assertAlmostEqual(arrived[-1] / arrived[0], 1.0, places=12)
                self.assertLessEqual(run["micro_batch_tokens"], most * (1.25 if run["strategy"] == "balanced" else 1))
                self.assertGreater(run["micro_batch_tokens"], 0.9 * most)
        # A document is cut at its windows, so that it has the same operations in a micro-batch of four.
        one, four = (json.loads(wlb(*words, "--lengths", "-", "--json", "--micro-batch-size", n, stdin="262144\n").stdout)["strategies"][2]
                     for n in (1, 4))
        self.assertAlmostEqual(one["utilization"] * one["time"]["step_s"] / (four["utilization"] * four["time"]["step_s"]), 1.0, places=9)

    def test_recomputation_is_the_trainers_where_none_is_given(self):
        words = ("sim", *self.job, "--model", "7B", "--layout", "tp=8,cp=1,pp=2", "--strategies", "balanced", "--steps", 2)
        trainers = ("worker", "none", "selective"), ("megatron", "none", "full"), ("megatron-2021", "none", "selective")
        for trainer, recompute, other in trainers:
            given, named, differs = (self.calculate(*words, "--trainer", trainer, *more)
                                     for more in ((), ("--recompute", recompute), ("--recompute", other)))
            self.assertEqual(given, named)
            self.assertEqual(given["recompute"], recompute)
            self.assertNotEqual(given["strategies"], differs["strategies"])

    def test_slow_rank(self):
        words = ("sim", *self.job, "--layout", "tp=8,cp=1,pp=2", "--strategies", "balanced", "--steps", 5)
        even, slow = (self.calculate(*words, *more)["strategies"][0] for more in ((), ("--slow", "3:2")))
        self.assertEqual(even["time"]["straggler_s"], 0.0)
        self.assertGreater(slow["time"]["straggler_s"], 0.1 * even["time"]["step_s"])


class Text(unittest.TestCase):
    """What people read has the numbers of --json."""
    job = ("--nodes", 8, "--seq-length", 65536, "--global-batch-size", 32)
    small_model = {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 6, "num_attention_heads": 4, "vocab_size": 257}

    def both(self, *words):
        """The lines of the text, and the object of --json."""
        text, report = wlb(*words), wlb(*words, "--json")
        for done in (text, report):
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return text.stdout.splitlines(), json.loads(report.stdout)

    def section(self, lines, title):
        """The lines between the one that starts with `title` and the next empty one."""
        first = next((i for i, line in enumerate(lines) if line.startswith(title)), None)
        self.assertIsNotNone(first, f"no line starts with {title!r}: {lines}")
        return lines[first + 1:lines.index("", first) if "" in lines[first:] else None]

    @staticmethod
    def layout(of):
        return ",".join(f"{name}={of['layout'][name]}" for name in ("tp", "cp", "pp", "dp"))

    def test_plan_tells_what_would_save_recomputation(self):
        job = ("plan", "--model", "Llama-3-8B", "--nodes", 1, "--seq-length", 131072, "--global-batch-size", 8)
        lines, report = self.both(*job)
        self.assertEqual((report["recompute"], report["layout"]["pp"]), ("full", 1))
        section = self.section(lines, "What would save recomputation")
        self.assertEqual([choice["option"] for choice in report["choices"]],
                         ["--gradient-type bfloat16", "--release-activations", "--zero-stage 2", "--zero-stage 3"])
        for choice, line in zip(report["choices"], section, strict=True):
            step_s = choice["plan"]["time"]["step_s"]
            shorter = 100 * (1 - step_s / report["step_s"])
            self.assertTrue(line.startswith(f"  {choice['option']} frees {amount(choice['freed_bytes'])}; fits: step {step_s:.3f} s, "
                                            f"{shorter:.1f}% shorter"), line)
            chosen = json.loads(wlb(*job, *choice["option"].split(), "--json").stdout)  # said again, it holds
            self.assertLessEqual(chosen["fastest_s"] / step_s, 1.011)
            self.assertNotIn(choice["option"], [left["option"] for left in chosen["choices"]])
        memory, shards = report["memory_bytes"], report["layout"]["cp"] * report["layout"]["dp"]
        beside = 1 + memory["fragmentation"] / memory["allocated"]
        freed = {choice["option"]: choice["freed_bytes"] for choice in report["choices"]}
        self.assertAlmostEqual(freed["--zero-stage 2"] / (memory["gradients"] * (1 - 1 / shards) * beside), 1.0, places=6)
        self.assertEqual(json.loads(wlb(*job, "--trainer", "torchtitan", "--zero-stage", 3, "--machine", "H200", "--json").stdout)["choices"],
                         [])

    def test_plan_tells_what_half_a_micro_batch_frees(self):
        job = ("plan", "--model", "Llama-3-70B", "--nodes", 4, "--seq-length", 8192, "--global-batch-size", 32, "--trainer", "torchtitan",
               "--zero-stage", 3, "--pp", 1)
        lines, report = self.both(*job)
        section = self.section(lines, "What would save recomputation")
        choices = {choice["option"].split()[0]: choice for choice in report["choices"]}
        plans = {option: choice["plan"] for option, choice in choices.items()}
        replicas = report["layout"]["dp"]
        self.assertEqual((report["recompute"], report["micro_batches"] * replicas), ("full", 16))  # of two windows each
        self.assertEqual(choices["--micro-batch-size"]["option"], "--micro-batch-size 1")
        self.assertEqual(plans["--micro-batch-size"]["micro_batches"] * replicas, 32)
        self.assertGreater(choices["--micro-batch-size"]["freed_bytes"], 0.4 * report["memory_bytes"]["activations"])
        self.assertEqual(plans["--tp"]["layout"]["tp"], 2 * report["layout"]["tp"])
        self.assertEqual(choices["--tp"]["option"], f"--tp {plans['--tp']['layout']['tp']}")
        self.assertGreater(choices["--tp"]["freed_bytes"], 0.4 * report["memory_bytes"]["activations"])
        self.assertEqual(plans["--recompute"]["recompute"], "selective")
        self.assertLess(choices["--recompute"]["freed_bytes"], 0)
        takes = amount(-choices["--recompute"]["freed_bytes"])
        self.assertIn(f"  --recompute selective takes {takes}; fits: step ", "\n".join(section))

    def test_plan_tells_with_what_a_plan_fits(self):
        words = ("plan", "--model", "Llama-3-8B", "--nodes", 1, "--seq-length", 8192, "--global-batch-size", 16, "--tp", 1, "--cp", 1,
                 "--pp", 1, "--recompute", "none")
        done = wlb(*words)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"none of \d+ layouts fits: .*; a plan fits with --zero-stage 2: step [\d.]+ s, --zero-stage 3: step")
        self.assertEqual(wlb(*words, "--zero-stage", 2).returncode, 0)

    def test_plan_tells_how_far_published_steps_were_off(self):
        lines, report = self.both("plan", "--nodes", 8, "--seq-length", 8192, "--global-batch-size", 64, "--trainer", "nemo")
        near = report["uncertainty"]
        self.assertEqual((report["trainer"], near["kind"], near["any_trainer"]), ("nemo", "predicted", True))
        self.assertIn(f"  predicted: near this are {near['steps']} published steps ({near['sources']} sources, other trainers too); "
                      f"9 of 10 took between {100 * (1 - near['lower']):.0f}% less and {100 * (near['upper'] - 1):.0f}% more time than predicted", lines)
        lines, report = self.both("plan", "--nodes", 8, "--seq-length", 262144, "--global-batch-size", 64)
        self.assertEqual(report["uncertainty"], {"kind": "unknown"})
        self.assertIn("  unknown how far off: near this machine, window and number of GPUs are fewer than four published steps of two sources", lines)

    def test_plan(self):
        lines, report = self.both("plan", *self.job, "--down", "2,5:6", "--top", 2)
        self.assertEqual(lines[0], f"{self.layout(report)}: {report['gpus']} of 54 GPUs, {report['micro_batches']} micro-batches "
                                   f"for each replica, up to {report['micro_batch_tokens']} tokens in one")
        head = "\n".join(lines[:lines.index("")])
        self.assertIn(f"step {report['step_s']:.3f} s, {report['tokens_per_s']:.0f} tokens/s, MFU {100 * report['mfu']:.1f}% "
                      "(causal attention)", head)
        self.assertIn(f"{report['tried']} plans: {report['no_memory']} do not fit", head)
        self.assertIn("a size class of the WLB-LLM paper", head)
        parts = self.section(lines, "Where the step's time goes")
        shown = {line.split("  ")[1]: float(line.split(" s ")[0].split()[-1]) for line in parts}
        self.assertAlmostEqual(shown["computation"], report["time"]["compute_s"], delta=0.00101)
        self.assertEqual(round(1000 * sum(shown.values())), round(1000 * report["step_s"]))
        memory = self.section(lines, "Memory of a GPU of stage")
        shown = [float(line.split()[-2]) * UNITS[line.split()[-1]] for line in memory]
        self.assertAlmostEqual(sum(shown), report["memory_bytes"]["reserved"], delta=2**30 * 0.005 * len(shown))
        for title, listed, number in (("The next best", report["next_best"], lambda other: f"{other['time']['step_s']:.3f} s"),
                                      ("What would not fit", report["misfits"],
                                       lambda other: amount(other["missing_bytes"]))):
            rows = self.section(lines, title)[1:]
            self.assertEqual(len(rows), len(listed))
            for row, other in zip(rows, listed):
                self.assertEqual(row.split()[0], self.layout(other))
                self.assertIn(number(other), row)
        self.assertIn(f"Ranks 0 to {report['gpus'] - 1} on nodes ", lines[-2])
        self.assertEqual(lines[-1].split(" GPUs")[0], f"Idle: {len(report['idle'])}")

    def test_simulation(self):
        lines, report = self.both("sim", *self.job, "--layout", "tp=4,cp=2,pp=4", "--steps", 4, "--node-mtbf", 1000, "--slow",
                                "3:1.5")
        self.assertTrue(lines[0].startswith("tp=4,cp=2,pp=4,dp=2 on 64 GPUs of H100, 16 micro-batches"), lines[0])
        self.assertIn("MFU counts causal attention", lines[1])
        runs = report["strategies"]
        for line, run in zip(lines[4:7], runs):
            self.assertEqual(line.split()[:7], [run["strategy"], f"{run['time']['step_s']:.3f}", "s",
                                                f"{run['tokens_per_s']:.0f}", f"{100 * run['utilization']:.1f}%",
                                                f"{run['speedup']:.3f}", f"{run['imbalance_mean']:.4f}"])
        parts = self.section(lines, "Where it comes from")
        for words, part in (("computation", "compute_s"), ("pipeline bubble", "bubble_s"), ("slow ranks", "straggler_s")):
            row = next(line for line in parts if line.strip().startswith(words))
            for shown, run in zip(row.split()[-3:], runs):
                self.assertAlmostEqual(float(shown), run["time"][part], delta=0.00101)
        for i, run in enumerate(runs):
            self.assertEqual(round(1000 * sum(float(line.split()[i - 3]) for line in parts[1:])),
                             round(1000 * run["time"]["step_s"]))
        self.assertIn(f"{report['failures']['failures_per_day']:.2f} a day on 8 nodes; "
                      f"{100 * report['failures']['useful_share']:.1f}% of the time is useful", "\n".join(lines))

    def small_job(self, folder):
        """Options whose best step takes some milliseconds."""
        config = pathlib.Path(folder) / "config.json"
        config.write_text(json.dumps(self.small_model), encoding="utf-8")
        return ("--model", config, "--trainer", "worker", "--machine", "CPU", "--nodes", 4, "--gpus-per-node", 2, "--seq-length", 1024,
                "--global-batch-size", 4, "--lengths", "gen:skewed,count=2000")

    def test_a_plan_of_milliseconds(self):
        with tempfile.TemporaryDirectory() as folder:
            lines, report = self.both("plan", *self.small_job(folder))
        step_s = report["step_s"]
        self.assertTrue(0.001 < step_s < 0.01, step_s)
        self.assertIn(f"step {step_s:.6f} s, ", "\n".join(lines))
        parts = [line.split() for line in self.section(lines, "Where the step's time goes")]
        shown = sorted(float(cells[-1].rstrip("%")) for cells in parts)
        exact = sorted(100 * seconds / step_s for part, seconds in report["time"].items() if part != "step_s" and seconds >= 5e-7)
        self.assertGreater(len(exact), 2)
        self.assertEqual(len(shown), len(exact))
        for percent, expected in zip(shown, exact):
            self.assertAlmostEqual(percent, expected, delta=0.1)
        self.assertAlmostEqual(sum(shown), 100, delta=0.5)
        self.assertEqual(round(sum(1e6 * float(cells[-3]) for cells in parts)), round(1e6 * step_s))
        for row, other in zip(self.section(lines, "The next best")[1:], report["next_best"], strict=True):
            self.assertIn(f" {other['time']['step_s']:.6f} s ", row)
        memory = [line.split()[-2:] for line in self.section(lines, "Memory of a GPU of stage")]
        self.assertEqual({unit for _, unit in memory}, {"MiB"})
        total = report["memory_bytes"]["reserved"]
        self.assertAlmostEqual(sum(float(number) * UNITS[unit] for number, unit in memory), total, delta=0.005 * len(memory) * 2**20)
        self.assertIn(f"which needs the most: {amount(total)} of ", "\n".join(lines))
        saved = amount(report["memory_bytes"]["saved"])
        self.assertIn(f"Memory of the host for each GPU where the run saves: {saved}", lines)
        self.assertEqual(report["memory_bytes"]["saved_local"], 6 * report["memory_bytes"]["saved"])
        self.assertIn(f"With --save-local in a RAM disk: {amount(report['memory_bytes']['saved_local'])}", lines)

    def test_a_simulation_of_milliseconds(self):
        with tempfile.TemporaryDirectory() as folder:
            lines, report = self.both("sim", *self.small_job(folder), "--layout", "tp=1,cp=2,dp=4", "--steps", 4)
        parts = self.section(lines, "Where it comes from")[1:]
        self.assertGreater(len(parts), 2)
        for i, run in enumerate(report["strategies"]):
            step_s = run["time"]["step_s"]
            self.assertIn(f" {step_s:.6f} s ", lines[4 + i])
            self.assertEqual(round(sum(1e6 * float(line.split()[i - 3]) for line in parts)), round(1e6 * step_s))

    def test_shard(self):
        lines, report = self.both("shard", "--cp", 4, "--seq-length", 8192, "--lengths", "gen:skewed,count=300")
        self.assertEqual(lines[0], f"per-document over 4 ranks: {report['micro_batches']} micro-batches, 300 documents, "
                                   f"{report['tokens']} tokens")
        shown = [line.split("  ") for line in lines[2:8]]
        self.assertEqual([float(next(filter(None, reversed(cells[:-1])))) for cells in shown],
                         [round(report["work_imbalance_mean"], 6), round(report["work_imbalance_max"], 6),
                          report["token_spread_max"], report["shards"], round(report["attention_s"] * 1e3, 3),
                          report["micro_batches_per_document"]])
        shares = [float(line.split()[-2]) for line in self.section(lines, "Ranks of the last micro-batch")]
        self.assertEqual(len(shares), 4)
        self.assertAlmostEqual(sum(shares), 4, delta=4e-4)


class Refusals(unittest.TestCase):
    def refused(self, *words, names, stdin=""):
        done = wlb(*words, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (2, ""), words)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for name in names:
            self.assertIn(name, done.stderr)

    def test_lengths(self):
        pack = ("pack", "--seq-length", 8, "--micro-batches", 2, "--lengths")
        for text, names in (("5\n-3\n", ("line 2", "-3", "from 0")), ("5\nx y\n", ("line 2", "'x y'", "whole number")),
                            ("1\n\n2\n", ("line 2", "''")), ("", ("empty",)), ("0\n0\n", ("without one token",)),
                            ("1e3\n", ("line 1", "'1e3'")), ("99999999999999999999\n", ("line 1", "whole number"))):
            with self.subTest(text):
                self.refused(*pack, "-", names=names, stdin=text)
        self.refused(*pack, "/none", names=("/none", "cannot be opened"))
        self.refused(*pack, "gen:flat", names=("'flat'", "gen:skewed"))
        self.refused(*pack, "gen:skewed,tail=9", names=("'tail=9'", "from 0 to 4"))
        self.refused(*pack, "gen:skewed,count=1.5", names=("'count=1.5'", "whole"))

    def test_options(self):
        given = {"--seq-length": 8, "--micro-batches": 2, "--lengths": "-"}
        for option, value in (("--seq-length", "0"), ("--micro-batches", "-1"), ("--micro-batches", "two"),
                              ("--max-length-ratio", "0.5"), ("--max-length-ratio", "nan"), ("--packing", "best"),
                              ("--max-delay", "-1"), ("--model", "/none.json")):
            with self.subTest(option):
                words = [word for pair in {**given, option: value}.items() for word in pair]
                self.refused("pack", *words, names=(option, value.strip("-") or "0"), stdin="5\n")
        for missing in given:
            words = [word for pair in given.items() if pair[0] != missing for word in pair]
            self.refused("pack", *words, names=(missing, "needed"), stdin="5\n")
        self.refused("shard", "--cp", "0", "--lengths", "-", names=("--cp", "'0'"))
        self.refused("shard", "--lengths", "-", names=("--cp", "needed"))
        self.refused("shard", "--cp", 4, "--dp", 2, "--lengths", "-", names=("--dp 2", "dynamic"))

    def test_layouts(self):
        sim = ("sim", "--nodes", 4, "--seq-length", 4096, "--global-batch-size", 8)
        for layout, names in (("tp=8,cp=2,pp=2,dp=2", ("64", "32 ranks")), ("tp=3", ("3", "32 ranks")),
                              ("tp=8,cp=2,dp=2,x=1", ("x",)), ("auto", ("auto", "tp=8"))):
            with self.subTest(layout):
                self.refused(*sim, "--layout", layout, names=("--layout", *names))
        self.refused("sim", "--nodes", 4, "--gpus-per-node", 6, "--seq-length", 4096, "--global-batch-size", 8,
                     "--layout", "tp=6", names=("tp=6", "num_attention_heads"))
        self.refused(*sim, "--layout", "tp=8,dp=4", "--strategies", "plain,magic", names=("'magic'", "balanced"))
        self.refused(*sim, "--layout", "tp=8,dp=4", "--micro-batch-size", 4, names=("8", "dp 4", "--micro-batch-size 4"))
        self.refused(*sim, "--micro-batch-size", 262145, names=("--micro-batch-size 262145", "262144 windows"))
        self.refused(*sim, "--micro-batch-size", 3, names=("micro-batch-size=3", "global_batch_size, 8"))
        self.refused(*sim, "--layout", "tp=8,cp=2,dp=2", "--trainer", "worker", "--cp-communication", "ring",
                     names=("ring", "wlb-worker gathers"))
        self.refused(*sim, "--machine", "abacus", names=("--machine", "'abacus'", "H100"))
        self.refused(*sim, "--json", "--csv", names=("--json and --csv",))
        plan = ("plan", *sim[1:])
        self.refused(*plan, "--json", "--csv", names=("--json and --csv",))
        self.refused(*plan, "--tp", 3, names=("tp=3 is fixed", "num_attention_heads"))
        self.refused(*plan, "--pp", 33, names=("pp=33 is fixed", "num_hidden_layers, 32"))
        self.refused(*plan, "--explain", "auto", names=("--explain", "auto", "tp=8"))
        self.refused(*plan, "--recompute", "act,mopy", names=("--recompute", "'mopy'", "core_attn"))
        self.refused(*plan, "--recompute", "moe_act", names=("moe_act", "no experts"))
        self.refused(*plan, "--recompute", "act", "--trainer", "worker", names=("modules", "wlb-worker"))
        self.refused(*sim, "--down", "4", names=("--down", "'4'", "from 0 to 3"))
        self.refused(*sim, "--down", "n[3,7]", names=("--down", "'n3'", "names only with --topology"))
        self.refused(*plan, "--head-stages", "all", names=("--head-stages all", "--trainer worker"))
        self.refused(*plan, "--packing", "dynamic", names=("--packing dynamic", "--trainer worker"))
        self.refused(*plan, "--tp-halves", 4096, names=("--tp-halves 4096", "--trainer worker"))
        for command in (plan, (*sim, "--layout", "tp=8,dp=4")):
            self.refused(*command, "--trainer", "worker", "--zero-stage", 3, names=("--zero-stage 3", "stage 1"))

    def test_comparisons(self):
        compare = ("plan", "--nodes", 4, "--model", "Llama-3-8B", "--compare", "--")
        command = {"--seq-length": 8192, "--global-batch-size": 64, "--micro-batch-size": 1}
        for changed, names in (({"--tensor-model-parallel-size": 3}, ("tp=3", "must divide the 32 usable GPUs")),
                               ({"--micro-batch-size": 3}, ("64 windows", "32 x 3")),
                               ({"--micro-batch-size": "$M"}, ("'$M'", "not expanded")),
                               ({"--num-layers": 40}, ("--num-layers 40", "32")), ({"--seq-length": None}, ("--seq-length", "add it")),
                               ({"--pipeline-model-parallel-size": 4, "--num-layers-per-virtual-pipeline-stage": 3},
                                ("32 layers", "4 x 3")),
                               ({"--pipeline-model-parallel-size": 4, "--decoder-first-pipeline-num-layers": 4}, ("28 layers", "3 stages")),
                               ({"--pipeline-model-parallel-size": 4, "--decoder-last-pipeline-num-layers": 14},
                                ("the last 14", "at most the 6")),
                               ({"--pipeline-model-parallel-size": 8, "--num-virtual-stages-per-pipeline-rank": 4, "--micro-batch-size": 4},
                                ("4 micro-batches", "multiple of pp, 8"))):
            with self.subTest(changed):
                pairs = {**command, **changed}
                self.refused(*compare, *(word for pair in pairs.items() if pair[1] is not None for word in pair), names=names)
        words = [word for pair in command.items() for word in pair]
        for options, names in ((("--tp", 2), ("--tp 2", "has 1")), (("--seq-length", 4096), ("--seq-length 4096", "has 8192")),
                               (("--trainer", "worker"), ("worker", "not known")), (("--trainer", "nemo"), ("--seq-length", "megatron")),
                               (("--csv",), ("--compare and --csv",)), (("--model", "7B"), ("model's shape", "--model"))):
            with self.subTest(options):
                self.refused(*compare[:5], *options, *compare[5:], *words, names=names)
        self.refused(*compare, names=("--compare", "behind --"))
        self.refused("plan", "--nodes", 4, "--", *words, names=("'--seq-length'", "only with --compare"))
        self.refused("plan", "--nodes", 4, "--seq-length", 8, names=("--global-batch-size is needed",))
        nemo = (*compare[:5], "--trainer", "nemo", *compare[5:], "a.tensor_model_parallel_size=2", "a.context_parallel_size=1",
                "a.pipeline_model_parallel_size=2", "a.micro_batch_size=1", "a.seq_length=8192")
        self.refused(*nemo, names=("has no global_batch_size", "recipe"))
        self.refused(*nemo, "a.global_batch_size=64", names=("has no virtual_pipeline_model_parallel_size", "recipe"))
        titan = (*compare[:5], "--trainer", "torchtitan", *compare[5:])
        self.refused(*titan, "--parallelism.data_parallel_shard_degree", 4, names=("1 replicas x 4 shards", "32"))
        self.refused(*titan, "--parallelism.data_parallel_replicate_degree", 4, names=("4 replicas x 8 shards", "not planned"))
        self.refused(*titan, "--parallelism.pipeline_parallel_degree", 4, "--training.global_batch_size", 128,
                     names=("128 windows", "several pipelines"))


if __name__ == "__main__":
    unittest.main()
