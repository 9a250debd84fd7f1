#!/usr/bin/env python3
"""Measures wlb-worker on this machine's CPU and prints docs/results/worker-cpu.md.
Usage: bench_worker.py BUILD_DIR [--llm-c DIR] [--before BUILD_DIR]"""
import argparse
import array
import json
import math
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile

from bench_documents import skewed_documents, write_dataset
from bench_host import commit_of, compiler, machine, verdict
from bench_train import Load, calibrate, train

STEPS = 10
WARM_STEPS = 4  # not counted
REPEATS = 2  # of the same steps, in turns
SPEED_TURNS = 6  # of the 124M model; llm.c has REPEATS of them
REPEATED_MOST = 6  # runs that other programs disturbed

# Balance: documents, window and model of libwlb's benches, the 7B class at 131,072 tokens, 32 times smaller: attention
# has the same share of the work.
WINDOW = 4096
WINDOWS = 16  # of a step
SMALL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 128, "intermediate_size": 344,
         "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 257,
         "max_position_embeddings": WINDOW, "tie_word_embeddings": True}
SHRINK = 32
DOCUMENTS = 60000
HEAD_DIM = SMALL["hidden_size"] // SMALL["num_attention_heads"]
CALIBRATION_S = 30
LAYOUTS = ("dp=8", "cp=8", "cp=2,dp=4", "pp=2,dp=4", "dp=2", "cp=2", "pp=2")
EQUAL_LAYOUTS = ("dp=8", "cp=8", "cp=2,dp=4")
EQUAL_TOKENS = 1024
EQUAL_DOCUMENTS = 1000
PLAIN, BALANCED, DYNAMIC = "plain", "balanced", "dynamic"
LAST_HEAD, BEFORE = "balanced, head on the last stage", "balanced, before"
WAYS = {PLAIN: ("--packing", "plain", "--cp-sharding", "per-sequence"),
        BALANCED: ("--packing", "balanced", "--cp-sharding", "adaptive"),
        DYNAMIC: ("--packing", "dynamic")}
WAYS[LAST_HEAD] = (*WAYS[BALANCED], "--head-stages", "last")  # of a pipeline
WAYS[BEFORE] = WAYS[BALANCED]  # of the build to compare with
TIMED_LAYOUTS = ("dp=2", "cp=2", "pp=2")  # of one rank a core

# Speed: the shape of GPT-2 124M, as llm.c's train_gpt2 has it.
LARGE = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 768, "intermediate_size": 2048,
         "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 50304,
         "max_position_embeddings": 1024, "tie_word_embeddings": True}
GPT2_VOCAB = 50257
LLM_C_STEPS = 10
BATCH_TOKENS = 4 * 64


def write_llm_c_input(folder, tokens):
    """A GPT-2 of random weights and a file of tokens, as llm.c reads them (train_gpt2.c, llmc/dataloader.h)."""
    tokens_folder = folder / "dev/data/tinyshakespeare"
    tokens_folder.mkdir(parents=True)
    for name in ("tiny_shakespeare_train.bin", "tiny_shakespeare_val.bin"):
        with open(tokens_folder / name, "wb") as file:
            array.array("i", [20240520, 1, len(tokens)] + [0] * 253).tofile(file)
            array.array("H", tokens).tofile(file)
    layers, width = LARGE["num_hidden_layers"], LARGE["hidden_size"]
    weights = (LARGE["vocab_size"] + 1024 + layers * (12 * width + 13) + 2) * width
    draw = random.Random(3)
    block = array.array("f", (draw.gauss(0.0, 0.02) for _ in range(1 << 16))).tobytes()
    with open(folder / "gpt2_124M.bin", "wb") as file:
        header = [20240326, 3, 1024, GPT2_VOCAB, layers, 12, width, LARGE["vocab_size"]]
        array.array("i", header + [0] * 248).tofile(file)
        for _ in range(0, weights, 1 << 16):
            file.write(block)


def heaviest(values):
    """The largest of them over an equal share."""
    return max(values) * len(values) / sum(values)


def ranks_of(layout):
    return math.prod(int(ways) for ways in re.findall(r"\d+", layout))


def ways_of(layout, before):
    return tuple(way for way in WAYS if (way != LAST_HEAD or "pp" in layout)
                 and (way != BEFORE or (before and layout in TIMED_LAYOUTS)))


def mean_step(repeats):
    """One step of several runs of the same steps: the mean of what was measured, rank by rank."""
    work = repeats[0]["rank_work"]
    if any(step["rank_work"] != work for step in repeats):
        sys.exit("bench_worker.py: the runs of a layout did not give their ranks the same documents")
    return {"rank_work": work, "tokens": repeats[0]["tokens"],
            "rank_compute_s": [statistics.mean(rank) for rank in zip(*(step["rank_compute_s"] for step in repeats))],
            "step_time_s": statistics.mean(step["step_time_s"] for step in repeats),
            "memory_bytes": max(step["memory_bytes"] for step in repeats),
            "loader_s": statistics.mean(step["parts"]["loader_s"] for step in repeats)}


class Balance:
    """Steps of one layout under several ways, of one dataset."""

    def __init__(self, train_ranks, layout, load, data, ways):
        self.layout, self.ways = layout, ways
        words = ("--model", "small.json", "--data-path", data, "--seq-length", str(WINDOW), "--global-batch-size",
                 str(WINDOWS), "--threads", "1", "--layout", layout)
        runs = {way: [] for way in ways}
        for _ in range(REPEATS):
            for way in ways:
                runs[way].append(load.measure(
                    lambda way=way: train_ranks(way, ranks_of(layout), (*words, *WAYS[way])))[WARM_STEPS:])
        self.steps = {way: [mean_step(step) for step in zip(*runs[way])] for way in ways}
        for row in self.rows():
            print(*row, file=sys.stderr)

    def compute(self, way):
        return [heaviest(step["rank_compute_s"]) - 1 for step in self.steps[way]]

    def flops(self, way):
        return [heaviest(step["rank_work"]) - 1 for step in self.steps[way]]

    def speed(self, way):
        return statistics.median(step["tokens"] / step["step_time_s"] for step in self.steps[way])

    def loader(self, way):
        return sum(step["loader_s"] for step in self.steps[way]) / sum(step["step_time_s"] for step in self.steps[way])

    def memory_bytes(self, way):
        return max(step["memory_bytes"] for step in self.steps[way])

    def rows(self):
        for way in self.ways:
            compute, flops = self.compute(way), self.flops(way)
            yield (self.layout, way, f"{100 * statistics.mean(compute):.1f}%", f"{100 * max(compute):.1f}%",
                   f"{100 * statistics.mean(flops):.1f}%", f"{self.speed(way):,.0f}",
                   f"{self.speed(way) / self.speed(self.ways[0]):.2f}", f"{100 * self.loader(way):.2f}%",
                   f"{self.memory_bytes(way) / 1e6:.1f} MB")


def balance_goals(measured):
    for balance in measured:
        if ranks_of(balance.layout) != 8:
            continue
        plain, over = (statistics.mean(balance.compute(way)) for way in (PLAIN, BALANCED))
        yield (f"compute of the heaviest of 8 ranks over an equal share, {balance.layout}", f"plain {100 * plain:.1f}%",
               f"{100 * over:.1f}%", "<= 3%", verdict(over <= 0.03))
        for name, of, of_steps, most in (("counted, no document delayed", balance.flops, statistics.mean, 0.01),
                                         ("measured, median of steps", balance.compute, statistics.median, 0.015)):
            beside, over = (of_steps(of(way)) for way in (BALANCED, DYNAMIC))
            yield (f"the same {name}, {balance.layout}", f"balanced {100 * beside:.1f}%", f"dynamic {100 * over:.1f}%",
                   f"<= {100 * most:g}%", verdict(over <= most))
    for balance in measured:
        if BEFORE not in balance.ways:
            continue
        for way in (BALANCED, LAST_HEAD) if LAST_HEAD in balance.ways else (BALANCED,):
            name = balance.layout + way.removeprefix(BALANCED)
            speed, more = (of(way) / of(BEFORE) for of in (balance.speed, balance.memory_bytes))
            yield (f"tokens/s, {name}", f"before {balance.speed(BEFORE):,.0f}",
                   f"{balance.speed(way):,.0f}, {speed:.2f}x", "not slower", verdict(speed >= 1))
            yield (f"most memory of a rank's device, {name}", f"before {balance.memory_bytes(BEFORE) / 1e6:.1f} MB",
                   f"{balance.memory_bytes(way) / 1e6:.1f} MB, {more:.2f}x", "no more", verdict(more <= 1))


def run_llm_c(program, folder):
    """Seconds of each step but the first, and the peak of memory. Ended before it writes samples of text."""
    process = subprocess.Popen(["stdbuf", "-oL", program], cwd=folder, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "2"})
    seconds = []
    for line in process.stdout:
        found = re.match(r"step \d+: .*\(took ([0-9.]+) ms\)", line)
        if found:
            seconds.append(float(found.group(1)) / 1000)
        if len(seconds) > LLM_C_STEPS:
            process.kill()
    _, _, usage = os.wait4(process.pid, 0)
    if len(seconds) <= LLM_C_STEPS:
        sys.exit(f"bench_worker.py: {program} ended after {len(seconds)} steps")
    return seconds[1:], usage.ru_maxrss * 1024


class Speed:
    """Our program, that of the build before and llm.c's in turns, as far as they are given."""

    def __init__(self, build, folder, llm_c, before):
        words = ("--model", "large.json", "--data-path", "tokens", "--seq-length", "64", "--global-batch-size", "4",
                 "--micro-batch-size", "4", "--packing", "plain", "--threads", "2", "--layout", "tp=1,cp=1,pp=1,dp=1")
        self.ours, self.theirs, self.our_bytes, self.their_bytes = [], [], 0, 0
        self.ratios, self.before, self.bytes_before = [], [], 0
        for turn in range(SPEED_TURNS):
            steps, run = train(build, folder, 1, STEPS, words)
            ours = [step["step_time_s"] for step in steps[WARM_STEPS:]]
            self.ours += ours
            self.our_bytes = max(self.our_bytes, run.peak_bytes)
            if before:
                steps, run = train(before, folder, 1, STEPS, words)
                theirs = [step["step_time_s"] for step in steps[WARM_STEPS:]]
                self.before += theirs
                self.ratios.append(statistics.median(theirs) / statistics.median(ours))
                self.bytes_before = max(self.bytes_before, run.peak_bytes)
            if llm_c and turn < REPEATS:
                seconds, peak = run_llm_c(llm_c / "train_gpt2", folder)
                self.theirs += seconds
                self.their_bytes = max(self.their_bytes, peak)

    def goals(self):
        ours, bytes_ours = BATCH_TOKENS / statistics.median(self.ours), self.our_bytes
        if self.before:
            before = BATCH_TOKENS / statistics.median(self.before)
            ratio, error = statistics.mean(self.ratios), statistics.stdev(self.ratios) / math.sqrt(SPEED_TURNS)
            yield ("tokens/s of the 124M model", f"before {before:.0f}", f"{ours:.0f}, {ratio:.3f}x +- {2 * error:.3f}",
                   "not slower", verdict(ratio + 2 * error >= 1))
            yield ("peak memory of it", f"before {self.bytes_before / 1e9:.2f} GB",
                   f"{bytes_ours / 1e9:.2f} GB, {bytes_ours / self.bytes_before:.2f}x", "no more",
                   verdict(bytes_ours <= self.bytes_before))
        if not self.theirs:
            yield ("tokens/s of the 124M model", "not measured", f"{ours:.0f}", ">= 3x llm.c", "-")
            return
        theirs, bytes_theirs = BATCH_TOKENS / statistics.median(self.theirs), self.their_bytes
        yield ("tokens/s of the 124M model, 2 threads", f"llm.c {theirs:.0f}", f"{ours:.0f}, {ours / theirs:.2f}x",
               ">= 3x", verdict(ours >= 3 * theirs))
        yield ("peak memory of it", f"llm.c {bytes_theirs / 1e9:.2f} GB",
               f"{bytes_ours / 1e9:.2f} GB, {bytes_ours / bytes_theirs:.2f}x", "<= 1.5x",
               verdict(bytes_ours <= 1.5 * bytes_theirs))


PAGE = """# wlb-worker on the CPU: what was measured

Made by `scripts/bench worker --llm-c DIR --before DIR`, which measures everything on this page in one run.

- Machine: {machine}.
- Compiler: {compiler}, release build.{before}
- Calibration, with which ranks weigh documents (`--machine`): `wlb calibrate` on {cores} ranks, one a core, {calibration} s,
  before everything else:

```
{calibrated}
```

| measure | beside | ours | goal | |
|---|---|---|---|---|
{goals}

## Balance
{windows} windows of {window} tokens a step; {layers} layers of hidden size {hidden}, float32, one thread a rank. Documents are skewed
as libwlb's generator has them; their lengths, the window and the hidden size are 32 times smaller than those of the 7B
class at 131,072 tokens, so that attention has the same share of the work. *plain* concatenates and cuts, and shards per
sequence; *balanced* is the default, sharding adaptive; *dynamic* delays no document, and each is on as many ranks as it needs. {repeats}
runs of each in turns, steps {first} to {steps}, of the same documents: a
number of a step and rank is the mean of the runs. More ranks than cores share one core: the two cores of a virtual
machine may differ in speed by more than the ranks in work. {load}

*compute over equal*: measured compute of the heaviest rank of a step over the mean rank's; mean over steps, and the
worst. Compute is the processor time of a rank's passes: ranks that share a core do not disturb it. *FLOPs* is the
same of the counted operations. *tokens/s* is the median over steps. The work of 8 ranks on one core is done one after the
other whoever has it: balance shows in the step's time only in the last three layouts, of one rank a core. *head on the last stage* is
`--head-stages last`; without it all stages share the head where that is predicted to be faster. *memory* is the most
that a rank has allocated on its device.

| layout | packing | compute over equal | worst step | FLOPs over equal | tokens/s | of plain's | loader, of the step | memory |
|---|---|---|---|---|---|---|---|---|
{rows}

How much of it is the measure's own: the same of documents that all have {equal_tokens} tokens, so that every rank has the same
work.

| layout | packing | compute over equal | worst step | FLOPs over equal | tokens/s | of plain's | loader, of the step | memory |
|---|---|---|---|---|---|---|---|---|
{equal}

## Speed
A model of the shape of GPT-2 124M: 12 layers, 12 heads, hidden size 768, 50,304 rows of the tied embedding (intermediate
size 2,048 for the three matrices of SwiGLU, where GPT-2 has 3,072 for two). 4 x 64 tokens a step, float32, 2 threads; the
same tokens for llm.c's `train_gpt2`, built by its `make train_gpt2`, with random weights in its format, which the bench
writes. In turns; the median over {ours} steps of ours and {theirs} of llm.c's, the first ones left out. A step is forward,
backward and update in both. The ratio to *before* is the mean of those of {turns} turns, with two standard errors; it is slower
where 1 is above these.
"""


def table(rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--llm-c", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    return parser.parse_args()


def main(build, llm_c, before):
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        (folder / "small.json").write_text(json.dumps(SMALL), encoding="utf-8")
        (folder / "large.json").write_text(json.dumps(LARGE), encoding="utf-8")
        if before:  # each build reads its own file
            machine_before = calibrate(before, folder, os.cpu_count(), CALIBRATION_S, HEAD_DIM)[0].rename(
                folder / "machine-before.json")
        machine_file, calibrated = calibrate(build, folder, os.cpu_count(), CALIBRATION_S, HEAD_DIM)
        write_dataset(folder / "skewed", skewed_documents(DOCUMENTS, SHRINK))
        draw = random.Random(2)
        windows = [draw.choices(range(GPT2_VOCAB), k=65) for _ in range(400)]
        write_dataset(folder / "tokens", windows)
        if llm_c:
            write_llm_c_input(folder, [token for window in windows for token in window])
        speed = Speed(build, folder, llm_c, before)
        draw = random.Random(4)
        write_dataset(folder / "equal", [draw.choices(range(256), k=EQUAL_TOKENS + 1) for _ in range(EQUAL_DOCUMENTS)])
        load = Load(REPEATED_MOST)

        def train_ranks(way, ranks, words):
            program, machine_of = (before, machine_before) if way == BEFORE else (build, machine_file)
            return train(program, folder, ranks, STEPS, (*words, "--machine", machine_of),
                         one_core=ranks > os.cpu_count())

        measured = [Balance(train_ranks, layout, load, "skewed", ways_of(layout, before)) for layout in LAYOUTS]
        equal = [Balance(train_ranks, layout, load, "equal", (BALANCED,)) for layout in EQUAL_LAYOUTS]
    compared = (f"\n- Commit {commit_of(build)}; *before* is commit {commit_of(before)}, built alike, with a calibration "
                "of its own." if before else "")
    print(PAGE.format(machine=machine(), compiler=compiler(build), before=compared,
                      goals=table([*balance_goals(measured), *speed.goals()]),
                      rows=table(row for balance in measured for row in balance.rows()),
                      equal=table(row for balance in equal for row in balance.rows()),
                      equal_tokens=EQUAL_TOKENS, repeats=REPEATS,
                      windows=WINDOWS, window=WINDOW,
                      layers=SMALL["num_hidden_layers"], hidden=SMALL["hidden_size"], first=WARM_STEPS + 1,
                      steps=STEPS, cores=os.cpu_count(), calibration=CALIBRATION_S, calibrated=calibrated.strip(),
                      load=load.sentence(), ours=len(speed.ours), theirs=len(speed.theirs), turns=SPEED_TURNS), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_worker.py: ended by a signal"))
    main(**vars(read_arguments()))
