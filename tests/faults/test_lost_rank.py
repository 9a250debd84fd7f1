#!/usr/bin/env python3
"""One rank is killed: the run comes back by itself and loses nothing but the steps since its last checkpoint."""
import os
import signal
import time

import harness
import training


class LostRank(training.TrainingTest):
    def test_killed_rank(self):
        for rank in (5, 0):  # an ordinary one; the one that records
            with self.subTest(rank=rank):
                job = self.submit()
                self.wait_step(job, training.SAVE_INTERVAL + 6)
                os.kill(self.rank_pid(rank), signal.SIGKILL)
                killed = time.monotonic()
                harness.wait_for("the second attempt", lambda: len(self.cluster.show(job)["attempts"]) == 2, 30)
                print(f"next attempt after {time.monotonic() - killed:.1f} s", end=" ")
                run = self.finish(job)
                self.check_complete(run)
                self.check_repeats(run, attempts=2)
                causes = [fault for fault in run["faults"] if fault["cause"]]
                # Its neighbour on the node, which tells of it, may have been aborted by MPI before it could.
                self.assertEqual([(fault["kind"], fault["rank"] // 2, fault["node"]) for fault in causes],
                                 [("rank_lost", rank // 2, f"n{rank // 2 + 1}")])
                self.assertEqual(run["attempts"][1]["nodes"], ["n1", "n2", "n3", "n4"])
                story = self.cluster.run("wlb", "show", job).stdout
                self.assertRegex(story, rf"rank_lost +n{rank // 2 + 1} ")


if __name__ == "__main__":
    harness.main()
