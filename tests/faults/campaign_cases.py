#!/usr/bin/env python3
"""Cases of a campaign of random faults that have as many of its faults as can be; tests/faults/campaign has any number of any
seed.

    campaign_cases.py PART   three of the cases, which are those of PART, 1 to 5: parts 1 and 2 have the first six
"""
import sys
import unittest

import harness
import links
from case_runner import CaseRunner, show_logs
from draw import draw_case

SEED, DRAWN, COUNT, FIRST, OF_PART = 49, 400, 15, 6, 3


class Campaign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runner = CaseRunner(show_logs)
        cls.addClassCleanup(cls.runner.close)

    def run_case(self, case):
        if case.setting.link_mbit and not links.may_be_made():
            self.skipTest("this account may not make network namespaces")
        result = self.runner.run_case(*case.arguments())
        print(f"cause {result.cause}, {result.attempts} attempts, {result.took_s:.0f} s", end=" ")
        self.assertEqual(result.problems, [], case.kind.script)


def covering():
    """COUNT cases of the seed, each with the most faults that those before it have not."""
    cases, chosen, had = [draw_case(SEED, number) for number in range(1, DRAWN + 1)], [], set()
    while len(chosen) < COUNT:
        chosen.append(max(cases, key=lambda case: len(set(case.faults) - had)))
        had |= set(chosen[-1].faults)
    return chosen


def add_tests(part):
    """A cluster serves the cases of one network, so those of a part are of one where that can be."""
    cases, first = covering(), OF_PART * (part - 1)
    by_network = [case for some in (cases[:FIRST], cases[FIRST:]) for case in sorted(some, key=lambda case: case.setting.link_mbit)]
    for order, case in enumerate(by_network[first:first + OF_PART]):
        name = f"test_{order:02}_{case.kind.name}".replace(" ", "_").replace(",", "").replace(".", "_")
        setattr(Campaign, name, lambda self, case=case: self.run_case(case))


if __name__ == "__main__":
    add_tests(int(sys.argv.pop(1)))
    harness.main()
