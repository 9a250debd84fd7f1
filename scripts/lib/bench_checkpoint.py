#!/usr/bin/env python3
"""Measures what checkpoints take of training, and how fast they are written, and prints docs/results/checkpoint.md.
Usage: bench_checkpoint.py BUILD_DIR [--before BUILD_DIR] [--timed]

With --timed it measures one section, many ranks on a timed device with the two builds, and keeps what the page has else; without it keeps
that section."""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bench_checkpoint_model as model
import bench_checkpoint_timed as timed
from bench_checkpoint_ranks import ManyShards
from bench_documents import skewed_documents, write_dataset
from bench_host import commit_of, compiler, machine, verdict
from bench_section import Section
from bench_train import ONE_NODE, ROOT, Load, Run, launched

TIMED = Section(ROOT / "docs/results/checkpoint.md", timed.TITLE)
RANKS = 2
ROUNDS = 3
REPEATED_MOST = 3  # runs that other programs disturbed
INTERVAL = 20  # steps between saves
FIRST, LAST, STEPS = 10, 50, 52  # a run is timed from the end of the first to that of the last; it saves after STEPS, too
WINDOW, WINDOWS = 512, 2
DOCUMENTS, SHRINK = 4000, 8
MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 257, "max_position_embeddings": WINDOW,
         "tie_word_embeddings": True}
BLOCKED_MOST, LONGEST, MEMORY_WITHIN = 0.01, 1.03, 0.1

WRITERS = (1, 2, 4, 8, 16)
WRITE_BYTES = 256 << 20
WRITE_ROUNDS, LIMITED_ROUNDS = 9, 2
LIMIT_BYTES_S = 50e6  # of each writer
SLOWEST = 0.8  # of dd
OURS, BEFORE, DCP = "wlb-worker", "before", "DCP"


class Arrivals(threading.Thread):
    """The lines that a program writes to `into`, each with the time at which it came."""

    def __init__(self):
        super().__init__(daemon=True)
        self.out, self.into = os.pipe()
        self.lines = []
        self.start()

    def run(self):
        with open(self.out, encoding="utf-8") as file:
            self.lines = [(time.monotonic(), line) for line in file]

    def end(self):
        os.close(self.into)
        self.join()
        return self.lines


class Training:
    """A run: its time between two steps, and of the saves in it what rank 0 says of them."""

    STEP = re.compile(r"step (\d+)/\d+ \|")
    SAVED = re.compile(r"step (\d+) \| checkpoint .* \| (\S+) MB \| (\S+) s(?: \| stalled (\S+) s)?$")

    def __init__(self, lines, run):
        ended = {int(match[1]): at for at, line in lines if (match := self.STEP.match(line))}
        saves = [match for _, line in lines if (match := self.SAVED.match(line)) and FIRST < int(match[1]) <= LAST]
        self.whole_s = ended[LAST] - ended[FIRST]
        self.bytes = [1e6 * float(save[2]) for save in saves]
        self.durable_s = [float(save[3]) for save in saves]
        self.stalled_s = [float(save[4] or save[3]) for save in saves]  # where it says none all of it is one
        self.peak_bytes = run.peak_bytes

    def blocked(self):
        return sum(self.stalled_s) / self.whole_s


class Trainer:
    """Runs without and with saves, of `command`, a function of the folder of the checkpoints or None."""

    def __init__(self, name, command):
        self.name, self.command, self.runs = name, command, {False: [], True: []}

    def run(self, folder, saves, load):
        self.runs[saves].append(load.measure(lambda: self.once(folder, folder / "saved" if saves else None)))
        ran = self.runs[saves][-1]
        print(self.name, "with saves" if saves else "without", f"{ran.whole_s:.2f} s, blocked {100 * ran.blocked():.2f}%", file=sys.stderr)

    def once(self, folder, saved):
        os.sync()  # what the run before wrote
        arrivals = Arrivals()
        run = Run(self.command(saved), folder, arrivals.into, ONE_NODE)
        training = Training(arrivals.end(), run)
        shutil.rmtree(folder / "saved", ignore_errors=True)
        return training, run

    def ratios(self):
        return [saving.whole_s / plain.whole_s for plain, saving in zip(self.runs[False], self.runs[True])]

    def blocked(self):
        return statistics.median(run.blocked() for run in self.runs[True])

    def of_saves(self, field):
        return statistics.median(value for run in self.runs[True] for value in getattr(run, field))

    def peak_bytes(self, saves):
        return statistics.median(run.peak_bytes for run in self.runs[saves])

    def row(self):
        step_s = statistics.median(run.whole_s for run in self.runs[False]) / (LAST - FIRST)
        ratios = self.ratios()
        return (self.name, f"{step_s:.3f} s", f"{1e-6 * self.of_saves('bytes'):.1f} MB", f"{self.of_saves('stalled_s'):.3f} s",
                f"{self.of_saves('durable_s'):.2f} s", f"{100 * self.blocked():.2f}%", f"{statistics.median(ratios):.3f}",
                ", ".join(f"{ratio:.3f}" for ratio in ratios), *(f"{1e-6 * self.peak_bytes(saves):.0f} MB" for saves in (False, True)))


def wlb_worker(build):
    words = (build / "bin/wlb-worker", "train", "--model", "model.json", "--data-path", "documents", "--seq-length", str(WINDOW),
             "--global-batch-size", str(WINDOWS), "--train-iters", str(STEPS), "--lr", "1e-4", "--threads", "1", "--layout",
             f"dp={RANKS}", "--log-interval", "1")
    return lambda saved: launched(RANKS, (*words, *(("--save", saved, "--save-interval", str(INTERVAL)) if saved else ())))


def dcp(venv):
    words = ("env", "OMP_NUM_THREADS=1", f"{venv}/bin/torchrun", "--standalone", f"--nproc-per-node={RANKS}",
             ROOT / "tests/bench/checkpoint/dcp_trainer.py", "model.json", str(STEPS), str(WINDOW), str(WINDOWS), str(INTERVAL))
    return lambda saved: (*words, *((saved,) if saved else ()))


def measure_training(trainers, folder, load):
    """In turns; every other round in the opposite order."""
    (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")
    write_dataset(folder / "documents", skewed_documents(DOCUMENTS, SHRINK))
    turns = [(trainer, saves) for trainer in trainers for saves in (False, True)]
    for number in range(ROUNDS):
        for trainer, saves in turns[::-1] if number % 2 else turns:
            trainer.run(folder, saves, load)
    sizes = [trainer.of_saves("bytes") for trainer in trainers]
    if max(sizes) > 1.02 * min(sizes):
        sys.exit(f"bench_checkpoint.py: the trainers save other states, of {sizes} bytes")


class Writes:
    """Rates, bytes/s, at which the same bytes are written: by dd, and by so many writers of wlb-write-shards."""

    def __init__(self, build, folder):
        self.program, self.folder = build / "tests/wlb-write-shards", folder
        self.source, self.target = folder / "source", folder / "written"
        self.source.write_bytes(os.urandom(WRITE_BYTES))
        self.dd, self.free, self.limited = [], {n: [] for n in WRITERS}, {n: [] for n in WRITERS}
        for number in range(WRITE_ROUNDS):
            self.dd.append(self.rate(self.time_dd))
            for writers in WRITERS[::-1] if number % 2 else WRITERS:
                self.free[writers].append(self.rate(lambda writers=writers: self.time_shards(writers)))
        for _ in range(LIMITED_ROUNDS):
            for writers in WRITERS:
                self.limited[writers].append(self.rate(lambda writers=writers: self.time_shards(writers, str(LIMIT_BYTES_S))))

    def rate(self, timed):
        os.sync()
        seconds = timed()
        if self.target.is_dir():
            shutil.rmtree(self.target)
        else:
            self.target.unlink()
        return WRITE_BYTES / seconds

    def time_dd(self):
        began_s = time.monotonic()
        subprocess.run(["dd", f"if={self.source}", f"of={self.target}", "bs=4M", "conv=fsync", "status=none"], check=True)
        return time.monotonic() - began_s

    def time_shards(self, writers, *limit):
        command = [self.program, self.target, str(writers), str(WRITE_BYTES), *limit]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    def of_dd(self, writers):
        """Of each round's own dd, since a disk that others share changes its speed."""
        return statistics.median(ours / dd for ours, dd in zip(self.free[writers], self.dd))

    def rises(self):
        rates = [statistics.median(self.limited[writers]) for writers in WRITERS]
        return all(more > less for less, more in zip(rates, rates[1:]))

    def rows(self):
        yield ("dd", f"{1e-6 * statistics.median(self.dd):.0f}", f"{1e-6 * min(self.dd):.0f} to {1e-6 * max(self.dd):.0f}", "1", "-")
        for writers in WRITERS:
            rates = self.free[writers]
            yield (writers, f"{1e-6 * statistics.median(rates):.0f}", f"{1e-6 * min(rates):.0f} to {1e-6 * max(rates):.0f}",
                   f"{self.of_dd(writers):.2f}", f"{1e-6 * statistics.median(self.limited[writers]):.0f}")


def goals(trainers, load, writes):
    ours, *others = trainers
    judge = verdict if max(load.shares) <= load.DISTURBED else lambda met: "not judged: other programs ran"
    beside = lambda text: ", ".join(f"{other.name} {text(other)}" for other in others)  # noqa: E731
    ratio = lambda trainer: statistics.median(trainer.ratios())  # noqa: E731
    yield ("share of the time in which training stands still", beside(lambda other: f"{100 * other.blocked():.2f}%"),
           f"{100 * ours.blocked():.2f}%", f"< {BLOCKED_MOST:.0%}", judge(ours.blocked() < BLOCKED_MOST))
    yield ("whole run, over one without saves", beside(lambda other: f"{ratio(other):.3f}"), f"{ratio(ours):.3f}", f"<= {LONGEST}",
           judge(ratio(ours) <= LONGEST))
    slowest = min(map(writes.of_dd, WRITERS))
    yield (f"bytes/s until durable, {WRITERS[0]} to {WRITERS[-1]} ranks: the slowest over dd with fsync", "-", f"{slowest:.2f}",
           f">= {SLOWEST}", verdict(slowest >= SLOWEST))
    limited = [statistics.median(writes.limited[writers]) for writers in WRITERS]
    yield (f"the same where each writes {1e-6 * LIMIT_BYTES_S:.0f} MB/s at most: {WRITERS[-1]} ranks over one", "-",
           f"{limited[-1] / limited[0]:.1f}", "rising with ranks", verdict(writes.rises()))
    took, predicted = ours.peak_bytes(True) - ours.peak_bytes(False), ours.of_saves("bytes") / RANKS
    yield ("host memory of a rank for saves, over the predicted", "-", f"{took / predicted:.2f}", f"within {MEMORY_WITHIN:.0%}",
           verdict(abs(took / predicted - 1) <= MEMORY_WITHIN))


PAGE = """# Checkpoints: what they take of training, and how fast they are written

Made by `scripts/bench checkpoint{words}`, which measures everything on this page but the last two sections in one run.

- Machine: {machine}.
- Compiler: {compiler}, release build.
- Date: {date}, commit {commit}{before}.
- Python {python}, torch {torch}.

| measure | beside | ours | goal | |
|---|---|---|---|---|
{goals}

## While training
{ranks} ranks of one thread and one core each, `dp={ranks}`, float32, {layers} layers of hidden size {hidden}, {windows} windows of {window}
tokens a step; a save every {interval} steps against none. A run is timed from the end of step {first} to that of step {last}, as rank 0
prints them; of the saves between, *still* is the time in which no step ran, and *durable* the time from its begin until it was durable, as
rank 0 prints both. In wlb-worker the ranks tell each other after each step how far a save is, so that it is durable after three of them or
more. *DCP* is [a trainer of PyTorch](../../tests/bench/checkpoint/dcp_trainer.py) of the same shapes, with `fully_shard`, and `async_save`
of `torch.distributed.checkpoint` over gloo. {rounds} runs of each in turns; medians, and *ratios*: with saves over without, of each turn.
{load}

| trainer | step | checkpoint | still | durable | time still | ratio | ratios | memory without | with |
|---|---|---|---|---|---|---|---|---|---|
{trainers}

*memory* is the most that a rank had in memory (`ru_maxrss`). For the saves of wlb-worker 12 bytes are predicted for each parameter of the
rank's part of the optimizer's state, {predicted:.1f} MB; measured were {took:.1f} MB more than without.

## Writing
{bytes:.0f} MB in all, by so many processes, each of which writes its shard as a rank of wlb-worker does, from the begin of the save until
the checkpoint is committed and durable, beside `dd bs=4M conv=fsync` of a file of as many bytes on the same disk. {write_rounds} rounds of
all in turns; MB/s, median and range; *of dd* is the median over rounds. *throttled*: each writer writes at most {limit:.0f} MB/s, as
writers on separate nodes would.

| writers | MB/s | range | of dd | throttled |
|---|---|---|---|---|
{writes}

{many}
{timed}
## Modelled: runs on many nodes
Computed, and not measured: `bytes / min(writers x process, nodes x node, total)`, where bytes are 12 for each parameter, and *disks* says
how much one process, one node and the whole file system write, in GB/s. Before, one writer of each data group wrote while all ranks
waited; gathers and waits between its writes, which it did in lock-step, are left out. Now each rank writes, and training stands still for
the copy to host memory at most, at {copy:.0f} GB/s of each GPU; on a GPU the next step's passes go on meanwhile, and only its update waits.

| run | checkpoint | disks: process / node / total | before: writers on nodes | still | now: writers on nodes | durable | still at most |
|---|---|---|---|---|---|---|---|
{modelled}
"""


def table(rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def versions(venv):
    words = "import platform, torch; print(platform.python_version(), torch.__version__)"
    return subprocess.run([f"{venv}/bin/python3", "-c", words], check=True, capture_output=True, text=True).stdout.split()


def page(build, before, venv, trainers, load, writes, many):
    ours, (python, torch) = trainers[0], versions(venv)
    return PAGE.format(
        words=" --before DIR" if before else "", machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()),
        commit=commit_of(build), before=f"; *before* is commit {commit_of(before)}, built alike" if before else "", python=python,
        torch=torch, goals=table(goals(trainers, load, writes)), ranks=RANKS, layers=MODEL["num_hidden_layers"],
        hidden=MODEL["hidden_size"], windows=WINDOWS, window=WINDOW, interval=INTERVAL, first=FIRST, last=LAST, rounds=ROUNDS,
        load=load.sentence(), trainers=table(trainer.row() for trainer in trainers), predicted=1e-6 * ours.of_saves("bytes") / RANKS,
        took=1e-6 * (ours.peak_bytes(True) - ours.peak_bytes(False)), bytes=1e-6 * WRITE_BYTES, write_rounds=WRITE_ROUNDS,
        limit=1e-6 * LIMIT_BYTES_S, writes=table(writes.rows()),
        many=many.section(commit_of(build)), copy=1e-9 * model.COPY_BYTES_S, modelled=table(model.rows()),
        timed=TIMED.kept().strip() + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--timed", action="store_true")
    arguments = parser.parse_args()
    build, before = arguments.build.resolve(), arguments.before
    if arguments.timed:
        print(TIMED.replaced(timed.section(build, before.resolve()) + "\n"), end="")
        return
    venv = subprocess.run([ROOT / "tests/trainers/venv"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    trainers = [Trainer(OURS, wlb_worker(build)), *([Trainer(BEFORE, wlb_worker(before.resolve()))] if before else []),
                Trainer(DCP, dcp(venv))]
    load = Load(REPEATED_MOST)
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        writes = Writes(build, folder)
        many = ManyShards(build)
        measure_training(trainers, folder, load)
    print(page(build, before, venv, trainers, load, writes, many), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_checkpoint.py: ended by a signal"))
    main()
