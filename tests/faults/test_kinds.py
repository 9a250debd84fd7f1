#!/usr/bin/env python3
"""A part of the table of kinds.py: with campaign_cases.py every way to make a fault occurs; tests/faults/run has all of it."""
import unittest

import harness
from case_runner import CaseRunner, show_logs
from kinds import KINDS, Places


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runner = CaseRunner(show_logs)
        cls.addClassCleanup(cls.runner.close)

    def run_case(self, kind, trainer):
        result = self.runner.run_case(kind, trainer, Places())
        print(f"cause {result.cause}, {result.attempts} attempts, {result.took_s:.0f} s", end=" ")
        self.assertEqual(result.problems, [])


def add_tests():
    for kind in KINDS:
        if kind.covering:
            name = f"test_{kind.name}".replace(" ", "_")
            setattr(Kinds, name, lambda self, kind=kind: self.run_case(kind, kind.covering))


add_tests()
if __name__ == "__main__":
    harness.main()
