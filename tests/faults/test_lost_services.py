#!/usr/bin/env python3
"""wlbd is away during all of a run: training does not notice, and afterwards every step is recorded once. Services that
are away for a time are in kinds.py."""
import harness
import training


class LostServices(training.TrainingTest):
    def test_wlbd_is_away_when_the_job_starts_and_ends(self):
        self.cluster.verb("kill-wlbd")
        job = self.submit()
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.cluster.verb("start-wlbd")
        # wlbd listens before it has its database again, and says so.
        harness.wait_for("the records to be taken", lambda: self.cluster.run("wlb", "flush", ".wlb", check=False)
                         .returncode == 0, 30)
        run = self.cluster.show(job)
        self.check_complete(run)


if __name__ == "__main__":
    harness.main()
