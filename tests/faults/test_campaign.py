#!/usr/bin/env python3
"""The first cases of a campaign of random faults; tests/faults/campaign has any number of any seed."""
import pathlib
import tempfile
import unittest

import campaign_state
import harness
import links
from case import Result
from case_runner import CaseRunner, show_logs
from draw import MOMENTS, draw_case

SEED, COUNT = 1, 15


class Drawing(unittest.TestCase):
    def test_a_seed_and_a_number_give_one_case(self):
        self.assertEqual([draw_case(7, number) for number in range(1, 50)], [draw_case(7, number) for number in range(1, 50)])
        self.assertNotEqual(draw_case(7, 1).kind, draw_case(8, 1).kind)

    def test_what_is_drawn(self):
        """Every moment, pairs, restarts, layouts and networks; no two faults of a case have the same target."""
        cases = [draw_case(3, number) for number in range(1, 400)]
        words = [case.kind.name for case in cases]
        for part in (*(f" at {moment}" for moment in MOMENTS), ", ", " into the restart"):
            self.assertTrue(any(part in each for each in words), part)
        self.assertEqual({case.layout for case in cases}, {"auto", "tp=2", "cp=2", "pp=2"})
        self.assertEqual({case.trainer for case in cases}, {"ours", "foreign"})
        self.assertTrue(0 < sum(case.link_mbit > 0 for case in cases) < len(cases))
        for case in cases:
            begun = [line for line in case.kind.script.split("; ") if line.removeprefix("try ").split()[0] in ("kill", "crash", "freeze", "stop")]
            self.assertLessEqual(len(begun), 2, case)
            self.assertLessEqual(case.kind.requeues[1], 2, case)
            self.assertLessEqual(case.kind.attempts[1], 3, case)


class Kept(unittest.TestCase):
    def test_results_are_read_again(self):
        """The newest of each case; a last line that was half-written when the program was killed is not counted, and removed."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state"
            self.assertEqual(campaign_state.read(path), {})
            results = [Result("7.1", "ours", found_s=0.5), Result("7.2", "foreign", problems=["an end"]), Result("7.2", "foreign")]
            for number, result in enumerate(results):
                with campaign_state.open_to_append(path) as file:
                    campaign_state.add(file, result, f"commit{number}")
                    file.write(b'{"commit": "c", "resu')
            self.assertEqual(campaign_state.read(path), {"7.1": (results[0], "commit0"), "7.2": (results[2], "commit2")})
            self.assertEqual(campaign_state.failed_before(path), [(results[1], "commit1")])


class Campaign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runner = CaseRunner(show_logs)
        cls.addClassCleanup(cls.runner.close)

    def run_case(self, case):
        if case.link_mbit and not links.may_be_made():
            self.skipTest("this account may not make network namespaces")
        result = self.runner.run_case(*case.arguments())
        print(f"cause {result.cause}, {result.attempts} attempts, {result.took_s:.0f} s", end=" ")
        self.assertEqual(result.problems, [], case.kind.script)


def add_tests():
    cases = [draw_case(SEED, number) for number in range(1, COUNT + 1)]
    for order, case in enumerate(sorted(cases, key=lambda case: case.link_mbit)):  # a cluster serves those of one network
        name = f"test_{order:02}_{case.kind.name}".replace(" ", "_").replace(",", "").replace(".", "_")
        setattr(Campaign, name, lambda self, case=case: self.run_case(case))


add_tests()
if __name__ == "__main__":
    harness.main()
