#!/usr/bin/env python3
"""Plants faults in synthetic runs and prints docs/results/verdicts.md.
Usage: bench_verdicts.py BUILD_DIR [--positions N] [--state DIR [--sizes N,N,...]]"""
import argparse
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from bench_host import compiler, machine, verdict

RANKS = (8, 16, 64, 256, 1024, 4096, 16384)
MOST_POSITIONS = 1000
HEALTHY = {8: 10000, 16: 10000, 64: 10000, 1024: 400, 16384: 50}  # steps
# A share of the seeds, or of the kinds of healthy runs, is one case: a minute or two.
PARTS = {8: 1, 16: 1, 64: 2, 256: 4, 1024: 8, 4096: 16, 16384: 50}
HEALTHY_PARTS = 13
PROCESSES = 2
MOST_MISSES = 20

FAULT_HEAD = ("| fault | ranks | layouts | planted | named | others | precision | recall | until named, median / longest "
              "| cost within 20 % or 0.5 points |\n|---|---|---|---|---|---|---|---|---|---|")
HEALTHY_HEAD = "| healthy run | ranks | layout | steps | verdicts |\n|---|---|---|---|---|"
CLOCK_HEAD = ("| | ranks | layouts | trials | furthest off | furthest off after a clock was set back | late rank found |\n"
              "|---|---|---|---|---|---|---|")
CLOCK_RANKS = 1024  # the most
# A process that copies itself for each trial has less to copy with large pages.
ENVIRONMENT = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
FOLDERS = ("libverdict", "tests/bench/verdicts")


def positions_of(ranks, positions):
    """So many at 16,384 ranks, and with fewer ranks as many as take the same time."""
    return min(MOST_POSITIONS, positions * RANKS[-1] // ranks)


def cases_of(ranks, positions):
    """The words of each case of a number of ranks; one case is one process."""
    for kinds in ("still", "slow"):
        for part in range(PARTS[ranks]):
            yield ["--ranks", ranks, "--positions", positions_of(ranks, positions), "--kinds", kinds, "--part", f"{part}/{PARTS[ranks]}"]
    for part in range(HEALTHY_PARTS if ranks in HEALTHY else 0):
        yield ["--ranks", ranks, "--steps", HEALTHY[ranks], "--kinds", "healthy", "--part", f"{part}/{HEALTHY_PARTS}"]
    if ranks <= CLOCK_RANKS:
        yield ["--ranks", ranks, "--kinds", "clocks"]


def code():
    """A digest of the library and of the bench: results of other code are not added to those of this."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    digest = hashlib.sha256()
    for folder in FOLDERS:
        for name in sorted(os.listdir(os.path.join(root, folder))):
            with open(os.path.join(root, folder, name), "rb") as file:
                digest.update(f"{folder}/{name}\0".encode() + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


class State:
    """The output of the cases that have been run, by their words. With a folder it is kept there, a line of JSON for
    each case, so that a bench that was interrupted continues."""

    def __init__(self, folder):
        self.code, self.done, self.lock, self.file = code(), {}, threading.Lock(), None
        if folder is None:
            return
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "cases.jsonl"), "a+", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"--state {folder}: another bench is running with it; wait for it, or give another folder")
        self.file.seek(0)
        for line in self.file:
            self.load(line)
        self.file.write("\n")  # ends a line that was cut off

    def load(self, line):
        try:
            case = json.loads(line)
        except ValueError:
            return
        if case["code"] == self.code:
            self.done[tuple(case["words"])] = case["lines"]

    def keep(self, words, lines):
        with self.lock:
            self.done[tuple(words)] = lines
            if self.file is not None:
                self.file.write(json.dumps({"code": self.code, "words": words, "lines": lines}) + "\n")
                self.file.flush()


class Runner:
    """Runs cases side by side. Where it is interrupted it ends the processes that it has started."""

    def __init__(self, build, state):
        self.program = os.path.join(build, "tests", "wlb-verdicts-bench")
        self.state, self.running, self.lock, self.stopped = state, set(), threading.Lock(), False

    def run(self, words):
        with self.lock:
            if self.stopped:
                return
            process = subprocess.Popen([self.program, *map(str, words)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
            self.running.add(process)
        lines = process.communicate()[0].splitlines()
        with self.lock:
            self.running.discard(process)
            if self.stopped:
                return
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        self.state.keep(words, lines)

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                process.terminate()

    def run_all(self, cases):
        waiting = [words for words in cases if tuple(words) not in self.state.done]
        done = len(cases) - len(waiting)
        with ThreadPoolExecutor(PROCESSES) as pool:
            try:
                for words, _ in zip(waiting, pool.map(self.run, waiting)):
                    done += 1
                    print(f"{done} of {len(cases)} cases: {' '.join(map(str, words))}", file=sys.stderr, flush=True)
            except BaseException:
                self.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def library():
    """The library's tree in git, which is the same whatever commits it is in."""
    here = os.path.dirname(__file__)
    tree = subprocess.run(["git", "-C", here, "rev-parse", "--short=12", "HEAD:libverdict"], capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "-C", here, "status", "--porcelain", "--", ":/libverdict"], capture_output=True, text=True, check=False)
    return (tree.stdout.strip() or "unknown") + (", changed" if changed.stdout.strip() else "")


class Results:
    """What the cases have printed, added up."""

    def __init__(self, outputs):
        self.faults, self.healthy, self.clocks, self.misses, self.processor_s = {}, [], [], {}, 0.0
        for lines in outputs:
            for line in lines:
                if line.startswith("# "):
                    self.misses.setdefault(line.partition(" ranks: ")[0], []).append(line[2:])
                elif line.startswith("{"):
                    self.add(json.loads(line))

    def add(self, row):
        if "healthy" in row:
            self.healthy.append(row)
        elif "clocks" in row:
            self.clocks.append(row)
        elif "processor_s" in row:
            self.processor_s += row["processor_s"]
        else:
            self.add_fault(row)

    def add_fault(self, row):
        key = (row["fault"], row["ranks"])
        if key not in self.faults:
            self.faults[key] = row
            return
        for name in ("planted", "named", "others", "costs", "costs_good", "cost_errors", "cost_error", "after"):
            self.faults[key][name] += row[name]

    def fault_rows(self):
        """In the order in which the bench has the kinds; of each, fewer ranks first."""
        names = list(dict.fromkeys(name for name, _ in self.faults))
        return sorted(self.faults.values(), key=lambda row: (names.index(row["fault"]), row["ranks"]))


def precision(row):
    return row["named"] / max(row["named"] + row["others"], 1)


def recall(row):
    return row["named"] / max(row["planted"], 1)


def fault_cells(row):
    after = sorted(row["after"])
    until = f"{after[(len(after) - 1) // 2]:.0f} / {after[-1]:.0f} {row['unit']}" if after else "-"
    cost = "-"
    if row["costs"] > 0:
        error = 100 * row["cost_error"] / max(row["cost_errors"], 1)
        cost = f"{100 * row['costs_good'] / row['costs']:.1f} % of {row['costs']}, mean error {error:.1f} %"
    return [row["fault"], row["ranks"], row["layouts"], row["planted"], row["named"], row["others"],
            f"{precision(row):.4f}", f"{recall(row):.4f}", until, cost]


def healthy_cells(row):
    return [row["healthy"], row["ranks"], row["layout"], row["steps"], row["verdicts"]]


def clock_cells(row):
    return ["clocks", row["clocks"], row["layouts"], row["trials"], f"{1000 * row['furthest_s']:.1f} ms",
            f"{1000 * row['furthest_after_s']:.1f} ms", row["late_found"]]


INTRODUCTION = """# Verdicts on planted faults

Made by `{command}`: {part}
The library was the tree {library} of git (`git rev-parse HEAD:libverdict`). All runs are synthetic: steps and calls of 4D layouts
(`tests/bench/verdicts`), with noise whose numbers and sources are in
[constants.h](../../tests/bench/verdicts/constants.h). No GPU and no cluster was used.

- Machine: {machine}; {compiler}.
- Positions: every one of a layout up to 64 ranks. Above, so many in all layouts of a number of ranks, drawn at random, seeded:
  {positions}.
- *Seeds*: the first position of every kind of fault in a layout has the first seed, the second the second. All noise, clocks and lost reports follow
  from the seed and from the noise of the kind, so that a layout has as many different healthy runs as positions; trials of one seed differ
  in their faults alone, and have the steps before the fault in common.
- *named*: a confirmed verdict of that kind that names the rank, node or pair. *others*: verdicts, suspicions too, that name
  anything else. Precision is named / (named + others), recall named / planted.
- *until named*: steps or seconds from the fault to the confirmed verdict. Slow ones are watched for 50 steps, hangs for 18 s.
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
    trials = sum(row["costs"] for row in rows)
    return 100 * sum(row["costs_good"] for row in rows) / max(trials, 1)


def totals(rows):
    """The counts of all numbers of ranks of a kind of fault, by its name."""
    kinds = {}
    for row in rows:
        kind = kinds.setdefault(row["fault"], {"planted": 0, "named": 0, "others": 0})
        for name in kind:
            kind[name] += row[name]
    return kinds


def goals(results):
    watched = [row for row in results.fault_rows() if "half as much" not in row["fault"]]
    kinds = totals(watched)
    for name, value in (("precision", precision), ("recall", recall)):
        least = min(kinds, key=lambda kind, value=value: value(kinds[kind]))
        yield (f"{name} >= 0.99 of every kind of fault, all numbers of ranks together: least {value(kinds[least]):.4f} ({least})",
               verdict(value(kinds[least]) >= 0.99))
    rows = [row for row in watched if precision(row) < 0.99 or recall(row) < 0.99]
    yield f"the same of each of {len(watched)} rows below: {len(rows)} below", verdict(not rows)
    good = cost_share(watched)
    published = cost_share([row for row in watched if row["fault"].endswith("noise as published")])
    yield f"cost within 20 % or 0.5 points: {good:.1f} % of the trials; with noise as published {published:.1f} %", verdict(good >= 99)
    false = sum(row["verdicts"] for row in results.healthy)
    steps = sum(row["steps"] for row in results.healthy)
    yield f"no verdict in healthy runs: {false} in {steps:,} steps", verdict(false == 0)
    late, trials = (sum(row[name] for row in results.clocks) for name in ("late_found", "trials"))
    yield f"the late rank found by clocks that differ: {late} of {trials} trials", verdict(late == trials)


def table(title, head, rows):
    print(f"\n## {title}\n{head}")
    for cells in rows:
        print("| " + " | ".join(map(str, cells)) + " |")


def page(build, positions, results):
    counts = ", ".join(f"{positions_of(ranks, positions):,} of {ranks:,}" for ranks in RANKS if ranks > 64)
    whole = positions >= MOST_POSITIONS
    print(INTRODUCTION.format(
        command="scripts/bench verdicts" + ("" if whole else f" --positions {positions}"),
        part="the whole run." if whole else f"a part of the whole run, which has {MOST_POSITIONS:,} positions of every number of ranks above 64.",
        library=library(), machine=machine(), compiler=compiler(build), positions=counts + " ranks"))
    for text, met in goals(results):
        print(f"| {text} | {met} |")
    kinds = list(dict.fromkeys(row["healthy"] for row in results.healthy))
    table("Faults", FAULT_HEAD, map(fault_cells, results.fault_rows()))
    table("Healthy runs", HEALTHY_HEAD,
          map(healthy_cells, sorted(results.healthy, key=lambda row: (kinds.index(row["healthy"]), row["ranks"]))))
    table("Clocks of nodes, aligned by samples of collectives", CLOCK_HEAD, map(clock_cells, results.clocks))
    print(f"\n## Misses\nUp to {MOST_MISSES} of each row, with what was told instead." + ("" if results.misses else " None.") + "\n")
    for lines in results.misses.values():
        for line in lines[:MOST_MISSES]:
            print(f"- {line}")
    print(f"\nProcessor time: {results.processor_s / 60:.0f} minutes.")


def sizes_of(text):
    sizes = [int(size) for size in text.split(",") if size.isdigit()]
    if not sizes or ",".join(map(str, sizes)) != text or not set(sizes) <= set(RANKS):
        raise argparse.ArgumentTypeError(f"{text}: numbers of ranks are {', '.join(map(str, RANKS))}")
    return sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--positions", type=int, default=MOST_POSITIONS)
    parser.add_argument("--state")
    parser.add_argument("--sizes", type=sizes_of, default=RANKS)
    options = parser.parse_args()
    if options.sizes is not RANKS and options.state is None:
        parser.error("--sizes needs --state, since a page needs all numbers of ranks")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = State(options.state)
    cases = [words for ranks in RANKS if ranks in options.sizes for words in cases_of(ranks, options.positions)]
    whole = [words for ranks in RANKS for words in cases_of(ranks, options.positions)]
    try:
        Runner(options.build, state).run_all(cases)
    except KeyboardInterrupt:
        sys.exit(f"interrupted: {len(state.done)} cases are kept" if options.state else "interrupted")
    left = [words for words in whole if tuple(words) not in state.done]
    if left:
        print(f"{len(whole) - len(left)} of {len(whole)} cases are finished; no page is written before all are", file=sys.stderr)
        return
    page(options.build, options.positions, Results(state.done[tuple(words)] for words in whole))


if __name__ == "__main__":
    main()
