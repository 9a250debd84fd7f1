"""Measures what ranks take from their launch to their first step, from a checkpoint, with the wlb-worker of two builds: a
section of docs/results/recovery.md."""
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

from bench_checkpoint import Arrivals
from bench_documents import skewed_documents, write_dataset
from bench_host import commit_of, compiler, machine
from bench_train import ONE_NODE, Run, launched

TITLE = "## From the decision to the first step"
RANKS, ROUNDS = 2, 8
TOUCHED = 4  # times the bytes of the checkpoint, before a start
WINDOW, WINDOWS = 32, 2
MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 14,
         "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 257, "max_position_embeddings": WINDOW,
         "tie_word_embeddings": True}

SECTION = """{title}
Made by `scripts/bench recovery --before DIR`, which measures this section alone.

- Machine: {machine}; {compiler}.
- Date: {date}; wlb-worker of commit {commit}, and *before* of commit {before}.

From the decision until the ranks are launched both take the same time, `start` of `wlb show`. Here is what follows: from the launch of
{ranks} ranks with a core each, by mpirun, to the begin of their first step, which is their load of a checkpoint of {bytes:.2f} GB, saved by
{ranks} ranks in the format of their commit on the disk below TMPDIR; and the same of one rank, as if the node of the other were lost.
*cold*: the checkpoint is not in memory at the launch. Seconds of {rounds} starts of each in turns, least / median: other programs on this
machine only add. Before each start as much memory was touched as it takes: what a virtual machine has given back to its host
(`/sys/module/page_reporting`) it gets back at the first touch, which takes several times as long as that of other memory.

| ranks | checkpoint | before | now |
|---|---|---|---|
{rows}
"""


class Starts:
    """Of the worker of one build, from the checkpoint that it has saved."""

    def __init__(self, build, folder, name):
        self.worker, self.folder, self.name, self.saved = build / "bin/wlb-worker", folder, name, folder / name
        self.start_s(RANKS, "--save", self.saved, "--train-iters", "1")
        self.bytes = sum(path.stat().st_size for path in self.files())
        self.times_s = {}  # of (ranks, what is loaded)

    def files(self):
        return [path for path in self.saved.rglob("*") if path.is_file()]

    def start_s(self, ranks, *words):
        """Seconds from the launch to the begin of the first step, of which rank 0 prints the end and how long it took."""
        arrivals, began_s = Arrivals(), time.monotonic()
        Run(launched(ranks, (self.worker, "train", "--model", "model.json", "--data-path", "documents", "--seq-length", str(WINDOW),
                             "--global-batch-size", str(WINDOWS), "--lr", "1e-4", "--lr-decay-style", "constant", "--threads", "1",
                             "--log-interval", "1", "--layout", f"dp={ranks}", *words)), self.folder, arrivals.into, ONE_NODE)
        ended_s, line = next((at, line) for at, line in arrivals.end() if line.startswith("step "))
        return ended_s - float(line.split(" | ")[-2].split()[0]) - began_s

    def prepare(self, is_cold):
        bytearray(b"\1") * (TOUCHED * self.bytes)  # and let go
        for path in self.files():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                if is_cold:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                else:
                    while file.read(1 << 20):
                        pass

    def measure(self, ranks, what):
        self.prepare(what == "cold")
        self.times_s.setdefault((ranks, what), []).append(self.start_s(ranks, "--load", self.saved, "--train-iters", "2"))
        print(self.name, ranks, what, f"{self.times_s[ranks, what][-1]:.2f} s", file=sys.stderr)

    def cell(self, key):
        return f"{min(self.times_s[key]):.2f} / {statistics.median(self.times_s[key]):.2f}"


def section(build, before):
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")
        write_dataset(folder / "documents", skewed_documents(2000, 64))
        pair = Starts(before, folder, "before"), Starts(build, folder, "now")
        keys = [(ranks, what) for ranks in (RANKS, 1) for what in ("in memory", "cold")]
        for number in range(ROUNDS):
            for key in keys:
                for starts in pair[::-1] if number % 2 else pair:
                    starts.measure(*key)
    rows = (f"| {ranks} | {what} | {pair[0].cell((ranks, what))} | {pair[1].cell((ranks, what))} |" for ranks, what in keys)
    return SECTION.format(title=TITLE, machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()),
                          commit=commit_of(build), before=commit_of(before), ranks=RANKS, bytes=1e-9 * pair[1].bytes, rounds=ROUNDS,
                          rows="\n".join(rows))
