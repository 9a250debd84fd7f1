#!/usr/bin/env python3
"""Measures what it costs a run that coordinator and database are unavailable, and prints docs/results/away.md.
Usage: bench_away.py BUILD_DIR"""
import json
import pathlib
import signal
import statistics
import sys
import tempfile
import time
import uuid

from bench_cluster import PrivateCluster
from bench_host import compiler, machine, verdict

PAIRS = 10
STEPS = 30
NODES = 2
RETURN_S = 10
MODEL = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 256,
         "tie_word_embeddings": True}
TRAIN = (f"wlb-worker train --model model.json --data-path corpus --seq-length 256 --global-batch-size 8 --train-iters {STEPS} "
         "--lr 1e-3 --seed 1 --log-interval 1000")

PAGE = """# A coordinator that is unavailable: what it costs a run

Made by `scripts/bench away`, which measures everything on this page in one run.

- Machine: {machine}.
- Compiler: {compiler}, release build.
- Date: {date}.

| measure | beside | ours | goal | |
|---|---|---|---|---|
{goals}

## A run of {steps} steps
`wlb run -- wlb-worker train` on {nodes} nodes of a private cluster on this machine, from the start of `wlb run` to its end in the
job's script, {pairs} runs of each in turns. *present*: wlbd and PostgreSQL answer. *away*: both are stopped before the job is
submitted and started after it has ended; *stored* is from then to the last step and the end of the run in the database, without
a command by anybody.

| | median | least | most | spread (standard deviation) |
|---|---|---|---|---|
{runs}

Stored after the return: {stored}.

## A folder with an undeliverable record
`wlb run -- true` on one node, {pairs} runs of each in turns: in a clean folder, and in one with a spool of 100 records of which one
is refused for good. It is set aside the first time; each run here gets a new one.

| | median | least | most | spread (standard deviation) |
|---|---|---|---|---|
{folders}
"""


def table_row(name, values):
    return (f"| {name} | {statistics.median(values):.2f} s | {min(values):.2f} s | {max(values):.2f} s | "
            f"{statistics.stdev(values):.2f} s |")


class Bench(PrivateCluster):
    def make_input(self):
        self.run("wlb-data", "build", "--input", "/usr/share/common-licenses", "--output-prefix", "corpus")
        (self.work / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")

    def sql(self, query):
        return self.run("psql", "-XAtq", "-c", query, check=False).strip()

    def stored(self, job, steps):
        return self.sql(f"SELECT state, (SELECT count(*) FROM steps WHERE run_id = runs.id) FROM runs WHERE name = '{job}'"
                        ) == f"complete|{steps}"

    def wait_stored(self, job, steps):
        began = time.monotonic()
        while not self.stored(job, steps):
            if time.monotonic() - began > 60:
                sys.exit(f"bench_away.py: run {job} is not stored after a minute")
            time.sleep(0.1)
        return time.monotonic() - began

    def away(self):
        self.stop_coordinator()
        job, took = self.job(TRAIN, NODES)
        self.start_coordinator()
        return took, self.wait_stored(job, STEPS)

    def present(self):
        job, took = self.job(TRAIN, NODES)
        self.wait_stored(job, STEPS)
        return took

    def leave_bad_record(self, job):
        attempt = str(uuid.uuid4())
        lines = [{"wlb_spool": 1, "run_id": job, "attempt_id": attempt, "source": "rank0"}]
        for seq in range(1, 101):
            data = {"step": -1} if seq == 57 else {"kind": "note", "detail": str(seq)}
            lines.append({"seq": seq, "time": time.time(), "type": "step" if seq == 57 else "event", "data": data})
        (self.work / ".wlb" / f"{attempt}.rank0.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def main(build):
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        bench = Bench(pathlib.Path(build), pathlib.Path(name))
        present, away, stored, clean, bad = [], [], [], [], []
        try:
            bench.start(NODES)
            bench.make_input()
            bench.present()  # not counted: programs and pages are read from disk
            for _ in range(PAIRS):
                present.append(bench.present())
                took, after = bench.away()
                away.append(took)
                stored.append(after)
            job, _ = bench.job("true", 1)
            for _ in range(PAIRS):
                clean.append(bench.job("true", 1)[1])
                bench.leave_bad_record(job)
                bad.append(bench.job("true", 1)[1])
        finally:
            bench.verb("stop")
    difference = statistics.median(away) - statistics.median(present)
    noise = 2 * max(statistics.stdev(away), statistics.stdev(present))
    goals = [("median of a run with both away", f"present {statistics.median(present):.2f} s",
              f"{statistics.median(away):.2f} s, {difference:+.2f} s", f"within noise ({noise:.2f} s)",
              verdict(difference <= noise)),
             ("everything stored after their return", "-", f"{max(stored):.1f} s at most", f"<= {RETURN_S} s",
              verdict(max(stored) <= RETURN_S)),
             ("`wlb run -- true` beside an undeliverable record", f"clean {statistics.median(clean):.2f} s",
              f"{statistics.median(bad):.2f} s", "no slower but for noise",
              verdict(statistics.median(bad) - statistics.median(clean)
                      <= 2 * max(statistics.stdev(bad), statistics.stdev(clean))))]
    print(PAGE.format(machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()),
                      goals="\n".join("| " + " | ".join(row) + " |" for row in goals), steps=STEPS, nodes=NODES, pairs=PAIRS,
                      runs="\n".join((table_row("present", present), table_row("away", away))),
                      folders="\n".join((table_row("clean", clean), table_row("with the record", bad))),
                      stored=", ".join(f"{seconds:.1f}" for seconds in stored) + " s"), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_away.py: ended by a signal"))
    main(*sys.argv[1:])
