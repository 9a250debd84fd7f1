"""Results of tests/trainers/run as lines and as a page."""
import datetime
import subprocess

import cells
import harness
from bench_host import machine
from started import NODES, TRAINERS

TITLES = {"node": "node killed", "stopped": "rank stopped (SIGSTOP)", "loop": "rank in an endless loop", "error": "exception in one rank",
          "none": "no fault: steps recorded"}

INTRODUCTION = """# Trainers that are not ours

Each trainer of `examples/` and an MPI program, started as its users start it, on a private cluster of {nodes} nodes that share one
machine: {machine}.
Made by `tests/trainers/run --report docs/results/trainers.md` on {date}, commit {commit}.

[What must follow](#what-must-follow) · [cells](#cells) · [what is wrong](#what-is-wrong)

## What must follow
- **node killed**: all tasks of the next attempt (the ranks, or one launcher a node) start within {start} s of the loss. From there to the
  first step it takes at most {cold} times as long as in the first attempt, measured in the same run. Each attempt goes on
  from a checkpoint and leaves no step out, and where steps are recorded, each is there once.
- **rank stopped**: faults or verdicts of `wlb show` name that rank, and no other, within {named} s.
- **endless loop**: `wlb show` has the file and a line of the loop within {loop} s, and names the rank.
- **exception**: `wlb show` has the error's own line {shown} s after it is in the output at the latest.
- **no fault**: `wlb show --steps` has each step once, with the loss that the trainer prints where `wlb run` knows its lines. Of the others
  the hook has the steps, and of the MPI program `--step-pattern`. Lightning's progress bar says no step: its loss is recorded once a
  second, for the step that was recorded last, and srun passes the bar on some KiB at a time, so it may be that of an earlier step.

The scripts stay as they are: `tests/trainers/faulty.py` runs them at 100 ms a step and causes loop and exception. megatron-core trains on
gloo with tp=1 and pp=1, with two stand-ins for what it asks CUDA for, torch's Adam and its own sum of gradients.
"""


def cell(result):
    if result is None:
        return "-"
    return result.measured if result.passed else "**failed**" + (f": {result.measured}" if result.measured else "")


def line(result):
    verdict = "passed" if result.passed else "FAILED"
    return "\n".join([f"{result.trainer:12} {result.fault:8} {verdict}  {result.measured}", *(f"    {text}" for text in result.problems)])


def page(results):
    """docs/results/trainers.md."""
    by_cell = {(result.trainer, result.fault): result for result in results}
    commit = subprocess.run(["git", "-C", harness.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    head = INTRODUCTION.format(nodes=NODES, date=datetime.date.today(), commit=commit.stdout.strip() or "unknown", machine=machine(),
                               start=cells.LIMITS.start_s, cold=cells.LIMITS.cold_starts, named=cells.LIMITS.named_s, loop=cells.LIMITS.loop_s,
                               shown=cells.LIMITS.shown_s)
    rows = [f"| {trainer.title} | " + " | ".join(cell(by_cell.get((trainer.name, fault))) for fault in TITLES) + " |"
            for trainer in TRAINERS.values() if any(result.trainer == trainer.name for result in results)]
    problems = [f"- {TRAINERS[result.trainer].title}, {TITLES[result.fault]}: {text.splitlines()[0]}" for result in results
                for text in result.problems]
    passed = sum(result.passed for result in results)
    return "\n".join([head, "## Cells", f"{passed} of {len(results)} passed.", "",
                      "| trainer | " + " | ".join(TITLES.values()) + " |", "|---" * (len(TITLES) + 1) + "|", *rows, "",
                      "## What is wrong", *(problems or ["Nothing."]), ""])
