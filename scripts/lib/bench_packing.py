#!/usr/bin/env python3
"""Trains with each packing on 16 and 64 ranks of the timed device and prints docs/results/packing.md.
Usage: bench_packing.py BUILD_DIR"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from bench_documents import skewed_documents, write_dataset
from bench_host import compiler, machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIRUN = ROOT / "tests/unit/worker/mpirun"
MACHINE = "H100-wlb-worker"
# The 7B class of Llama, 8 times narrower, with windows and documents that are 8 times shorter: attention has the same
# share of the FLOPs.
SHRINK = 8
MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 257, "max_position_embeddings": 1 << 16,
         "tie_word_embeddings": False}
WINDOWS = tuple(1 << power for power in range(15, 20))  # 32K to 512K tokens, before they are shrunk
DOCUMENT_TOKENS = 3900  # of the mean document, before it is shrunk
PACKINGS = {"plain": "per-sequence", "greedy": "adaptive", "balanced": "adaptive", "dynamic": "adaptive"}
WARM_STEPS, STEPS = 16, 12  # in the first ones documents begin to wait: they take no time, and do not count
SIM_STEPS = 200
RANK_START_S = 0.12  # that a rank of several runs takes to start, of all processors
RUN_LIMIT_S = 900


@dataclasses.dataclass(frozen=True)
class Size:
    ranks: int
    layout: str
    windows: int  # of a step: 4 micro-batches of each replica
    step_s: float  # that a step is predicted to take with balanced packing: the host's work is a small part of it
    side_by_side: int


SIZES = (Size(16, "tp=1,cp=2,pp=2,dp=4", 16, 1.0, 4), Size(64, "tp=1,cp=4,pp=2,dp=8", 32, 3.0, 2))


class Case:
    """A number of ranks and a window, with every packing."""

    def __init__(self, build, folder, size, window):
        self.build, self.folder, self.size, self.window = build, folder, size, window
        self.prefix = folder / f"documents-{size.ranks}-{window}"
        tokens = size.windows * (window // SHRINK) * (WARM_STEPS + STEPS + 2)
        write_dataset(self.prefix, skewed_documents(tokens * SHRINK // DOCUMENT_TOKENS, SHRINK))
        answer = json.loads(self.simulator())
        self.predicted = {run["strategy"]: run for run in answer["strategies"]}
        self.scale = size.step_s / self.predicted["balanced"]["time"]["step_s"]
        self.steps = {}

    def simulator(self):
        """What the simulator says, before anything is run."""
        return subprocess.run([self.build / "bin/wlb", "sim", "--trainer", "worker", "--machine", self.folder / "machine.json",
                               "--model", self.folder / "config.json", "--nodes", str(self.size.ranks // 8), "--seq-length",
                               str(self.window // SHRINK), "--global-batch-size", str(self.size.windows), "--layout",
                               self.size.layout, "--lengths", self.prefix, "--strategies", ",".join(PACKINGS), "--steps",
                               str(SIM_STEPS), "--recompute", "none", "--json"],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=RUN_LIMIT_S).stdout

    def run(self, packing, start_s):
        """Trains from start_s on; keeps the steps that count, in the time of the machine file."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            metrics = pathlib.Path(name) / "metrics"
            command = [MPIRUN, str(self.size.ranks), self.build / "tests/wlb-worker-timed", "train", "--model",
                       self.folder / "config.json", "--data-path", self.prefix, "--seq-length", str(self.window // SHRINK),
                       "--global-batch-size", str(self.size.windows), "--micro-batch-size", "1", "--lr", "1e-4", "--threads",
                       "1", "--log-interval", "1000", "--train-iters", str(WARM_STEPS + STEPS), "--machine",
                       self.folder / "machine.json", "--layout", self.size.layout, "--head-stages", "last",
                       "--recompute-granularity", "none", "--transport", "nccl", "--packing", packing, "--cp-sharding",
                       PACKINGS[packing], "--metrics-file", metrics]
            settings = {"TMPDIR": name, "WLB_TIMED_MACHINE": str(self.folder / "machine.json"),
                        "WLB_TIMED_SCALE": str(self.scale), "WLB_TIMED_START": str(start_s), "WLB_TIMED_SKIP": str(WARM_STEPS),
                        "OMP_NUM_THREADS": "1"}
            ended = subprocess.run(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, timeout=RUN_LIMIT_S, check=False)
            if ended.returncode != 0:
                raise RuntimeError(f"{' '.join(map(str, command))}: {ended.stdout}")
            steps = [json.loads(line) for line in metrics.read_text("utf-8").splitlines()]
            self.steps[packing] = steps[WARM_STEPS:]
        print(f"{self.size.ranks} ranks, windows of {self.window}, {packing}: {1000 * self.step_s(packing):.3f} ms, "
              f"predicted {1000 * self.predicted[packing]['time']['step_s']:.3f} ms", file=sys.stderr, flush=True)

    def step_s(self, packing):
        return statistics.mean(step["step_time_s"] for step in self.steps[packing]) / self.scale

    def rate(self, packing):
        """Counted work by second: the packings do not train the same documents in the same steps."""
        return sum(sum(step["rank_work"]) for step in self.steps[packing]) / sum(step["step_time_s"] for step in self.steps[packing])

    def measured_gain(self, packing):
        return self.rate(packing) / self.rate("plain")

    def predicted_gain(self, packing):
        return self.predicted[packing]["utilization"] / self.predicted["plain"]["utilization"]

    def rows(self):
        for packing in PACKINGS:
            steps = self.steps[packing]
            heaviest = statistics.mean(max(step["rank_work"]) * len(step["rank_work"]) / sum(step["rank_work"]) - 1 for step in steps)
            predicted_s, step_s = self.predicted[packing]["time"]["step_s"], self.step_s(packing)
            yield (f"{self.window:,}", packing, f"{1000 * predicted_s:.2f}", f"{1000 * step_s:.2f}",
                   f"{100 * (predicted_s / step_s - 1):+.1f}%", f"{self.predicted_gain(packing):.3f}",
                   f"{self.measured_gain(packing):.3f}", f"{100 * heaviest:.1f}%",
                   f"{statistics.mean(step['held_tokens'] for step in steps):,.0f}")


def measure(cases):
    """Several runs at a time, whose steps begin when all have started: ranks sleep most of the time in their steps."""
    for size in SIZES:
        waiting = [(case, packing) for case in cases if case.size is size for packing in PACKINGS]
        with concurrent.futures.ThreadPoolExecutor(size.side_by_side) as pool:
            for first in range(0, len(waiting), size.side_by_side):
                runs = waiting[first:first + size.side_by_side]
                start_s = time.monotonic() + 1.0 + RANK_START_S * size.ranks * len(runs)
                list(pool.map(lambda each, at=start_s: each[0].run(each[1], at), runs))


PAGE = """# The packings of wlb-worker, step by step

Made by `scripts/bench packing`, which measures everything on this page in one run.

- Machine: {machine}.
- Compiler: {compiler}, release build.

`wlb-worker` trains here on a device for tests ([tests/timed](../../tests/timed/device.h)): operations and messages of
NCCL are queued, and take the time that they take on the machine
[{file}](../../libwlb/machines/{file}.json), whose operations were measured on an H100
and whose links are published ones, times a scale; nothing is computed. Schedule, packing, sharding and order of all calls are
the real ones. Elements have 4 bytes, as the CPU's, and messages the time of 2.

The model is the 7B class of Llama with 4 layers, 8 times narrower, and windows and documents are 8 times shorter, so that attention has
the same share of the FLOPs; the table has the windows before. Documents are skewed as `gen:skewed` of `wlb sim`, the longest of
124,913 tokens; a window that is shorter cuts them. 4 micro-batches of a window on each replica. *predicted*: by
`wlb sim --trainer worker` for this layout, the mean of {sim_steps} steps, written down before the packing was run. *measured*: the mean of
{steps} steps, after {warm}, in which the documents that wait become as many as they stay. Their documents differ, so that
*gain* is in counted work by second, over plain's. *heaviest*: counted work of the heaviest
rank of a step over an equal share, in the mean; a micro-batch has the same on all stages. *held*: tokens that wait for a
later step.
{tables}"""

TABLE = """
## {ranks} ranks, {layout}
Dynamic is {over} than balanced, over the windows.

| window | packing | predicted, ms | measured, ms | error | predicted gain | measured gain | heaviest | held |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def size_table(cases):
    size = cases[0].size
    gains = [case.measured_gain("dynamic") / case.measured_gain("balanced") - 1 for case in cases]
    rows = "\n".join("| " + " | ".join(row) + " |" for case in cases for row in case.rows())
    return TABLE.format(ranks=size.ranks, layout=size.layout, rows=rows,
                        over=", ".join(f"{100 * abs(gain):.1f}% {'faster' if gain > 0 else 'slower'}" for gain in gains))


def main(build):
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        described = json.loads((ROOT / f"libwlb/machines/{MACHINE}.json").read_text(encoding="utf-8"))
        described["element_bytes"] = 4
        for link in ("node_link", "network_link"):
            described[link]["bytes_per_s"] *= 2
        (folder / "machine.json").write_text(json.dumps(described), encoding="utf-8")
        (folder / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
        cases = [Case(pathlib.Path(build), folder, size, window) for size in SIZES for window in WINDOWS]
        measure(cases)
        tables = "".join(size_table([case for case in cases if case.size is size]) for size in SIZES)
    print(PAGE.format(machine=machine(), compiler=compiler(pathlib.Path(build)), file=MACHINE, sim_steps=SIM_STEPS, steps=STEPS,
                      warm=WARM_STEPS, tables=tables), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_packing.py: ended by a signal"))
    main(*sys.argv[1:])
