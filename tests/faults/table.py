"""Results of tests/faults/run as lines and as a page."""
import datetime
import subprocess

import harness
from case import CLEAN_S
from bench_host import machine
from kinds import KINDS

# The rows of the first table: kinds of which a run has nothing else to bear.
ROWS = {"rank killed (SIGKILL, SIGSEGV, exit 1)": ("rank", "local rank 0", "rank 0", "two ranks of a node", "rank crashes",
                                                   "rank exits with 1"),
        "node dies (slurmd, slurmstepd, tasks)": ("node", "two nodes"),
        "node stands still: it answers nothing for `silence_ms` (10 s)": ("node frozen",),
        "rank hangs": ("rank hangs",),
        "link cut, of a node or between two": ("link of a node cut", "link between two nodes cut"),
        "batch host dies or stands still; wlb run or script killed": ("batch node", "batch node frozen", "wlb run killed",
                                                                      "script killed"),
        "wlbd, PostgreSQL or slurmctld away": ("wlbd killed", "wlbd stopped", "wlbd stopped for 9 s",
                                               "wlbd stopped for 15 s", "database away", "slurmctld killed",
                                               "slurmctld stopped")}

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
    missed = ["    the second fault found nothing that it could be done to"] if result.missed else []
    return "\n".join([FORMAT.format(*cells(result)).rstrip(), *missed, *(f"    {text}" for text in result.problems)])


def longest(values):
    values = [value for value in values if value is not None]
    return f"{max(values):.1f} s" if values else "-"


def summary(results):
    """A line for each of ROWS of which there are results."""
    for name, kinds_of_row in ROWS.items():
        group = [result for result in results if result.kind in kinds_of_row]
        if group:
            yield (f"| {name} | {len(group)} | {longest(result.found_s for result in group)} "
                   f"| {sum(not result.is_untrue for result in group)} | {longest(result.resumed_s for result in group)} |")


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
        f"people and programs, and no process, job, reservation or record was left {CLEAN_S} s later.", "",
        f"{datetime.date.today()}, {machine()}, Slurm {slurm()}, commit {commit()}:",
        f"{passed} passed, {len(results) - passed} failed.", "",
        "*Found* is until wlbd knew of the fault, *training again* until the first step of the next attempt, which wlb-worker alone",
        "records, with the time until Slurm has started a job again that it requeued; the longest of all cases. *Named*: cause, reason, rank and",
        "node are what was done; where services are away, none is.", "",
        "| fault | cases | found | named | training again |", "|---|---|---|---|---|", *summary(results), "",
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
