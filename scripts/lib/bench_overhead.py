#!/usr/bin/env python3
"""Measures what it costs the ranks of wlb-worker to time their calls and to tell wlb-agent of them, and prints
docs/results/overhead.md.
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
LONGEST = 1.005  # a step that is told over one that is not
DOCUMENTS, SHRINK = 20000, 64

MODEL = {"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 2048, "tie_word_embeddings": True}
# Name: hidden size, window, windows of a step, steps of a run.
SIZES = {"short steps": (64, 256, 4, 400), "longer steps": (128, 2048, 8, 40)}


def is_told(step, phase):
    """As in tests/bench/overhead/in_turns.c."""
    return (step.bit_count() + phase) % 2 == 0


class Pairs:
    """Pairs of runs on the same documents: the steps that one of them tells are those that the other does not."""

    def __init__(self, build, folder, name, load, count):
        hidden, window, windows, steps = SIZES[name]
        model = folder / f"{hidden}.json"
        model.write_text(json.dumps({**MODEL, "hidden_size": hidden, "intermediate_size": 8 * hidden // 3}), encoding="utf-8")
        words = ("--model", model.name, "--data-path", "documents", "--seq-length", str(window), "--global-batch-size",
                 str(windows), "--threads", "1", "--layout", f"dp={RANKS}")
        reader = (build / "tests/wlb-read-areas", str(RANKS), "told")
        self.name, self.step_s, self.ratios = name, {True: [], False: []}, []
        for pair in range(count):
            runs = {}
            for phase in (pair % 2, 1 - pair % 2):
                environment = {**ONE_NODE, "WLB_TOLD_PHASE": str(phase)}
                runs[phase] = load.measure(lambda: train(build, folder, RANKS, steps, words, environment, prefix=reader,
                                                         program="tests/wlb-worker-told-in-turns"))[WARM_STEPS:]
            self.take(runs)
            print(name, pair, f"{self.ratios[-1]:.4f}", file=sys.stderr)

    def take(self, runs):
        """How much longer one run is than the other cancels out, since each tells half of the steps."""
        longer = {True: [], False: []}  # by whether run 0 told the step
        for first, second in zip(runs[0], runs[1]):
            told = is_told(first["step"], 0)
            longer[told].append(math.log(first["step_time_s"] / second["step_time_s"]))
            self.step_s[told].append(first["step_time_s"])
            self.step_s[not told].append(second["step_time_s"])
        self.ratios.append(math.exp((statistics.median(longer[True]) - statistics.median(longer[False])) / 2))

    def row(self):
        ratio = statistics.mean(self.ratios)
        error = statistics.stdev(self.ratios) / math.sqrt(len(self.ratios)) if len(self.ratios) > 1 else math.inf
        median_ms = {how: 1e3 * statistics.median(self.step_s[how]) for how in (False, True)}
        return (self.name, f"{median_ms[False]:.3f} ms", f"{median_ms[True]:.3f} ms", f"{ratio:.4f} +- {2 * error:.4f}",
                f"<= {LONGEST}", verdict(ratio + 2 * error <= LONGEST))


PAGE = """# Overhead of recording for wlb-agent

Made by `scripts/bench overhead{pairs_word}`.

- Machine: {machine}.
- Compiler: {compiler}, release build.

Each rank of wlb-worker takes the times of its calls, and writes into an area of memory what it does, its calls, and what it spent in
each step; wlb-agent reads the area once a second. Here a program in the agent's place reads the areas of {ranks} ranks on one core each,
without Slurm, and wlb-worker is one that does this in half of its steps: in the others it takes no times of calls and writes nothing. {pairs}
pairs of runs on the same documents, of which one records the steps that the other does not; so no drift of the machine and no difference
of documents is in the ratio. Of each pair it is the median over steps, without the first {warm}; below is the mean over pairs, with two standard
errors. {load}

| run | step without recording | with recording | ratio | goal | |
|---|---|---|---|---|---|
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
                      pairs_word="" if arguments.pairs == PAIRS else f" --pairs {arguments.pairs}", warm=WARM_STEPS,
                      load=load.sentence(), rows=table(pairs.row() for pairs in measured),
                      sizes=table((name, *size) for name, size in SIZES.items())), end="")


if __name__ == "__main__":
    main()
