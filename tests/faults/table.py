"""Results of tests/faults/run as lines and as a page."""
import datetime
import subprocess

import harness
from bench_host import machine
from kinds import KINDS

FORMAT = "{:34} {:8} {:>7} {:22} {:42} {:>8} {:>6}  {}"
TITLES = ("KIND", "TRAINER", "FOUND", "CAUSE", "REASON", "ATTEMPTS", "TOOK", "VERDICT")
HEADING = FORMAT.format(*TITLES)


def kinds(rows):
    return "\n".join(f"{kind.name:34} {kind.script}" for kind in rows)


def cells(result):
    attempts = f"{result.attempts}" + (f" ({result.requeues}r)" if result.requeues else "")
    return (result.kind, result.trainer, "-" if result.found_s is None else f"{result.found_s:.1f} s", result.cause,
            result.reason or "-", attempts, f"{result.took_s:.0f} s", "passed" if result.passed else "FAILED")


def line(result):
    return "\n".join([FORMAT.format(*cells(result)).rstrip(), *(f"    {text}" for text in result.problems)])


def page(results):
    """docs/results/faults.md."""
    rows = [" | ".join(("", *(cell.replace("|", "\\|") for cell in cells(result)), "")).strip() for result in results]
    problems = [f"- {result.kind}, {result.trainer}: {text}" for result in results for text in result.problems]
    done = {kind.name: kind.script for kind in KINDS}
    scripts = [f"| {name} | `{done[name]}` |" for name in dict.fromkeys(result.kind for result in results)]
    passed = sum(result.passed for result in results)
    return "\n".join([
        "# Faults", "",
        "Made by `tests/faults/run --report docs/results/faults.md`: each kind of fault is done to a run of four nodes with",
        "two ranks each, by the operating system, on a private cluster on one host. A case has passed when the run completed",
        "by itself, each step was trained exactly once, cause and reason are what was done, `wlb show` says the same to",
        "people and programs, and no process, job, reservation or record was left 10 s later.", "",
        f"{datetime.date.today()}, {machine()}, Slurm {slurm()}, commit {commit()}:",
        f"{passed} passed, {len(results) - passed} failed.", "",
        "FOUND is the time from the fault until wlbd saw it, the time included in which wlbd itself was away; a number",
        "with r counts how often the job was requeued.", "",
        "| " + " | ".join(TITLES) + " |", "|---" * len(TITLES) + "|", *rows, *(["", *problems] if problems else []), "",
        "What is done in each:", "", "| KIND | DONE |", "|---|---|", *scripts, ""])


def slurm():
    slurmd = f"{harness.SLURM_PREFIX or '/usr'}/sbin/slurmd"
    return subprocess.run([slurmd, "-V"], capture_output=True, text=True, check=True).stdout.split()[-1]


def commit():
    result = subprocess.run(["git", "-C", harness.ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False)
    return result.stdout.strip() or "unknown"
