#!/usr/bin/env python3
"""Measures what a call of the hook of Python costs a trainer, and prints docs/results/follow.md.
Usage: bench_follow.py BUILD_DIR"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from bench_cluster import ROOT, PrivateCluster
from bench_host import machine, verdict

CALLS = 1000000
CALL_US_MOST = 10

PAGE = """# The hook of Python: what a call costs a trainer

Made by `scripts/bench follow`, which measures everything on this page in one run.

- Machine: {machine}.
- Python {python}, torch {torch}.
- Date: {date}.

| measure | ours | goal | |
|---|---|---|---|
| the hook's own time in a call, at most | {most:.2f} us | <= {goal} us | {met} |

## Each kind of call
Microseconds of processor time, user's and the kernel's, of {calls} calls one after the other in a rank of `wlb run` on a private cluster on
this machine, without the function of torch that is hooked. The hook writes 200 lines in a second at most; *written* is with that bound
taken away, so that each call writes its line. *away*: wlbd and PostgreSQL are stopped before the job is submitted. The optimizer is
Adam on the CPU, whose own step the hook reads; the scalar is a tensor of the CPU.

| call | coordinator there | away | written, there | written, away |
|---|---|---|---|---|
{rows}
"""


def versions(python):
    words = "import platform, torch; print(platform.python_version(), torch.__version__)"
    return subprocess.run([python, "-c", words], check=True, capture_output=True, text=True).stdout.split()


def measure(cluster, python, is_away):
    path = cluster.work / f"calls-{is_away}.jsonl"
    if is_away:
        cluster.stop_coordinator()
    job, _ = cluster.job(f"{python} {ROOT}/scripts/lib/hook_calls.py {CALLS} {path}", 1)
    if not path.exists():
        sys.exit(f"bench_follow.py: job {job} failed: " + (cluster.work / f"{job}.out").read_text(encoding="utf-8"))
    return json.loads(path.read_text(encoding="ascii"))


def main(build):
    venv = subprocess.run([ROOT / "tests/trainers/venv"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    python = f"{venv}/bin/python3"
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        cluster = PrivateCluster(pathlib.Path(build), pathlib.Path(name))
        try:
            cluster.start(1)
            there, away = (measure(cluster, python, is_away) for is_away in (False, True))
        finally:
            cluster.verb("stop")
    columns = [found[kind] for kind in ("bounded", "written") for found in (there, away)]
    most = 1e6 * max(max(column.values()) for column in columns)
    rows = [f"| {call} | " + " | ".join(f"{1e6 * column[call]:.2f}" for column in columns) + " |" for call in columns[0]]
    of_python, of_torch = versions(python)
    print(PAGE.format(machine=machine(), python=of_python, torch=of_torch, date=time.strftime("%Y-%m-%d", time.gmtime()), most=most,
                      goal=CALL_US_MOST, met=verdict(most <= CALL_US_MOST), calls=CALLS, rows="\n".join(rows)), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_follow.py: ended by a signal"))
    main(*sys.argv[1:])
