"""Saves of many ranks, on a device that waits for the times of a described machine in place of computing, and on disks that are throttled:
a section of docs/results/checkpoint.md."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bench_documents import skewed_documents, write_dataset
from bench_host import commit_of, compiler, machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
TITLE = "## Many ranks, on a timed device"
# Ranks, layout, writers of before.
RUNS = ((64, "tp=1,cp=4,pp=1,dp=16", 1), (256, "tp=4,cp=2,pp=4,dp=8", 16), (512, "tp=4,cp=2,pp=4,dp=16", 16))
MOST_THAT_SPIN = 256  # ranks: more of them sleep while they wait for a message, or they would take the cores from each other
LIMIT_BYTES_S = 2e6  # of each process
INTERVAL, STEPS = 5, 14  # two saves between steps; that after the last is waited for
WINDOW, WINDOWS, SCALE = 64, 64, 0.25
RUN_LIMIT_S = 1800
MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 257, "max_position_embeddings": WINDOW,
         "tie_word_embeddings": True}

SECTION = """{title}
Made by `scripts/bench checkpoint --timed --before DIR`, which measures this section alone.

- Machine: {machine}; {compiler}.
- Date: {date}, commit {commit}; *before* is commit {before}.

wlb-worker with so many ranks on this machine, on a device whose operations wait for {scale} times the time
that they take on the machine CPU instead of computing (`tests/timed`); memory, messages and files are the real ones. Each process writes
at most {limit:g} MB/s, as on a disk of its own of that speed (`tests/bench/checkpoint/throttle.c`). A save every {interval} steps, means of
{saves}; *still* is the time in which no step ran. Before, one rank of each data group wrote while all waited. Steps are longer than the
operations' waits where the ranks share {cores} cores. More than {spin} ranks sleep while they wait for a message (`tests/timed/yield.c`).

| ranks | layout | checkpoint | before: writers | still | of a save's {interval} steps | now: writers | still | of its steps | durable | step |
|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


class Timed:
    """What rank 0 prints of a run."""

    STEP = re.compile(r"step (\d+)/\d+ \|.* (\S+) s \| \d+ tokens/s$", re.MULTILINE)
    SAVED = re.compile(r"step (\d+) \| checkpoint .* \| (\S+) MB \| (\S+) s(?: \| stalled (\S+) s)?$", re.MULTILINE)

    def __init__(self, build, tools, folder, ranks, layout):
        environment = {**os.environ, "WLB_TIMED_MACHINE": str(ROOT / "libwlb/machines/CPU.json"), "WLB_TIMED_SCALE": str(SCALE),
                       "THROTTLE_BYTES_S": str(LIMIT_BYTES_S), "OMP_NUM_THREADS": "1"}
        preloaded = [tools / "tests/throttle.so"] + [tools / "tests/yield.so"] * (ranks > MOST_THAT_SPIN)
        with tempfile.TemporaryDirectory(dir=folder) as saved:
            command = [ROOT / "tests/unit/worker/mpirun", str(ranks), "env", "LD_PRELOAD=" + " ".join(map(str, preloaded)),
                       build / "tests/wlb-worker-timed", "train", "--model", "model.json", "--data-path", "documents", "--seq-length",
                       str(WINDOW), "--global-batch-size", str(WINDOWS), "--train-iters", str(STEPS), "--lr", "1e-4", "--threads", "1",
                       "--log-interval", "1", "--layout", layout, "--save", saved, "--save-interval", str(INTERVAL)]
            output = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True,
                                    timeout=RUN_LIMIT_S).stdout
        print(output, file=sys.stderr)
        saves = [match for match in self.SAVED.finditer(output) if int(match[1]) < STEPS]
        self.bytes = 1e6 * float(saves[0][2])
        self.durable_s = statistics.mean(float(save[3]) for save in saves)
        self.still_s = statistics.mean(float(save[4] or save[3]) for save in saves)
        self.step_s = statistics.median(float(match[2]) for match in self.STEP.finditer(output) if int(match[1]) % INTERVAL != 1)

    def share(self):
        return f"{100 * self.still_s / (self.still_s + INTERVAL * self.step_s):.1f}%"


def section(build, before):
    rows = []
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        folder = pathlib.Path(name)
        (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")
        write_dataset(folder / "documents", skewed_documents(20000, 64))
        for ranks, layout, writers in RUNS:
            old, new = (Timed(each, build, folder, ranks, layout) for each in (before, build))
            rows.append(f"| {ranks} | {layout} | {1e-6 * new.bytes:.1f} MB | {writers} | {old.still_s:.2f} s | {old.share()} | {ranks} | "
                        f"{new.still_s:.3f} s | {new.share()} | {new.durable_s:.2f} s | {new.step_s:.2f} s |")
    return SECTION.format(title=TITLE, machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()),
                          commit=commit_of(build), before=commit_of(before), scale=SCALE, limit=1e-6 * LIMIT_BYTES_S, interval=INTERVAL,
                          saves=STEPS // INTERVAL, cores=os.cpu_count(), spin=MOST_THAT_SPIN, rows="\n".join(rows))
