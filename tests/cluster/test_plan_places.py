#!/usr/bin/env python3
"""Where a plan puts the ranks of an attempt: wlbd bounds it, stores it as it is, and shows it to who may see the run."""
import uuid

import harness
import test_wlbd_api
from test_wlbd_api import event


def placed(nodes, first_rank, ranks, switch="s1"):
    return {"switch": switch, "nodes": nodes, "first_rank": first_rank, "ranks": ranks}


def plan(seq=1, dp=4, tp=1, **fields):
    return {"seq": seq, "time": 1790000000.0, "type": "plan",
            "data": {"layout": {"tp": tp, "cp": 1, "pp": 1, "dp": dp}, "reason": "the least of 4", **fields}}


BOTH = [placed("n1", 0, 2), placed("n2", 2, 2, "s2")]
HUGE = ",".join(f"n{number}" for number in range(700))  # 4 KB less a few bytes


class PlanPlaces(test_wlbd_api.RunningJobs):
    """An attempt of two nodes with two tasks each."""

    def started(self):
        run = self.new_run()
        attempt, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual((reply["nodes"], reply["tasks_per_node"]), (["n1", "n2"], 2))
        return run, attempt

    def stored(self, run):
        return self.show(run)["attempts"][0]["plan"]

    def refused(self, run, attempt, record, *words):
        status, reply = self.deliver(run, attempt, [record], "run")
        self.assertEqual(status, 400, f"{str(record)[:300]}: {reply}")
        for word in ("records[0]: plan: ", *words):
            self.assertIn(word, reply["error"])

    def test_any_placement_is_stored_as_it_is(self):
        """Also what does not fit the attempt, and lists that would be endless or are none: nobody expands them."""
        run, attempt = self.started()
        cases = (
            plan(dp=3), plan(dp=8), plan(dp=1, tp=4), plan(dp=2, idle_ranks=1),
            plan(placement=[placed("n1", 0, 2), placed("n3", 2, 2)]),
            plan(placement=[placed("n[1,1]", 0, 4)]),
            plan(placement=[placed("n1", 0, 2), placed("n1", 2, 2)]),
            plan(placement=[placed("n1", 0, 2)]),
            plan(placement=[placed("n1", 0, 2), placed("n2", 1, 2)]),
            plan(placement=[placed("n1", 0, 1), placed("n2", 1, 3)]),
            plan(placement=[placed("n[1-1000000000]", 0, 4)]),
            plan(placement=[placed("n[1-60000][1-60000]", 0, 4)]),
            plan(placement=[placed(HUGE, 0, 4)]),
            plan(placement=[placed("n1,n\u00e9\u20ac", 0, 4)]),
            plan(placement=[placed("n[1", 0, 4)]),
            plan(placement=[placed("", 0, 4)]),
            plan(dp=2, idle_ranks=2, idle="n9"),
            plan(dp=2, idle_ranks=2, idle="n2", placement=[placed("n[1-2]", 0, 2)]),
            plan(dp=3, idle_ranks=1, idle_local_ranks=[{"nodes": "n2", "first": 2, "last": 2}]),
            plan(dp=3, idle_ranks=1, idle_local_ranks=[{"nodes": "n[1-2]", "first": 1, "last": 1}]),
            plan(dp=3, idle_ranks=1, placement=[placed("n[1-2]", 0, 3)],
                 idle_local_ranks=[{"nodes": "n2", "first": 1, "last": 1}]),
        )
        for seq, record in enumerate(cases, 1):
            self.assertEqual(self.deliver(run, attempt, [{**record, "seq": seq}], "run"), (200, {"acked_seq": seq}))
            self.assertEqual(self.stored(run), record["data"])
            self.assertIn("the least of 4", self.cluster.run("wlb", "show", run).stdout)

    def test_what_is_too_long_or_of_another_type_is_refused(self):
        run, attempt = self.started()
        for record, *words in (
                (plan(placement=[placed("n" * 4097, 0, 4)]), "placement[0]", "nodes", "4096 bytes"),
                (plan(placement=[placed("n1", 0, 1)] * 65), "placement"),
                (plan(placement=[placed("n" * 4000, 0, 1)] * 5), "plan"),
                (plan(placement=[placed("n1", -1, 1)]), "placement[0]", "first_rank"),
                (plan(placement=[{"switch": "s1"}]), "placement[0]", "nodes"),
                (plan(idle="n" * 4097), "idle"),
                (plan(idle_local_ranks=[{"nodes": "n1", "first": 0, "last": 2**20 + 1}]), "idle_local_ranks[0]", "last"),
                (plan(tp=2**20, dp=2), "layout")):
            self.refused(run, attempt, record, *words)
        self.assertIsNone(self.stored(run))

    def test_the_ranks_that_rank_0_recorded(self):
        run, attempt = self.started()
        ranks = [{"rank": rank, "node": "n1", "local_rank": rank} for rank in range(2)]
        record = {"seq": 1, "time": 1.0, "type": "attempt", "data": {
            "layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 2}, "world_size": 2, "rank_map": ranks}}
        self.assertEqual(self.deliver(run, attempt, [record])[0], 200)
        for seq, other in enumerate((plan(dp=4), plan(dp=2, idle_ranks=2, idle="n1", placement=[placed("n2", 0, 2)])), 1):
            self.assertEqual(self.deliver(run, attempt, [{**other, "seq": seq}], "run")[0], 200)
            self.assertEqual(self.show(run)["attempts"][0]["layout"]["dp"], 2)  # the attempt's is what rank 0 recorded
        good = plan(3, dp=2, idle_ranks=2, idle="n2", placement=[placed("n1", 0, 2)])
        self.assertEqual(self.deliver(run, attempt, [good], "run")[0], 200)
        self.assertEqual(self.stored(run), good["data"])

    def test_texts_that_a_terminal_would_obey(self):
        run, attempt = self.started()
        record = plan(reason="\x1b[2J\u009b31mthe least", machine="m\r\n\x07", step_s=1.0, memory_bytes=2e6, memory_margin_bytes=1e6)
        self.assertEqual(self.deliver(run, attempt, [record], "run")[0], 200)
        self.assertEqual(self.stored(run), record["data"])
        shown = self.cluster.run("wlb", "show", run).stdout
        self.assertIn("[2J 31mthe least", shown)
        self.assertIn("memory:  1.0 MB predicted", shown)  # without the margin
        listed = self.cluster.run("wlb", "runs").stdout
        self.assertEqual([c for c in shown + listed if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160], [])
        for wrong in (-1, 1e300, "many"):
            self.refused(run, attempt, plan(2, memory_margin_bytes=wrong), "memory_margin_bytes")

    def test_an_attempt_that_began_while_wlbd_was_away(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        for seq, nodes in enumerate(("n1,n1", "n[1-9999]", "n[1-2]"), 1):
            self.assertEqual(self.deliver(run, attempt, [plan(seq, placement=[placed(nodes, 0, 3)])], "run")[0], 200)
        self.assertEqual(self.deliver(run, attempt, [plan(4, placement=BOTH)], "run")[0], 200)
        self.assertEqual(self.stored(run)["placement"], BOTH)

    def test_plans_of_earlier_clients(self):
        """Without what later ones added, or with idle ranks that are not all named."""
        for number, fields in enumerate((
                {}, {"idle_ranks": 0}, {"dp": 2, "idle_ranks": 2}, {"dp": 2, "idle_ranks": 2, "idle": "n2"},
                {"dp": 1, "idle_ranks": 3, "idle": "n2", "placement": [placed("n1", 0, 1)]}, {"placement": BOTH})):
            with self.subTest(fields=fields):
                run, attempt = self.started()
                records = [event(1), plan(2, **fields), event(3)]
                self.assertEqual(self.deliver(run, attempt, records, "run"), (200, {"acked_seq": 3}))
                self.assertEqual(self.deliver(run, attempt, records, "run"), (200, {"acked_seq": 3}), "a reply got lost")
                self.assertEqual(self.stored(run)["layout"], records[1]["data"]["layout"])
                self.cluster.run("scancel", run)
                self.cluster.wait_job(int(run))

    def test_many_plans_in_a_request(self):
        """Nobody expands their lists, so that a request takes a bounded time; the last one is kept."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        records = [plan(seq, dp=8192, placement=[placed("n[1-8192]", 0, 8192)]) for seq in range(1, 1001)]
        self.assertEqual(self.deliver(run, attempt, records, "run")[0], 200)
        self.assertEqual(self.stored(run), records[-1]["data"])


if __name__ == "__main__":
    harness.main()
