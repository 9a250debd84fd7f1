#!/usr/bin/env python3
"""Plants faults in synthetic runs and prints docs/results/verdicts.md. Usage: bench_verdicts.py BUILD_DIR [--positions N]"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

from bench_host import compiler, machine, verdict

# Processes run side by side, those of most ranks first.
RANKS = (16384, 4096, 1024, 256, 64, 16, 8)
MOST_POSITIONS = 1000
HEALTHY = ((16384, 50), (1024, 400), (64, 10000), (16, 10000), (8, 10000))
PARTS = 4
PROCESSES = 2

FAULT_HEAD = ("| fault | ranks | layouts | planted | named | others | precision | recall | until named, median / longest "
              "| cost within 20 % or 0.5 points |\n|---|---|---|---|---|---|---|---|---|---|")
HEALTHY_HEAD = "| healthy run | ranks | layout | steps | verdicts |\n|---|---|---|---|---|"
CLOCK_HEAD = ("| | ranks | layouts | trials | furthest off | furthest off after a clock was set back | late rank found |\n"
              "|---|---|---|---|---|---|---|")
CLOCK_RANKS = 1024  # the most


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
    for ranks in RANKS:
        if ranks <= CLOCK_RANKS:
            yield ["--ranks", ranks, "--kinds", "clocks"]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def library():
    """The library's tree in git, which is the same whatever commits it is in."""
    here = os.path.dirname(__file__)
    tree = subprocess.run(["git", "-C", here, "rev-parse", "--short=12", "HEAD:libverdict"], capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "-C", here, "status", "--porcelain", "--", ":/libverdict"], capture_output=True, text=True, check=False)
    return (tree.stdout.strip() or "unknown") + (", changed" if changed.stdout.strip() else "")


def rows_of(outputs):
    rows, misses, since = [], [], []
    for lines in outputs:
        for line in lines:
            if line.startswith("# "):
                since.append(line[2:])
            elif line.startswith("|"):
                rows.append(cells(line))
                misses += [f"{rows[-1][0]}, {rows[-1][1]} ranks: {text.removeprefix('miss: ')}" for text in since]
                since = []
    return rows, misses


def order_of(outputs):
    """The names of rows in the order in which the bench has them, of which each part has every PARTS-th."""
    names = []
    for first in range(0, len(outputs), PARTS):
        parts = [[cells(line)[0] for line in lines if line.startswith("|")] for lines in outputs[first:first + PARTS]]
        parts = [list(dict.fromkeys(part)) for part in parts]
        names += [name for turn in zip_longest(*parts) for name in turn if name is not None]
    return list(dict.fromkeys(names))


INTRODUCTION = """# Verdicts on planted faults

Made by `{command}`: {part}
The library was the tree {library} of git (`git rev-parse HEAD:libverdict`). All runs are synthetic: steps and calls of 4D layouts
(`tests/bench/verdicts`), with noise whose numbers and sources are in
[constants.h](../../tests/bench/verdicts/constants.h). No GPU and no cluster was used.

- Machine: {machine}; {compiler}.
- Positions: every one of a layout up to 64 ranks. Above, so many in all layouts of a number of ranks, drawn at random, seeded:
  {positions}.
- *named*: a confirmed verdict of that kind that names the rank, node or pair. *others*: verdicts, suspicions too, that name
  anything else. Precision is named / (named + others), recall named / planted.
- *until named*: steps or seconds from the fault to the confirmed verdict. Slow ones are watched for 50 steps, standstills for 18 s.
- *Two* faults are on different nodes. Slow computation is 10 % longer there, links and NICs have half the speed, loaders take 20 % of a step.
- *half as much noise again* is beyond the goals: 4.8 % from step to step, twelve times what is published. Its rows show where the test ends.
- A stage of one or two ranks is in two layouts of 8 ranks; a finite gradient needs four peers, so such layouts are not in its row.
- Of 4,096 and more ranks no step reports what the kind of fault does not need.
- *cost*: the share of trials whose cost is within 20 % of the truth, or within 0.5 points of a percent of the step. The truth is that of
  the same seeds without the faults of that sort.
- *Clocks*: in every run each node's clock is ahead or behind by up to 5 s and drifts by up to 50 parts in a million, and one is set back
  by up to an hour. What ranks report of steps is measured by these clocks, states by clocks that drift and are not set.

| goal | met |
|---|---|"""


def cost_share(rows):
    costs = [(float(row[9].split()[0]), int(row[9].split()[3].rstrip(","))) for row in rows if row[9] != "-"]
    return sum(share * trials for share, trials in costs) / sum(trials for _, trials in costs)


def totals(rows):
    """Precision and recall over all trials of a kind of fault, by its name."""
    kinds = {}
    for row in rows:
        counts = kinds.setdefault(row[0], [0, 0, 0])
        for place, cell in enumerate(row[3:6]):
            counts[place] += int(cell)
    return {name: (named / max(named + others, 1), named / max(planted, 1)) for name, (planted, named, others) in kinds.items()}


def least(kinds, place):
    name = min(kinds, key=lambda name: kinds[name][place])
    return f"least {kinds[name][place]:.4f} ({name})", kinds[name][place] >= 0.99


def goals(faults, clocks, healthy):
    watched = [row for row in faults if "half as much" not in row[0]]
    kinds = totals(watched)
    for place, name in enumerate(("precision", "recall")):
        text, met = least(kinds, place)
        yield f"{name} >= 0.99 of every kind of fault, all numbers of ranks together: {text}", verdict(met)
    rows = [row for row in watched if float(row[6]) < 0.99 or float(row[7]) < 0.99]
    yield f"the same of each of {len(watched)} rows below: {len(rows)} below", verdict(not rows)
    good, published = cost_share(watched), cost_share(row for row in watched if row[0].endswith("noise as published"))
    yield f"cost within 20 % or 0.5 points: {good:.1f} % of the trials; with noise as published {published:.1f} %", verdict(good >= 99)
    false = sum(int(row[4]) for row in healthy)
    steps = sum(int(row[3]) for row in healthy)
    yield f"no verdict in healthy runs: {false} in {steps:,} steps", verdict(false == 0)
    late, trials = (sum(int(row[place]) for row in clocks) for place in (6, 3))
    yield f"the late rank found by clocks that differ: {late} of {trials} trials", verdict(late == trials)


def table(title, head, rows, order):
    """Prints the rows without their last cell, the processor time."""
    print(f"\n## {title}\n{head}")
    for row in sorted(rows, key=lambda row: (order.index(row[0]), int(row[1]))):
        print("| " + " | ".join(row[:-1]) + " |")


def page(build, positions, outputs):
    rows, misses = rows_of(outputs)
    clocks = [row for row in rows if row[0] == "clocks"]
    healthy = [row for row in rows if row[2].startswith("tp=")]
    faults = [row for row in rows if row not in clocks and row not in healthy]
    counts = ", ".join(f"{positions_of(ranks, positions):,} of {ranks:,}" for ranks in reversed(RANKS) if ranks > 64)
    whole = positions >= MOST_POSITIONS
    print(INTRODUCTION.format(
        command="scripts/bench verdicts" + ("" if whole else f" --positions {positions}"),
        part="the whole run." if whole else f"a part of the whole run, which has {MOST_POSITIONS:,} positions of every number of ranks above 64.",
        library=library(), machine=machine(), compiler=compiler(build), positions=counts + " ranks"))
    for text, met in goals(faults, clocks, healthy):
        print(f"| {text} | {met} |")
    order = order_of(outputs)
    table("Faults", FAULT_HEAD, faults, order)
    table("Healthy runs", HEALTHY_HEAD, healthy, order)
    table("Clocks of nodes, aligned by samples of collectives", CLOCK_HEAD, clocks, order)
    print("\n## Misses\nUp to 20 of each row, with what was told instead." + ("" if misses else " None.") + "\n")
    for line in misses:
        print(f"- {line}")
    print(f"\nProcessor time: {sum(float(row[-1]) for row in rows) / 60:.0f} minutes.")


def main(build, positions):
    with ThreadPoolExecutor(PROCESSES) as pool:
        page(build, positions, list(pool.map(lambda words: run(build, words), commands(positions))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]) if sys.argv[2:3] == ["--positions"] else MOST_POSITIONS)
