#!/usr/bin/env python3
"""Prints docs/results/coverage.md from the counters that a run of the tests left in a build with --coverage.
Usage: coverage_page.py BUILD_DIR TEST_SUMMARY"""
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys

from bench_host import compiler, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOALS = {"checks": 90, "libverdict": 90, "libwlb": 90, "coordinator": 90, "planner": 90, "worker": 90}
TOP = ("checks", "common", "coordinator", "kernels", "libverdict", "libwlb", "planner", "spank", "worker")
FILES_BELOW = 80
OBJECTS_PER_CALL = 50

PAGE = """# Line coverage

Made by `scripts/coverage`: the tests of scripts/test but the sanitized and fuzzed ones, on a build with gcov's counters ({compiler}, -Og;
the CPU device -O3).

- Tests: {tests}.
- Date: {date}, commit {commit}.

A line counts as executed if any test executed it in any of the programs. A process that is killed by SIGKILL, or that ends
itself by _exit, leaves no counters; neither do the sanitized builds and the fuzzers.

| folder | lines | executed | | goal | |
|---|---|---|---|---|---|
{folders}

## By subfolder
| folder | lines | executed | |
|---|---|---|---|
{subfolders}

## Files below {below} %
| file | lines | not executed | |
|---|---|---|---|
{files}
"""


def reports(build):
    """What gcov says of every object file of the build; of one that never ran, that no line was executed."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    objects = {re.search(r" -o (\S+)\.o -c ", command["command"]).group(1) for command in commands}
    notes = [str(build / f"{name}.gcno") for name in sorted(objects)]
    for i in range(0, len(notes), OBJECTS_PER_CALL):
        output = subprocess.run(["gcov", "--json-format", "--stdout", *notes[i:i + OBJECTS_PER_CALL]], capture_output=True,
                                check=True, timeout=300).stdout
        yield from (json.loads(line) for line in output.splitlines() if line.startswith(b"{"))


def executed_lines(build):
    """{file relative to ROOT: {line number: whether it was executed}} of the product's sources."""
    found = collections.defaultdict(dict)
    for report in reports(build):
        for source in report["files"]:
            path = pathlib.Path(report["current_working_directory"], source["file"]).resolve()
            if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in TOP:
                continue
            lines = found[path.relative_to(ROOT)]
            for line in source["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
    return found


def percent(executed, lines):
    return 100 * executed / lines if lines else 100.0


def sum_by(counts, depth):
    """{the first `depth` folders of the path: (lines, executed)}"""
    sums = collections.defaultdict(lambda: (0, 0))
    for path, (lines, executed) in counts.items():
        folder = "/".join(path.parent.parts[:depth])
        sums[folder] = (sums[folder][0] + lines, sums[folder][1] + executed)
    return dict(sorted(sums.items()))


def folder_row(folder, lines, executed):
    share = percent(executed, lines)
    goal = GOALS.get(folder)
    return (f"| `{folder}` | {lines:,} | {executed:,} | {share:.1f}% | "
            + (f">= {goal}% | {verdict(share >= goal)} |" if goal else "| |"))


def main():
    build, tests = pathlib.Path(sys.argv[1]), sys.argv[2]
    counts = {path: (len(lines), sum(lines.values())) for path, lines in executed_lines(build).items()}
    missing = set(GOALS) - {path.parts[0] for path in counts}
    if missing:
        sys.exit(f"coverage_page.py: gcov found no line of {', '.join(sorted(missing))} in {build}; "
                 "build it with scripts/build --preset coverage --compiler gcc")
    low = sorted((percent(executed, lines), path, lines, lines - executed) for path, (lines, executed) in counts.items()
                 if percent(executed, lines) < FILES_BELOW)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True,
                            text=True, check=True).stdout.strip()
    print(PAGE.format(
        compiler=compiler(build), tests=tests, date=datetime.date.today().isoformat(), commit=commit, below=FILES_BELOW,
        folders="\n".join(folder_row(name, *sums) for name, sums in sum_by(counts, 1).items()),
        subfolders="\n".join(f"| `{name}` | {lines:,} | {executed:,} | {percent(executed, lines):.1f}% |"
                             for name, (lines, executed) in sum_by(counts, 3).items()),
        files="\n".join(f"| `{path}` | {lines} | {not_executed} | {share:.0f}% |"
                        for share, path, lines, not_executed in low)), end="")


if __name__ == "__main__":
    main()
