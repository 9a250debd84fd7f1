#!/usr/bin/env python3
"""Measures what it costs the ranks of wlb-worker to tell wlb-agent what they do, and prints docs/results/overhead.md.
Usage: bench_overhead.py BUILD_DIR [--pairs N]"""
import argparse
import json
import math
import pathlib
import statistics
import sys
import tempfile

from bench_documents import skewed_documents, write_dataset
from bench_host import compiler, machine, verdict
from bench_train import ONE_NODE, Load, train

RANKS = 2
PAIRS = 20  # of runs, where no other number is given
REPEATED_MOST = 2  # for each pair: runs that other programs disturbed
WARM_STEPS = 8  # not counted
LONGEST = 1.005  # a step with the areas over one without
DOCUMENTS, SHRINK = 20000, 64

MODEL = {"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 2048, "tie_word_embeddings": True}
# Name: hidden size, window, windows of a step, steps of a run.
SIZES = {"short steps": (64, 256, 4, 400), "longer steps": (128, 2048, 8, 24)}


class Pairs:
    """Runs with and without areas in turns, one of each a pair, the first of a pair in turns too."""

    def __init__(self, build, folder, name, load, count):
        hidden, window, windows, steps = SIZES[name]
        model = folder / f"{hidden}.json"
        model.write_text(json.dumps({**MODEL, "hidden_size": hidden, "intermediate_size": 8 * hidden // 3}), encoding="utf-8")
        words = ("--model", model.name, "--data-path", "documents", "--seq-length", str(window), "--global-batch-size",
                 str(windows), "--threads", "1", "--layout", f"dp={RANKS}")
        reader = (build / "tests/wlb-read-areas", str(RANKS), "told")
        self.name, self.told, self.step_s, self.ratios = name, [], {True: [], False: []}, []
        for pair in range(count):
            median_s = {}
            for with_areas in (pair % 2 == 0, pair % 2 == 1):
                measured = load.measure(lambda: train(build, folder, RANKS, steps, words, ONE_NODE,
                                                      prefix=reader if with_areas else ()))[WARM_STEPS:]
                median_s[with_areas] = statistics.median(step["step_time_s"] for step in measured)
                self.step_s[with_areas].append(median_s[with_areas])
                if with_areas:
                    self.told.append(len((folder / "told").read_text(encoding="utf-8").splitlines()) / RANKS / steps)
            self.ratios.append(median_s[True] / median_s[False])
            print(name, pair, f"{self.ratios[-1]:.4f}", file=sys.stderr)

    def row(self):
        ratio = statistics.mean(self.ratios)
        error = statistics.stdev(self.ratios) / math.sqrt(len(self.ratios)) if len(self.ratios) > 1 else math.inf
        median_ms = {how: 1e3 * statistics.median(self.step_s[how]) for how in (False, True)}
        return (self.name, f"{median_ms[False]:.3f} ms", f"{median_ms[True]:.3f} ms", f"{ratio:.4f} +- {2 * error:.4f}",
                f"{100 * statistics.mean(self.told):.0f} %", f"<= {LONGEST}", verdict(ratio + 2 * error <= LONGEST))


PAGE = """# What telling wlb-agent costs the ranks

Made by `scripts/bench overhead{pairs_word}`.

- Machine: {machine}.
- Compiler: {compiler}, release build.

Each rank of wlb-worker writes into an area of memory what it does, its calls, and what it spent in each step, and wlb-agent reads it
once a second. Here a program in the agent's place reads the areas, of {ranks} ranks on one core each, without Slurm. In the runs beside
them the ranks find no node page: they keep their calls in memory of their own, for the watchdog, and tell no step. {pairs} pairs of
runs, in turns; of each run the median step, after {warm}. The ratio is the mean over pairs, with two standard errors. {load}

*told* is the share of steps that ranks tell: of short steps those that are a multiple of the stride.

| run | step without | with areas | ratio | told | goal | |
|---|---|---|---|---|---|---|
{rows}

Models of 2 layers, float32, `dp={ranks}`, one thread a rank; skewed documents as libwlb's generator has them.

| run | hidden size | window | windows of a step | steps of a run |
|---|---|---|---|---|
{sizes}
"""


def table(rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    arguments = parser.parse_args()
    load = Load(REPEATED_MOST * arguments.pairs)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_dataset(folder / "documents", skewed_documents(DOCUMENTS, SHRINK))
        measured = [Pairs(arguments.build.resolve(), folder, size, load, arguments.pairs) for size in SIZES]
    print(PAGE.format(machine=machine(), compiler=compiler(arguments.build), ranks=RANKS, pairs=arguments.pairs,
                      pairs_word="" if arguments.pairs == PAIRS else f" --pairs {arguments.pairs}", warm=f"{WARM_STEPS} steps",
                      load=load.sentence(), rows=table(pairs.row() for pairs in measured),
                      sizes=table((name, *size) for name, size in SIZES.items())), end="")


if __name__ == "__main__":
    main()
