#!/usr/bin/env python3
"""A job that is requeued while it runs: Slurm ends its ranks and its launcher, which is no fault, and the run goes on when the job
starts again."""
import json
import http.client
import time

import harness
import test_wlbd_api
from harness import wait_for


class QueuedAgain(test_wlbd_api.RunningJobs):
    def requeue(self, run):
        self.cluster.run("scontrol", "requeue", run)
        wait_for(f"job {run} to be queued", lambda: self.cluster.job(run)["JobState"] == "PENDING", 10, 0.01)

    def open_launcher(self, run, attempt):
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.addCleanup(link.close)
        path = f"/v1/runs/{run}/report"
        body = json.dumps({"attempt_id": attempt, "source": "run", "node": "n1", "rank": -1, "step": 0}).encode()
        link.request("POST", path, body, {"Authorization": "MUNGE " + self.api.credential("POST", path, body)})
        self.assertEqual(json.loads(link.getresponse().read()), {"order": "continue"})
        return link

    def begin(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, _ = self.open_reporters(run, attempt)
        self.assertEqual([report(node)["order"] for node in ("n1", "n2")], ["continue"] * 2)
        return run, attempt, report, self.open_launcher(run, attempt)

    def assert_goes_on(self, run):
        """No fault is found, not even later, and the run waits for its job."""
        reason = f"job {run} was requeued"
        wait_for("the reason", lambda: self.show(run)["attempts"][0]["reason"] == reason, 8)
        time.sleep(3)
        shown = self.show(run)
        self.assertEqual((shown["state"], shown["reason"], shown["ended_at"], shown["faults"]), ("restarting", "", None, []))
        self.assertEqual([(a["state"], a["reason"]) for a in shown["attempts"]], [("ended", reason)])

    def start_again(self, run, first):
        """What the first launcher still reports is not heard; the run is that of the second."""
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", {"state": "cancelled", "attempt_id": first})[0], 409)
        wait_for(f"job {run} to start again", lambda: self.cluster.job(run)["JobState"] == "RUNNING", 60)
        self.api.call("POST", "/v1/runs", {"run_id": run, "job_id": int(run), "restart_count": 1, "policy": {"layout": "auto"}})
        second, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual((reply["decision"], reply["attempt"]), ("start", 2))
        end = {"state": "complete", "attempt_id": second}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", end)[1]["state"], "complete")

    def test_launcher_is_killed_before_it_reports(self):
        run, attempt, report, link = self.begin()
        self.requeue(run)
        link.close()
        self.assert_goes_on(run)
        report("n1", goodbye=True)
        report("n2", goodbye=True)
        self.start_again(run, attempt)

    def test_ranks_are_ended_before_the_launcher_reports(self):
        """srun still waits for a node that does not answer."""
        run, attempt, report, _ = self.begin()
        self.requeue(run)
        report("n1", exits=[{"rank": 0, "time": 1, "code": 143}], lost_ranks=[{"rank": 0, "time": 1}])
        self.assert_goes_on(run)
        self.start_again(run, attempt)

    def test_launcher_reports_the_order_as_the_end(self):
        run, attempt, _, _ = self.begin()
        self.requeue(run)
        end = {"state": "cancelled", "attempt_id": attempt, "reason": "cancelled by signal TERM"}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", end)[1]["state"], "cancelled")
        self.assert_goes_on(run)
        self.start_again(run, attempt)

    def test_wlbd_was_away(self):
        run, attempt, _, _ = self.begin()
        self.cluster.verb("kill-wlbd")
        self.requeue(run)
        self.cluster.verb("start-wlbd")
        self.assert_goes_on(run)
        self.start_again(run, attempt)

    def test_node_that_is_lost_meanwhile(self):
        """The job could not start again before Slurm knows of it."""
        run, _, report, _ = self.begin()
        self.requeue(run)
        report("n1", exits=[{"rank": 0, "time": 1, "code": 143}], lost_ranks=[{"rank": 0, "time": 1}])
        wait_for("the reason", lambda: self.show(run)["attempts"][0]["reason"] == f"job {run} was requeued", 8)
        self.kill_slurmd(2)
        report("n2", goodbye=False)
        self.addCleanup(self.cluster.run, "scancel", run)
        wait_for("the lost node", lambda: [f["node"] for f in self.show(run)["faults"] if f["kind"] == "node_lost"] == ["n2"], 30)

    def test_what_is_not_queued_again(self):
        """A rank and a launcher that are killed while the job runs are faults."""
        run, _, report, link = self.begin()
        report("n1", exits=[{"rank": 0, "time": 1, "code": 137}], lost_ranks=[{"rank": 0, "time": 1}])
        wait_for("the fault", lambda: [(f["kind"], f["rank"]) for f in self.show(run)["faults"]] == [("rank_lost", 0)], 5)
        run, _, _, link = self.begin()
        link.close()
        wait_for("the fault", lambda: [f["kind"] for f in self.show(run)["faults"]] == ["launcher_lost"], 8)


if __name__ == "__main__":
    harness.main()
