#!/usr/bin/env python3
"""The agents of 64 nodes with 512 ranks report to a real coordinator, and one rank hangs: it is named, and named again after
the coordinator was killed and started again meanwhile. scripts/bench coordinator does the same with 16,384 ranks."""
import sys
import time

import harness
from harness import BUILD, ROOT

sys.path.insert(0, str(ROOT / "scripts" / "lib"))
from training_load import TrainingRun  # pylint: disable=wrong-import-position

RANK, STEP = 203, 6


class TrainingLoad(harness.ClusterTest):
    nodes = 1

    def test_a_rank_that_hangs_is_named_whenever_the_coordinator_was_started(self):
        run = TrainingRun(self.cluster.env, BUILD / "tests" / "wlb-training-load", (8, 2, 4, 8), 8,
                          "hang=report,hang-after=3")
        self.addCleanup(run.stop)
        run.start(1, 100, [("hang", RANK, STEP, 120)])
        began = run.wait_event("fault", 0, 120)["at"]
        row, _ = run.wait_row(RANK, "confirmed", began, 120)
        self.assertEqual(row["nodes"], [f"node{RANK // 8 + 1}"])
        self.assertEqual([v["state"] for v in run.shown(RANK)], ["confirmed"])
        self.cluster.verb("kill-wlbd")
        self.cluster.verb("start-wlbd")
        started = time.time()
        again, seen = run.wait_row(RANK, "confirmed", started, 120)
        self.assertNotEqual(again["watcher"], row["watcher"])
        print(f"named {row['confirmed'] - began:.1f} s after the fault, and {seen - started:.1f} s after the coordinator was "
              "started again")
        self.assertEqual([v["state"] for v in run.shown(RANK)], ["confirmed"])
        self.assertEqual(run.others([RANK]), [])


if __name__ == "__main__":
    harness.main()
