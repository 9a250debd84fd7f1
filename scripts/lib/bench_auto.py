#!/usr/bin/env python3
"""Measures what --layout auto chooses and prints docs/results/auto.md. Usage: bench_auto.py BUILD_DIR"""
import importlib
import importlib.util
import signal
import sys

import bench_auto_timed
from bench_host import compiler, machine

PAGE = """# What auto chooses, beside every other layout

Made by `scripts/bench auto`, which measures everything on this page in one run: every layout is run, its step is measured,
and `--layout auto` is judged by the fastest.

- Machine: {machine}.
- Compiler: {compiler}, release build.

{real}

{timed}"""

NOT_MEASURED = """## Two ranks that compute
Not measured."""


def real_section(build):
    if importlib.util.find_spec("bench_auto_real") is None:
        return NOT_MEASURED
    return importlib.import_module("bench_auto_real").section(build)


def main(build):
    print(PAGE.format(machine=machine(), compiler=compiler(build), real=real_section(build).strip(),
                      timed=bench_auto_timed.section(build).strip()))


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_auto.py: ended by a signal"))
    main(sys.argv[1])
