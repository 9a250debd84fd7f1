#!/usr/bin/env python3
"""wlbd or PostgreSQL is away for a time: training does not notice, and afterwards every step is recorded once."""
import time

import harness
import training

LONG = 300  # steps, enough to go on for 20 s


class LostServices(training.TrainingTest):
    def test_wlbd_is_killed_and_comes_back(self):
        job = self.submit()
        self.wait_step(job, 15)
        self.cluster.verb("kill-wlbd")
        step = self.step_done(job)
        self.wait_step(job, step + 20)  # goes on while it is away
        self.cluster.verb("start-wlbd")
        run = self.finish(job)
        self.check_complete(run)
        self.check_repeats(run, attempts=1)
        self.assertEqual(run["faults"], [])

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

    def test_postgres_is_away_for_20_s(self):
        job = self.submit(iterations=LONG)
        self.wait_step(job, 15)
        self.cluster.verb("stop-db")
        stopped = time.monotonic()
        step = self.step_done(job)
        self.wait_step(job, step + 20)
        time.sleep(max(0.0, 20 - (time.monotonic() - stopped)))
        self.cluster.verb("start-db")
        run = self.finish(job)
        self.check_complete(run, iterations=LONG)
        self.assertEqual(run["faults"], [])


if __name__ == "__main__":
    harness.main()
