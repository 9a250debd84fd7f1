#!/usr/bin/env python3
"""Prints how the tests of a measurement ended, from what one or several runs of ctest printed. Only the last run of a test
counts.
Usage: coverage_tests.py REPORT ended|passed|failed|summary < NAMES

NAMES are those of all tests, one a line. ended, passed, failed: names, one a line, sorted. passed includes those that
were skipped."""
import pathlib
import re
import sys

LINE = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.+ *(?:\*\*\*)?([A-Za-z][A-Za-z ]*[A-Za-z])", re.MULTILINE)


def runs(report):
    """{test: its results, such as "Passed" or "Failed", in the order of its runs}"""
    found = {}
    for name, result in LINE.findall(report):
        found.setdefault(name, []).append(result)
    return found


def summary(results, names):
    last = [result[-1] for result in results.values()]
    passed, skipped = last.count("Passed"), last.count("Skipped")
    repeated = sorted(name for name, result in results.items() if result[-1] == "Passed" and set(result) > {"Passed"})
    failed = sorted(name for name, result in results.items() if result[-1] not in ("Passed", "Skipped"))
    missing = sorted(set(names) - set(results))

    def list_of(names):
        return f" ({', '.join(names)})" if names else ""

    return (f"{passed} passed, {len(repeated)} of them only when repeated{list_of(repeated)}, {skipped} skipped, "
            f"{len(failed)} failed{list_of(failed)}, {len(missing)} not run{list_of(missing)}")


def main():
    results = runs(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    if sys.argv[2] == "summary":
        print(summary(results, sys.stdin.read().split()))
        return
    wanted = {"ended": lambda result: True, "passed": lambda result: result in ("Passed", "Skipped"),
              "failed": lambda result: result not in ("Passed", "Skipped")}[sys.argv[2]]
    for name in sorted(name for name, result in results.items() if wanted(result[-1])):
        print(name)


if __name__ == "__main__":
    main()
