#!/usr/bin/env python3
"""What ranks do: reports with activities, and GET /v1/runs/RUN/ranks."""
import time

import harness
import test_wlbd_api
from harness import wait_for
from test_wlbd_api import NOBODY

COLUMNS = ["rank", "node", "age_ms", "step", "activity", "for_ms", "process", "call", "groups", "late_us"]


def activity(rank, **more):
    return {"rank": rank, "step": 41, "activity": "computing", "for_s": 0.5, "process": "running",
            "groups": [["tp", 2, 100, 100], ["dp", 2, 50, 50]]} | more


def waits(rank, for_s, **more):
    """The rank waits in call 51 of dp."""
    call = {"kind": "all_reduce", "group": 1, "seq": 51, "bytes": 65536, "for_s": for_s}
    return activity(rank, call=call, groups=[["tp", 2, 100, 100], ["dp", 2, 51, 50]], **more)


class RanksTest(test_wlbd_api.RunningJobs):
    """A job that runs on two nodes, with two ranks on each."""

    def new_attempt(self):
        """(run, attempt) of an attempt on n1 and n2 whose rank map is recorded: tp 2, dp 2."""
        run = self.new_run()
        attempt, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual(reply["decision"], "start")
        record = {"seq": 1, "time": 1790000000.0, "type": "attempt", "data": {
            "layout": {"tp": 2, "cp": 1, "pp": 1, "dp": 2}, "world_size": 4, "seq_length": 256, "train_iters": 90,
            "global_batch_size": 4, "rank_map": [{"rank": rank, "node": f"n{rank // 2 + 1}", "local_rank": rank % 2}
                                                 for rank in range(4)],
            "model": {"hidden_size": 64}, "dtype": "float32", "device": "cpu", "resumed_step": 0, "checkpoint": None}}
        status, reply = self.deliver(run, attempt, [record])
        self.assertEqual(status, 200, reply)
        return run, attempt

    def report(self, run, attempt, node, activities, uid=0, **more):
        body = {"attempt_id": attempt, "source": "node", "node": node, "rank": 2 * int(node[1:]) - 2, "step": 41,
                "agent": True, "activities": activities, "goodbye": True} | more  # the connection closes, and none is lost
        return self.api.call("POST", f"/v1/runs/{run}/report", body, uid)

    def ranks(self, run):
        status, reply = self.api.call("GET", f"/v1/runs/{run}/ranks")
        self.assertEqual(status, 200, reply)
        return reply

    def rows(self, run):
        """Rows without the age of their reports, which must be short."""
        rows = self.ranks(run)["ranks"]
        for row in rows:
            if len(row) > 2:
                self.assertLess(row[2], 5000)
                row[2] = "age"
        return rows


class Reports(RanksTest):
    def test_newest_activities(self):
        run, attempt = self.new_attempt()
        self.assertEqual(self.rows(run), [[0, 0], [1, 0], [2, 1], [3, 1]])
        self.assertEqual(self.report(run, attempt, "n1", [activity(0), waits(1, 0.25)]), (200, {"order": "continue"}))
        first = [0, 0, "age", 41, "computing", 500, "running", None, [["tp", 2, 100, 100], ["dp", 2, 50, 50]], None]
        second = [1, 0, "age", 41, "computing", 500, "running", ["all_reduce", 1, 51, 65536, 250],
                  [["tp", 2, 100, 100], ["dp", 2, 51, 50]], None]
        self.assertEqual(self.rows(run), [first, second, [2, 1], [3, 1]])
        self.report(run, attempt, "n2", [activity(3, process="gone", activity="ending", groups=[])])
        self.assertEqual(self.rows(run)[2:], [[2, 1], [3, 1, "age", 41, "ending", 500, "gone", None, [], None]])
        self.report(run, attempt, "n1", [waits(1, 0.1, step=42)])  # of rank 0 the one before is the newest
        self.assertEqual(self.rows(run)[0], first)
        self.assertEqual(self.rows(run)[1][3], 42)
        reply = self.ranks(run)
        self.assertEqual(reply["columns"], COLUMNS)
        self.assertEqual({key: reply[key] for key in ("run_id", "attempt", "attempt_id", "layout", "world_size", "nodes",
                                                      "train_iters", "last_step", "left_out")},
                         {"run_id": run, "attempt": 1, "attempt_id": attempt, "layout": {"tp": 2, "cp": 1, "pp": 1, "dp": 2},
                          "world_size": 4, "nodes": ["n1", "n2"], "train_iters": 90, "last_step": None, "left_out": 0})

    def test_reports_without_activities(self):
        run, attempt = self.new_attempt()
        body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "step": 3}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", body), (200, {"order": "continue"}))
        self.assertEqual(self.rows(run), [[0, 0], [1, 0], [2, 1], [3, 1]])

    def test_a_wrong_member_changes_nothing(self):
        run, attempt = self.new_attempt()
        self.report(run, attempt, "n1", [activity(0), activity(1)])
        before = self.rows(run)
        for wrong, words in (
            (activity(0, activity="dreaming"), "activities[1]: field 'activity': \"dreaming\" must be one of starting"),
            (activity(0, step=-1), "activities[1]: field 'step': -1 must be a whole number from 0 to"),
            (activity(0, for_s=1e8), "activities[1]: field 'for_s': 100000000.0 must be a number from 0 to 1e+07"),
            (activity(0, groups=[["t\np", 2, 1, 1]]), "activities[1]: groups[0]: name: \"t\\np\" must be 1 to 15 printable characters"),
            (activity(0, call={"kind": "send", "group": 2, "seq": 1, "bytes": 1, "for_s": 1}),
             "activities[1]: call: field 'group': 2 must be a whole number from 0 to 1"),
            (activity(1), "field 'activities': rank 1 is listed twice"),
        ):
            status, reply = self.report(run, attempt, "n1", [activity(1, step=50), wrong], lost_ranks=[{"rank": 0, "time": 1}])
            self.assertEqual(status, 400, reply)
            self.assertIn(words, reply["error"])
        self.assertEqual(self.rows(run), before)
        time.sleep(1)
        self.assertEqual(self.show(run)["faults"], [])

    def test_ranks_of_another_node(self):
        run, attempt = self.new_attempt()
        for rank in (2, 4, 1000000):
            status, reply = self.report(run, attempt, "n1", [activity(rank)])
            self.assertEqual(status, 403, reply)
            self.assertIn(f"field 'activities': rank {rank}: the attempt has no such rank on node n1", reply["error"])
        status, reply = self.report(run, attempt, "n1", [activity(0), activity(1), activity(2)])
        self.assertEqual(status, 403, reply)
        self.assertEqual(self.report(run, attempt, "n1", [activity(0)], NOBODY)[0], 403)
        self.assertEqual(self.rows(run), [[0, 0], [1, 0], [2, 1], [3, 1]])

    def test_a_late_report_is_ignored(self):
        run, attempt = self.new_attempt()
        self.report(run, attempt, "n1", [activity(0, step=42), waits(1, 0.1)])
        before = self.rows(run)
        self.report(run, attempt, "n1", [activity(0, step=41), activity(1)])  # rank 1 had not entered call 51
        self.assertEqual(self.rows(run), before)

    def test_who_may_read(self):
        run, attempt = self.new_attempt()
        self.report(run, attempt, "n1", [activity(0)])
        path = f"/v1/runs/{run}/ranks"
        self.assertEqual(self.api.call("GET", path, uid=NOBODY)[0], 200)
        self.assertEqual(self.api.send("GET", path)[0], 401)
        self.assertEqual(self.api.call("GET", "/v1/runs/999999/ranks")[0], 404)
        self.assertEqual(self.api.call("POST", path, {})[0], 405)
        self.restart_wlbd("private_data = yes\n")
        status, reply = self.api.call("GET", path, uid=NOBODY)
        self.assertEqual(status, 403, reply)
        self.assertIn("private_data", reply["error"])
        self.assertEqual(self.api.call("GET", path)[0], 200)

    def test_a_restart_forgets_until_nodes_report(self):
        run, attempt = self.new_attempt()
        self.report(run, attempt, "n1", [activity(0)])
        self.assertEqual(len(self.rows(run)[0]), len(COLUMNS))
        self.restart_wlbd()
        wait_for("the attempt", lambda: self.rows(run)[0] == [0, 0], 10)
        self.report(run, attempt, "n1", [activity(0)])
        self.assertEqual(len(self.rows(run)[0]), len(COLUMNS))
        self.assertEqual(self.cluster.sql("select count(*) from steps")[0], ["0"])

    def test_the_newest_attempt(self):
        run, attempt = self.new_attempt()
        self.report(run, attempt, "n1", [activity(0)])
        second, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": 1})
        self.assertEqual(reply["decision"], "start")
        reply = self.ranks(run)
        self.assertEqual((reply["attempt"], reply["attempt_id"]), (2, second))
        self.assertEqual([len(row) for row in reply["ranks"]], [2, 2, 2, 2])


if __name__ == "__main__":
    harness.main()
