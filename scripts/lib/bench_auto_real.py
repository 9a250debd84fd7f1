#!/usr/bin/env python3
"""Trains every layout of two ranks on this machine and compares its step time with the planner's prediction; prints a
section of docs/results/auto.md. Usage: bench_auto_real.py BUILD_DIR"""
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile

from bench_documents import skewed_documents, write_dataset
from bench_host import compiler, machine, verdict
from bench_train import ONE_NODE, Load, calibrate, train

RANKS = 2
STEPS = 30      # at least
WINDOWS = 200   # of all steps, at least: the mean step is predicted, and few windows have too few of the long documents
WARM_STEPS = 4  # not counted
ROUNDS = 2      # of a calibration and a run of every layout: the speed of the machine changes from minute to minute
AGREE = 0.05    # rounds that differ by more are decided by one more
TURNS = 3       # of auto's choice and of what was faster in the rounds, one after the other
CALIBRATION_S = 30
HEAD_DIM = 64
NEAR = 0.05       # auto's choice may be slower than the fastest layout by this share
ERROR = 0.15      # of a predicted step time
REPEATED_MOST = 12  # runs that other programs disturbed


def model(hidden, mlp, layers, vocabulary, window):
    heads = hidden // HEAD_DIM
    return {"model_type": "llama", "hidden_act": "silu", "hidden_size": hidden, "intermediate_size": mlp,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
            "vocab_size": vocabulary, "max_position_embeddings": window, "tie_word_embeddings": True}


def uniform_documents(count, least, most):
    draw = random.Random(2)
    return [draw.choices(range(256), k=draw.randint(least, most) + 1) for _ in range(count)]


def short():
    return uniform_documents(4000, 16, 256)


def long():
    return uniform_documents(400, 1600, 2400)


def skewed():
    return skewed_documents(8000, 128)


# What is trained: a name, the model, its documents, and the windows of a step.
PAIRS = (("narrow, short documents", model(128, 352, 8, 1024, 256), short, 8),
         ("deep, short documents", model(128, 256, 24, 1024, 256), short, 4),
         ("large vocabulary, short documents", model(128, 352, 4, 16384, 256), short, 4),
         ("narrow, long documents", model(128, 352, 4, 1024, 2048), long, 2),
         ("deep, skewed documents", model(128, 256, 16, 1024, 1024), skewed, 2),
         ("wide, skewed documents", model(256, 704, 6, 4096, 1024), skewed, 2))
LAYOUTS = (("tp=2,cp=1,pp=1,dp=1", 1), ("tp=1,cp=2,pp=1,dp=1", 1), ("tp=1,cp=1,pp=2,dp=1", 1),
           ("tp=1,cp=1,pp=2,dp=1", 2), ("tp=1,cp=1,pp=1,dp=2", 1))


class Plan:
    """A plan of the planner: a layout, its chunks and windows of a micro-batch, and the predicted step time."""

    def __init__(self, told, windows):
        layout = told["layout"]
        self.layout = ",".join(f"{name}={layout[name]}" for name in ("tp", "cp", "pp", "dp"))
        self.interleave, self.recompute = told["interleave"], told["recompute"]
        self.head_stages = told["head_stages"]
        self.accounts = [f"--account-for-{end}-in-pipeline-split" for end in ("embedding", "loss")
                         if told[f"account_for_{end}"]]
        self.windows = windows // (told["micro_batches"] * layout["dp"])
        self.predictions_s = [told["time"]["step_s"]]
        self.runs = []  # seconds of the steps of each

    def key(self):
        return self.layout, self.interleave, self.windows, self.recompute, self.head_stages, self.accounts

    def words(self):
        return ("--layout", self.layout, "--num-virtual-stages-per-pipeline-rank", str(self.interleave),
                "--micro-batch-size", str(self.windows), "--recompute-granularity", self.recompute,
                "--head-stages", self.head_stages, *self.accounts)

    def predicted_s(self):
        return statistics.median(self.predictions_s)

    def measured_s(self):
        """The mean step, of which each is the median of the runs: they train the same documents."""
        return statistics.mean(map(statistics.median, zip(*self.runs)))

    def error(self):
        return self.predicted_s() / self.measured_s() - 1

    def runs_agree(self):
        return agree([statistics.mean(run) for run in self.runs])


def agree(values):
    return max(values) <= (1 + AGREE) * min(values)


class Pair:
    """A model and documents, the plans of its layouts, and that which auto takes."""

    def __init__(self, build, folder, machine_file, pair):
        self.build, self.folder, self.machine_file = build, folder, machine_file
        self.name, self.model, documents, self.windows = pair
        self.steps = max(STEPS, WINDOWS // self.windows)
        self.turns = []  # of each the step of auto's choice over that of what was faster in the rounds
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(self.model), encoding="utf-8")
        write_dataset(folder / "documents", documents())
        self.plans = [self.ask(*layout) for layout in LAYOUTS]
        self.chosen = self.ask()
        same = [plan for plan in self.plans if plan.key() == self.chosen.key()]
        if same:
            self.chosen = same[0]
        else:
            self.plans.append(self.chosen)

    def trained(self):
        return ("--model", "config.json", "--seq-length", str(self.model["max_position_embeddings"]),
                "--global-batch-size", str(self.windows))

    def ask(self, layout=None, interleave=None, windows=1, recompute="none"):
        """The planner's answer: for a layout with micro-batches of so many windows or, without a layout, for auto."""
        held = [word for part in layout.split(",") for word in ("--" + part[:2], part[3:])] if layout else []
        if layout:
            held += ["--interleave", str(interleave), "--micro-batch-size", str(windows), "--recompute", recompute]
        command = [self.build / "bin/wlb", "plan", "--trainer", "worker", *self.trained(), "--lengths", "documents",
                   "--machine", self.machine_file, "--nodes", "1", "--gpus-per-node", str(RANKS), "--json", *held]
        answer = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            sys.exit(f"bench_auto_real.py: {' '.join(map(str, command))}: {answer.stderr}")
        return Plan(json.loads(answer.stdout), self.windows)

    def measure(self, plan, load):
        words = (*self.trained(), "--data-path", "documents", "--threads", "1", "--machine", self.machine_file,
                 *plan.words())
        steps = load.measure(lambda: train(self.build, self.folder, RANKS, self.steps, words, ONE_NODE))
        plan.runs.append([step["step_time_s"] for step in steps[WARM_STEPS:]])

    def predict_again(self, machine_file):
        """With another calibration, for the plans that there are."""
        self.machine_file = machine_file
        for plan in self.plans:
            again = self.ask(plan.layout, plan.interleave, plan.windows, plan.recompute)
            if again.key() == plan.key():  # the planner may divide layers in another way
                plan.predictions_s += again.predictions_s

    def predictions_agree(self):
        return all(agree(plan.predictions_s) for plan in self.plans)

    def fastest(self):
        return min(self.plans, key=Plan.measured_s)

    def compare(self, load):
        """Trains auto's choice, and what was faster, in turns: the machine has the same speed for both."""
        other = self.fastest()
        for _ in range(TURNS if other is not self.chosen else 0):
            for plan in (self.chosen, other):
                self.measure(plan, load)
            chosen_s, other_s = (statistics.mean(plan.runs[-1]) for plan in (self.chosen, other))
            self.turns.append(chosen_s / other_s)

    def regret(self):
        return statistics.median(self.turns) - 1 if self.turns else 0.0

    def rows(self):
        for plan in self.plans:
            marks = [mark for mark, is_so in (("auto", plan is self.chosen), ("fastest", plan is self.fastest())) if is_so]
            yield (self.name, plan.layout, str(plan.interleave), plan.head_stages, str(plan.windows), f"{plan.predicted_s():.4f} s",
                   f"{plan.measured_s():.4f} s", f"{100 * plan.error():+.1f}%", verdict(abs(plan.error()) <= ERROR),
                   ", ".join(marks))


SECTION = """## Two ranks that compute
Made by `scripts/lib/bench_auto_real.py`: two ranks of one thread, one a core. {rounds} rounds, since the speed of a virtual
machine changes from minute to minute: in each `wlb calibrate` with them, {calibration} s, and then each layout of each pair
trained {steps} steps, or more, so that they have {windows} windows. Where the rounds of a layout, or the predictions from the
files, differ by more than {agree:.0%}, one more decides: {again} layouts were run again{calibrated_again}. Where auto's choice is not
the fastest then, both are trained {turns} times more, in turns, and *auto over the fastest* is the median of their ratios: speeds of
other minutes are not in it. The first calibration:

```
{calibrated}
```

The measured step is the mean over the steps, without the first {warm}, of the median of the rounds, which train the same
documents. Predicted is the answer of `wlb plan --trainer worker --machine FILE`, the median over the files of the rounds, for this
layout with micro-batches of one window; *auto* is what it answers with the first file where nothing is held (with a row of its
own where that has other settings). No constant was
set by these rows; but earlier runs of these pairs showed which times the model and the calibration lacked: those of rotary
angles, of collectives by their bytes, of operations with exponentials and roots, and of products whose weights and
results come from memory. Ranks exchange messages over shared memory. {load}

| measure | measured | goal | |
|---|---|---|---|
{goals}

| model and documents | layout | chunks | head on stages | windows of a micro-batch | predicted | measured | error | within {error:.0%} | |
|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


def table(rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def goals(pairs):
    for pair in pairs:
        yield (f"auto over the fastest, {pair.name}", f"{100 * pair.regret():.1f}%", f"<= {NEAR:.0%}",
               verdict(pair.regret() <= NEAR))
    errors = [plan.error() for pair in pairs for plan in pair.plans]
    met = sum(abs(error) <= ERROR for error in errors)
    mean, bias = statistics.mean(map(abs, errors)), statistics.mean(errors)
    yield (f"predicted step times: {met} of {len(errors)} within {ERROR:.0%}",
           f"{100 * max(errors, key=abs):+.1f}% at worst, {100 * mean:.1f}% in the mean, bias {100 * bias:+.1f}%",
           f"each within {ERROR:.0%}", verdict(met == len(errors)))


def measure_rounds(build, folder, pairs, machine_file, load):
    """Measures every layout ROUNDS times, each with another calibration from the second on."""
    for turn in range(ROUNDS):
        for pair in pairs:
            if turn > 0:
                pair.predict_again(machine_file)
            for plan in pair.plans:
                pair.measure(plan, load)
        if turn + 1 < ROUNDS:
            machine_file, _ = calibrate(build, folder, RANKS, CALIBRATION_S, HEAD_DIM)


def decide_doubtful(build, folder, pairs, load):
    """One more round where the rounds differ; returns how many layouts were run again, and whether there was a calibration."""
    doubtful = [(pair, plan) for pair in pairs for plan in pair.plans if not plan.runs_agree()]
    for pair, plan in doubtful:
        pair.measure(plan, load)
    if all(pair.predictions_agree() for pair in pairs):
        return len(doubtful), False
    machine_file, _ = calibrate(build, folder, RANKS, CALIBRATION_S, HEAD_DIM)
    for pair in pairs:
        pair.predict_again(machine_file)
    return len(doubtful), True


def section(build):
    """Measures and returns the section, in Markdown."""
    build, load = pathlib.Path(build), Load(REPEATED_MOST)
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        machine_file, calibrated = calibrate(build, folder, RANKS, CALIBRATION_S, HEAD_DIM)
        pairs = [Pair(build, folder / str(number), machine_file, pair) for number, pair in enumerate(PAIRS)]
        measure_rounds(build, folder, pairs, machine_file, load)
        again, is_calibrated_again = decide_doubtful(build, folder, pairs, load)
        for pair in pairs:
            pair.compare(load)
    return SECTION.format(rounds=ROUNDS, turns=TURNS, agree=AGREE, again=again, calibration=CALIBRATION_S, calibrated=calibrated.strip(),
                          calibrated_again=", and there was a third calibration" if is_calibrated_again else "",
                          steps=STEPS, windows=WINDOWS, warm=WARM_STEPS, load=load.sentence(), goals=table(goals(pairs)), error=ERROR,
                          rows=table(row for pair in pairs for row in pair.rows()))


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_auto_real.py: ended by a signal"))
    print(f"{machine()}; {compiler(sys.argv[1])}, release build\n\n{section(sys.argv[1])}", end="")
