#!/usr/bin/env python3
"""Trains every layout of 8 and 16 ranks on the timed device and compares with the planner's predictions: a section of
docs/results/auto.md. Usage: bench_auto_timed.py BUILD_DIR [MODEL RANKS [EVERY]], for one model, and each EVERY-th of its
layouts, on a number of ranks."""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from bench_documents import skewed_documents, write_dataset
from bench_host import verdict

MPIRUN = pathlib.Path(__file__).resolve().parents[2] / "tests/unit/worker/mpirun"
RANKS = (8, 16)
CHANGED = (1,)           # seeds of changed curves; 0: the machine's curves
WARM_STEPS = 1           # not counted
COUNTED_WINDOWS = 64     # in the steps that count, since a mean step is predicted and their documents differ
CHANGED_WINDOWS = 32     # likewise, with changed curves
STEP_S = 3.2             # that the step of auto's choice waits for operations
SIDE_BY_SIDE = 10        # runs at a time
RANK_START_S = 0.075     # that a rank of several runs takes to start, of all processors
CALIBRATION_S = 10
LINKS_S = 40  # --quick takes a tenth of it
CALIBRATIONS_MOST = 5  # tries
RUN_LIMIT_S = 600
# Shared memory, as ranks of a job on one node have it: with single copies a message needs nothing of its sender, who is
# asleep in an operation.
ENVIRONMENT = {**os.environ, "WLB_TEST_BTL": "self,vader", "WLB_TEST_SINGLE_COPY": "cma", "OMP_NUM_THREADS": "1"}
NEAR, NEAR_CHANGED, ALIKE = 0.05, 0.10, 0.9  # the goals


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    hidden: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    window: int   # tokens
    windows: int  # of a step
    documents: object

    def config(self):
        return {"model_type": "llama", "hidden_act": "silu", "hidden_size": self.hidden, "intermediate_size": self.mlp,
                "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
                "num_key_value_heads": self.kv_heads, "vocab_size": self.vocabulary,
                "max_position_embeddings": self.window, "tie_word_embeddings": False}

    def seeds(self):
        """Returns the seed of each step that is trained."""
        changed = tuple(seed for seed in CHANGED for _ in range(CHANGED_WINDOWS // self.windows))
        return (0,) * (WARM_STEPS + COUNTED_WINDOWS // self.windows) + changed

    def describe(self):
        return (f"{self.name}: {self.layers} layers, hidden size {self.hidden}, {self.heads} heads, vocabulary "
                f"{self.vocabulary:,}; {self.windows} windows of {self.window} tokens a step")


def uniform_documents(count, least, most):
    draw = random.Random(2)
    return [draw.choices(range(256), k=draw.randint(least, most) + 1) for _ in range(count)]


# Small, so that messages are; the scale makes up for it.
MODELS = (
    Model("skewed documents", 128, 352, 4, 16, 8, 1024, 64, 16, lambda: skewed_documents(20000, 256)),
    Model("narrow, short documents", 64, 176, 4, 4, 4, 512, 64, 16, lambda: uniform_documents(16000, 8, 32)),
    Model("large vocabulary, long documents", 64, 176, 4, 8, 4, 4096, 512, 4, lambda: uniform_documents(2000, 400, 640)),
)


@dataclasses.dataclass
class Layout:
    """A line of wlb-auto-bench, and the steps that were measured."""
    layout: str
    interleave: str
    micro_batch: str
    recompute: str
    predicted_s: float
    head_stages: str
    steps: list = dataclasses.field(default_factory=list)  # (seed, seconds) of each

    def plan(self):
        return self.layout, self.interleave, self.micro_batch, self.recompute, self.head_stages

    def seconds(self, seed=0):
        """The mean step of those with the seed, in the time of the machine file."""
        return statistics.mean(taken for of, taken in self.steps[WARM_STEPS:] if of == seed)


# Of a machine file: what the timed device has. Its operations take no other time, and its links are those of write().
KEPT = ("name", "peak_flops", "gemm_efficiency", "gemm", "attention_efficiency", "attention_backward_efficiency",
        "attention_tile_tokens", "attention_overhead_keys", "attention", "memory_bytes_per_s", "operation_s",
        "operations", "element_bytes", "blocking_messages", "network_link", "switch_taper", "switch_latency_s")


class Machines:
    """What wlb-calibrate measured: operations with one rank a core, links with as many ranks as train."""

    def __init__(self, build, folder, ranks):
        self.folder = folder
        self.operations = self.measured(build, 2, CALIBRATION_S, ())
        self.links = {count: self.measured(build, count, LINKS_S, ("--quick", "--deviation", "1000"))["node_link"]
                      for count in ranks}

    def measured(self, build, ranks, seconds, words):
        """The machine file. Many ranks on few cores have calibrations that are refused, since a rank waited for a core."""
        file = self.folder / "calibrated.json"
        for _ in range(CALIBRATIONS_MOST):
            ended = subprocess.run([MPIRUN, str(ranks), build / "bin/wlb-calibrate", "--local", "--threads", "1", "--seconds",
                                    str(seconds), "--head-dim", "32", "--output", file, *words], env=ENVIRONMENT,
                                   stdout=sys.stderr, timeout=RUN_LIMIT_S, check=False)
            if ended.returncode == 0:
                return json.loads(file.read_text(encoding="utf-8"))
        sys.exit(f"bench_auto_timed.py: wlb-calibrate ended with {ended.returncode}, {CALIBRATIONS_MOST} times: it says why above")

    def describe(self):
        return ", ".join(f"{1e6 * link['latency_s']:.0f} us and {link['bytes_per_s'] / 1e9:.1f} GB/s with {ranks} ranks"
                         for ranks, link in self.links.items())

    def write(self, file, ranks, scale):
        """A node of the ranks, with memory for every layout. Seen in the time of its operations, messages are faster by
        the scale."""
        link = self.links[ranks]
        machine = {name: self.operations[name] for name in KEPT} | {
            "gpus_per_node": ranks, "memory_bytes": 1e12, "node_link": {
                "bytes_per_s": min(1e15, scale * link["bytes_per_s"]), "latency_s": link["latency_s"] / scale}}
        file.write_text(json.dumps(machine), encoding="utf-8")


def ranks_by_value(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def spearman(xs, ys):
    """The correlation of ranks; no two times are equal to the last bit."""
    count = len(xs)
    squares = sum((x - y) ** 2 for x, y in zip(ranks_by_value(xs), ranks_by_value(ys)))
    return 1 - 6 * squares / (count ** 3 - count)


class Case:
    """One model on a number of ranks: its layouts, and the plan of auto among them."""

    def __init__(self, build, folder, machines, model, ranks):
        self.build, self.folder, self.model, self.ranks = build, folder, model, ranks
        self.machine = folder / f"machine{ranks}.json"
        self.words = ("--model", folder / "config.json", "--data-path", folder / "documents", "--seq-length",
                      str(model.window), "--global-batch-size", str(model.windows), "--machine", self.machine,
                      "--threads", "1", "--lr", "1e-4", "--log-interval", "1000", "--train-iters")
        machines.write(self.machine, ranks, 1e6)  # without messages: the scale follows from operations alone
        self.scale = STEP_S / self.predict()[1].predicted_s
        machines.write(self.machine, ranks, self.scale)
        self.layouts, chosen = self.predict()
        self.auto = next((layout for layout in self.layouts if layout.plan() == chosen.plan()), chosen)
        if self.auto is chosen:
            self.layouts.append(chosen)

    def predict(self):
        """Every layout that can run, and auto's choice."""
        answer = subprocess.run([self.build / "tests/wlb-auto-bench", str(self.ranks), *self.words, "1"],
                                capture_output=True, text=True, check=True).stdout
        lines = [line.split("\t") for line in answer.splitlines()]
        layouts = [(fields[0], Layout(*fields[1:5], float(fields[5]), fields[6])) for fields in lines]
        return ([layout for kind, layout in layouts if kind == "layout"],
                next(layout for kind, layout in layouts if kind == "auto"))

    def run(self, layout, scale, seeds, start_s=0.0):
        """Trains a step for each seed from start_s on; returns their seconds in the time of the machine file."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            metrics = pathlib.Path(name) / "metrics"
            command = [MPIRUN, str(self.ranks), self.build / "tests/wlb-worker-timed", "train", *self.words,
                       str(len(seeds)), "--layout", layout.layout, "--num-virtual-stages-per-pipeline-rank",
                       layout.interleave, "--micro-batch-size", layout.micro_batch, "--recompute-granularity",
                       layout.recompute, "--head-stages", layout.head_stages, "--metrics-file", metrics]
            # Runs of Open MPI that share a folder for their sessions fail where one that ends removes it.
            settings = {"TMPDIR": name, "WLB_TIMED_MACHINE": self.machine, "WLB_TIMED_SCALE": str(scale), "WLB_TIMED_START": str(start_s),
                        "WLB_TIMED_SEEDS": ",".join(map(str, seeds))}
            ended = subprocess.run(command, env={**ENVIRONMENT, **settings}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, timeout=RUN_LIMIT_S, check=False)
            if ended.returncode != 0:
                raise RuntimeError(f"{' '.join(map(str, command))}: {ended.stdout}")
            return [json.loads(line)["step_time_s"] / scale for line in metrics.read_text("utf-8").splitlines()]

    def measure(self, layout, start_s):
        seeds = self.model.seeds()
        layout.steps = list(zip(seeds, self.run(layout, self.scale, seeds, start_s)))

    def fastest(self, seed=0):
        return min(self.layouts, key=lambda layout: layout.seconds(seed))

    def regret(self, seed=0):
        return self.auto.seconds(seed) / self.fastest(seed).seconds(seed) - 1

    def spearman(self):
        return spearman([layout.predicted_s for layout in self.layouts], [layout.seconds() for layout in self.layouts])

    def errors(self):
        return [layout.predicted_s / layout.seconds() - 1 for layout in self.layouts]


class Messages:
    """The time of messages in a step, alone on the machine: the part that does not grow with the scale."""

    def __init__(self, case, layout):
        self.case, self.layout = case, layout
        whole, half = (case.run(layout, scale, (0, 0))[1] for scale in (case.scale, case.scale / 2))
        self.seconds = (half - whole) * case.scale
        self.share = (half - whole) / whole
        self.alone_s = whole

    def row(self):
        beside = self.layout.steps[1][1] / self.alone_s - 1
        return (self.case.model.name, str(self.case.ranks), f"{self.layout.layout}", f"{self.seconds:.3f} s",
                f"{100 * self.share:.1f}%", f"{100 * beside:+.1f}%")


def measure_all(cases):
    """Several runs at a time, of about the same length, whose steps begin when all have started: the start of a run takes
    more of the processors than its steps, in which ranks sleep most of the time."""
    waiting = sorted(((case, layout) for case in cases for layout in case.layouts),
                     key=lambda each: -each[1].predicted_s * each[0].scale * len(each[0].model.seeds()))
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for first in range(0, len(waiting), SIDE_BY_SIDE):
            runs = waiting[first:first + SIDE_BY_SIDE]
            start_s = time.monotonic() + 1.0 + RANK_START_S * sum(case.ranks for case, _ in runs)
            list(pool.map(lambda each, at=start_s: each[0].measure(each[1], at), runs))
            print(f"{first + len(runs)} of {len(waiting)} layouts", file=sys.stderr, flush=True)


def goal_rows(cases):
    for case in cases:
        changed = [case.regret(seed) for seed in CHANGED]
        yield (case.model.name, str(case.ranks), str(len(case.layouts)), f"{100 * case.regret():.1f}%",
               verdict(case.regret() <= NEAR), ", ".join(f"{100 * regret:.1f}%" for regret in changed),
               verdict(max(changed) <= NEAR_CHANGED), f"{case.spearman():.3f}", verdict(case.spearman() >= ALIKE))


def table(rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def case_table(case):
    names = {id(case.auto): "auto", id(case.fastest()): "fastest"}
    if case.auto is case.fastest():
        names = {id(case.auto): "auto, fastest"}
    rows = [(layout.layout, layout.interleave, layout.head_stages, layout.micro_batch, f"{1000 * layout.predicted_s:.3f}",
             f"{1000 * layout.seconds():.3f}", f"{100 * (layout.predicted_s / layout.seconds() - 1):+.1f}%",
             *(f"{1000 * layout.seconds(seed):.3f}" for seed in CHANGED), names.get(id(layout), ""))
            for layout in sorted(case.layouts, key=lambda layout: layout.predicted_s)]
    errors = [abs(error) for error in case.errors()]
    heads = " | ".join(f"seed {seed}" for seed in CHANGED)
    return (f"\n### {case.model.name}, {case.ranks} ranks\n{case.model.describe()}. Scale {case.scale:.0f}. Predicted step "
            f"times are off by {100 * statistics.mean(errors):.1f}% in the mean, {100 * max(errors):.1f}% at worst.\n\n"
            f"| layout | interleave | head on stages | windows of a micro-batch | predicted, ms | measured, ms | error | {heads} | |\n"
            f"|---|---|---|---|---|---|---|{'---|' * len(CHANGED)}---|\n{table(rows)}")


SECTION = """## 8 and 16 ranks, on the timed device
Many ranks cannot be timed by computing on {cores} cores. Here `wlb-worker` runs on a device for tests
([tests/timed](../../tests/timed/device.h)): an operation does not compute, but waits for the time that it takes on a
described machine, times a scale. Processes, messages (MPI, shared memory), schedule, packing, sharding, reduction of
gradients and the parts of the optimizer are the real ones.

- **Compute agrees by construction**: device and planner read the same curves, of a machine file that `wlb calibrate`
  made on this machine with one rank on each of 2 cores. What is tested is how operations, micro-batches and ranks add up
  to a step, and the choice. With *changed curves* the device multiplies the time of each kind of operation (each of the
  three products of a linear layer, attention forward and backward, each elementwise operation) by a factor from 0.8 to
  1.2 that is drawn from a seed; the planner is unchanged, and auto's regret is by how much its choice is slower than the
  fastest layout measured with that seed.
- **Links**: messages take their real time, which the scale does not change. The scale, {least:.0f} to {most:.0f}, makes auto's choice
  wait {step:g} s a step for its operations. The links of the machine file are those that `wlb calibrate` measured with as
  many ranks as train, on the {cores} cores: {links}. Seen in the time of the operations messages are faster by the scale.
- **Layouts**: every tp x cp x pp x dp of the ranks, with every interleaving up to 4, that the planner says can run, each with the
  micro-batch that it chooses for it, by its code for `--layout auto` (`wlb-auto-bench`). Ranks have memory for all. {runs} runs:
  of one step that is not counted, as many as have {counted} windows with the file's curves, since their documents differ and the
  prediction is that of the mean step, and as many as have {changed} with each seed. {side} runs at a time, whose steps begin when all have started,
  since ranks sleep while they wait.

*over the fastest*: the measured step of auto's choice over that of the fastest layout. Spearman: the correlation of the
ranks of predicted and measured steps.

| model | ranks | layouts | over the fastest | <= 5% | with changed curves | <= 10% | Spearman | >= 0.9 |
|---|---|---|---|---|---|---|---|---|
{goals}

Messages: the same layout alone on the machine, at the scale and at half of it; the part of the step that does not grow
with the scale. *Beside others*: its step among {side} runs at a time, over its step alone.

| model | ranks | layout | messages | of the step | beside others |
|---|---|---|---|---|---|
{messages}
{tables}"""


def make_cases(build, folder, machines, models, ranks):
    cases = []
    for number, model in enumerate(models):
        place = folder / str(number)
        place.mkdir()
        (place / "config.json").write_text(json.dumps(model.config()), encoding="utf-8")
        write_dataset(place / "documents", model.documents())
        cases += [Case(build, place, machines, model, count) for count in ranks]
    return cases


def most_messages(case):
    """The layout whose ranks exchange most: the largest tp, which gathers and scatters in every layer."""
    return max(case.layouts, key=lambda layout: int(layout.layout.split(",")[0].removeprefix("tp=")))


def measured_section(build, folder, models=MODELS, ranks=RANKS, every=1):
    machines = Machines(build, folder, ranks)
    cases = make_cases(build, folder, machines, models, ranks)
    for case in cases:
        case.layouts = [layout for number, layout in enumerate(case.layouts) if number % every == 0 or layout is case.auto]
    measure_all(cases)
    largest = cases[len(ranks) - 1]
    wanted = {id(layout): layout for layout in (largest.auto, most_messages(largest))}
    messages = [Messages(largest, layout) for layout in wanted.values()]
    return SECTION.format(
        cores=os.cpu_count(), least=min(case.scale for case in cases), most=max(case.scale for case in cases), step=STEP_S,
        runs=sum(len(case.layouts) for case in cases), counted=COUNTED_WINDOWS, changed=CHANGED_WINDOWS, side=SIDE_BY_SIDE,
        links=machines.describe(), goals=table(row for row in goal_rows(cases)),
        messages=table(message.row() for message in messages), tables="\n".join(case_table(case) for case in cases))


def section(build):
    """The whole section, measured now: a quarter of an hour on two cores."""
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        return measured_section(pathlib.Path(build), pathlib.Path(name))


def main(build, model=None, ranks=None, every="1"):
    if model is None:
        print(section(build))
        return
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        print(measured_section(pathlib.Path(build), pathlib.Path(name), (MODELS[int(model)],), (int(ranks),), int(every)))


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_auto_timed.py: ended by a signal"))
    main(*sys.argv[1:])
