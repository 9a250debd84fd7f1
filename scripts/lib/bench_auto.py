#!/usr/bin/env python3
"""Measures what --layout auto chooses and prints docs/results/auto.md. Usage: bench_auto.py BUILD_DIR [--state DIR]"""
import argparse
import pathlib
import signal
import sys

import bench_auto_real
import bench_auto_timed
from bench_host import compiler, machine

PAGE = """# What auto chooses, beside every other layout

Made by `scripts/bench auto`, which measures everything on this page in one run: every layout is run, its step is measured,
and `--layout auto` is judged by the fastest.

- Machine: {machine}.
- Compiler: {compiler}, release build.

{real}

{timed}"""


def kept(state, name, measure):
    """The section that measure() returns, or that is in the folder `state` of a run before, which was interrupted."""
    file = state / f"auto-{name}.md" if state else None
    if file and file.exists():
        return file.read_text(encoding="utf-8").strip()
    section = measure()
    if file:
        state.mkdir(parents=True, exist_ok=True)
        file.write_text(section, encoding="utf-8")
    return section.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--state", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build
    print(PAGE.format(machine=machine(), compiler=compiler(build),
                      real=kept(options.state, "real", lambda: bench_auto_real.section(build)),
                      timed=kept(options.state, "timed", lambda: bench_auto_timed.section(build))))


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_auto.py: ended by a signal"))
    main()
