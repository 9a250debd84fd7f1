#!/usr/bin/env python3
"""What a campaign of random faults draws and keeps; campaign_cases.py runs some of its cases."""
import pathlib
import random
import tempfile
import unittest

import campaign_state
from case import Result
from draw import LAYOUTS, LINK_MBIT, MOMENTS, OPTIONS, WIDE_LAYOUTS, Setting, draw_case, groups


class Drawing(unittest.TestCase):
    def test_a_seed_and_a_number_give_one_case(self):
        self.assertEqual([draw_case(7, number) for number in range(1, 50)], [draw_case(7, number) for number in range(1, 50)])
        self.assertNotEqual(draw_case(7, 1).kind, draw_case(8, 1).kind)

    def test_what_is_drawn(self):
        """Every fault, moment, layout, option and network; pairs and restarts; no two faults of a case have the same target."""
        cases = [draw_case(3, number) for number in range(1, 800)]
        words = [case.kind.name for case in cases]
        every = [fault for group in groups(random.Random(0), Setting("ours", (), LINK_MBIT)) for fault in group]
        self.assertEqual({name for case in cases for name in case.faults}, {fault.name for fault in every})
        for part in (*(f" at {moment}" for moment in MOMENTS), ", ", " into the restart"):
            self.assertTrue(any(part in each for each in words), part)
        self.assertTrue(any(", rank hangs " in each and "into the restart" in each for each in words))
        self.assertEqual({case.layout for case in cases}, {*LAYOUTS, *WIDE_LAYOUTS})
        self.assertEqual({case.setting.options for case in cases}, set(OPTIONS))
        self.assertEqual({case.setting.trainer for case in cases}, {"ours", "foreign"})
        self.assertTrue(0 < sum(case.setting.link_mbit > 0 for case in cases) < len(cases))
        undone = ("start", "thaw", "resume", "sleep", "wait")
        for case in cases:
            begun = [line for line in case.kind.script.split("; ") if line.removeprefix("try ").split()[0] not in undone]
            self.assertEqual(len(begun), len(case.faults), case)
            self.assertLessEqual(case.kind.requeues[1], 4, case)
            self.assertLessEqual(case.kind.attempts[1], 5, case)


class Kept(unittest.TestCase):
    def test_results_are_read_again(self):
        """The newest of each case; a last line that was half-written when the program was killed is not counted, and removed."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state"
            self.assertEqual(campaign_state.read(path), {})
            results = [Result("7.1", "ours", found_s=0.5, missed=True), Result("7.2", "foreign", problems=["an end"]),
                       Result("7.2", "foreign")]
            for number, result in enumerate(results):
                with campaign_state.open_to_append(path) as file:
                    campaign_state.add(file, result, f"commit{number}")
                    file.write(b'{"commit": "c", "resu')
            self.assertEqual(campaign_state.read(path), {"7.1": (results[0], "commit0"), "7.2": (results[2], "commit2")})
            self.assertEqual(campaign_state.failed_before(path), [(results[1], "commit1")])

    def test_results_of_earlier_commits_are_read(self):
        """Results of earlier commits lack fields that were added later."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state"
            path.write_text('{"commit": "c", "result": {"kind": "7.1", "trainer": "ours", "problems": []}}\n', encoding="utf-8")
            self.assertEqual(campaign_state.read(path), {"7.1": (Result("7.1", "ours"), "c")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
