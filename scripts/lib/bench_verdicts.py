#!/usr/bin/env python3
"""Plants faults in synthetic runs and prints docs/results/verdicts.md. Usage: bench_verdicts.py BUILD_DIR [--positions N]"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from bench_host import compiler, machine, verdict

# Processes run side by side, those of most ranks first.
RANKS = (16384, 4096, 1024, 256, 64, 16, 8)
MOST_POSITIONS = 1000
HEALTHY = ((16384, 100), (1024, 1000), (64, 10000), (16, 10000), (8, 10000))
PARTS = 4
PROCESSES = 2

FAULT_HEAD = ("| fault | ranks | layouts | planted | named | others | precision | recall | until named, median / longest "
              "| cost within 20 % or 0.5 points |\n|---|---|---|---|---|---|---|---|---|---|")
HEALTHY_HEAD = "| healthy run | ranks | layout | steps | verdicts |\n|---|---|---|---|---|"


def run(build, words):
    command = [os.path.join(build, "tests", "wlb-verdicts-bench"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def positions_of(ranks, positions):
    """So many at 16,384 ranks, and with fewer ranks as many as take the same time."""
    return min(MOST_POSITIONS, positions * RANKS[0] // ranks)


def commands(positions):
    for ranks in RANKS:
        for kinds in ("still", "slow", "several"):
            for part in range(PARTS):
                yield ["--ranks", ranks, "--positions", positions_of(ranks, positions), "--kinds", kinds, "--part", f"{part}/{PARTS}"]
    for ranks, steps in HEALTHY:
        for part in range(PARTS):
            yield ["--ranks", ranks, "--steps", steps, "--kinds", "healthy", "--part", f"{part}/{PARTS}"]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def commit():
    told = subprocess.run(["git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty"], capture_output=True,
                          text=True, check=False)
    return told.stdout.strip() or "unknown"


def rows_of(outputs):
    rows = [cells(line) for lines in outputs for line in lines if line.startswith("|")]
    misses = [line[2:] for lines in outputs for line in lines if line.startswith("# ")]
    return rows, misses


INTRODUCTION = """# Verdicts on planted faults

Made by `scripts/bench verdicts`, with the library of commit {commit}. All runs are synthetic: steps and calls of 4D layouts
(`tests/bench/verdicts`), with noise whose numbers and sources are in
[constants.h](../../tests/bench/verdicts/constants.h). No GPU and no cluster was used.

- Machine: {machine}; {compiler}.
- Positions: every one of a layout up to 64 ranks. Above, so many in all layouts of a number of ranks, drawn at random, seeded:
  {positions}.
- *named*: a confirmed verdict of that kind that names the rank, node or pair. *others*: verdicts, suspicions too, that name
  anything else. Precision is named / (named + others), recall named / planted.
- *until named*: steps or seconds after the fault began. Slow ones are watched for 50 steps, standstills for 18 s.
- *half as much noise again* is beyond the goals: 4.8 % from step to step, twelve times what is published. Its rows show where the test ends.
- Of 4,096 and more ranks no step reports what the kind of fault does not need.
- *cost*: the share of trials whose cost is within 20 % of the truth, or within 0.5 points of a percent of the step. The truth is that of
  the same seeds without the fault.

| goal | met |
|---|---|"""


def cost_share(rows):
    costs = [(float(row[9].split()[0]), int(row[9].split()[3].rstrip(","))) for row in rows if row[9] != "-"]
    return sum(share * trials for share, trials in costs) / sum(trials for _, trials in costs)


def goals(faults, healthy):
    watched = [row for row in faults if not row[0].startswith("slow compute, 10 %, half as much")]
    recall, precision = min(float(row[7]) for row in watched), min(float(row[6]) for row in watched)
    yield f"precision >= 0.99 of every fault and number of ranks: least {precision:.4f}", verdict(precision >= 0.99)
    yield f"recall >= 0.99: least {recall:.4f}", verdict(recall >= 0.99)
    good, published = cost_share(watched), cost_share(row for row in watched if row[0].endswith("noise as published"))
    yield f"cost within 20 % or 0.5 points: {good:.1f} % of the trials; with noise as published {published:.1f} %", verdict(good >= 99)
    false = sum(int(row[4]) for row in healthy)
    steps = sum(int(row[3]) for row in healthy)
    yield f"no verdict in healthy runs: {false} in {steps:,} steps", verdict(false == 0)


def page(build, positions, outputs):
    rows, misses = rows_of(outputs)
    faults = [row for row in rows if not row[2].startswith("tp=")]
    healthy = [row for row in rows if row[2].startswith("tp=")]
    counts = ", ".join(f"{positions_of(ranks, positions):,} of {ranks:,}" for ranks in reversed(RANKS) if ranks > 64)
    print(INTRODUCTION.format(commit=commit(), machine=machine(), compiler=compiler(build), positions=counts + " ranks"))
    for text, met in goals(faults, healthy):
        print(f"| {text} | {met} |")
    print(f"\n## Faults\n{FAULT_HEAD}")
    order = list(dict.fromkeys(row[0] for row in faults))
    for row in sorted(faults, key=lambda row: (order.index(row[0]), int(row[1]))):
        print("| " + " | ".join(row[:-1]) + " |")
    print(f"\n## Healthy runs\n{HEALTHY_HEAD}")
    order = list(dict.fromkeys(row[0] for row in healthy))
    for row in sorted(healthy, key=lambda row: (order.index(row[0]), int(row[1]))):
        print("| " + " | ".join(row[:-1]) + " |")
    print("\n## Misses\nUp to 20 of each row, with what was told instead." + ("" if misses else " None.") + "\n")
    for line in misses:
        print(f"- {line}")
    print(f"\nProcessor time: {sum(float(row[-1]) for row in rows) / 60:.0f} minutes.")


def main(build, positions):
    with ThreadPoolExecutor(PROCESSES) as pool:
        page(build, positions, list(pool.map(lambda words: run(build, words), commands(positions))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]) if sys.argv[2:3] == ["--positions"] else MOST_POSITIONS)
