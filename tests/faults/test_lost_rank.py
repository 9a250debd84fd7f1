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
                self.assertEqual([(fault["kind"], fault["rank"], fault["node"]) for fault in causes],
                                 [("rank_lost", rank, f"n{rank // 2 + 1}")])
                self.assertEqual(run["attempts"][1]["nodes"], ["n1", "n2", "n3", "n4"])
                story = self.cluster.run("wlb", "show", job).stdout
                self.assertIn(f"rank {rank}", story)

    def test_a_worker_that_cannot_start_is_not_tried_for_ever(self):
        job = self.cluster.sbatch("wlb run -- sh -c 'exit 9'", "--wlb-layout=auto", nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertEqual(self.cluster.job(job)["ExitCode"], "9:0")
        run = self.cluster.show(job)
        self.assertEqual(run["state"], "failed")
        self.assertLessEqual(len(run["attempts"]), 3)


if __name__ == "__main__":
    harness.main()
