#!/usr/bin/env python3
"""Ranks that die at the same step on several nodes: the program fails there, and no node is left out or named."""
import harness
import test_wlbd_api
import training
from test_wlbd_api import step

ATTEMPT = {"layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 4}, "world_size": 4, "seq_length": 256, "train_iters": 90,
           "rank_map": [{"rank": rank, "node": f"n{rank // 2 + 1}", "local_rank": rank % 2} for rank in range(4)],
           "model": {"hidden_size": 64}, "dtype": "float32", "device": "cpu", "checkpoint": None}
AT_THE_START = "the program fails before its first step on more than one node"
UNKNOWN = "3 attempts in a row ended without a new step and without a lost node"


class Steps(test_wlbd_api.RunningJobs):
    """Which crashes are at the same step, whatever the reports of the nodes say."""

    def record(self, run, attempt, resumed):
        """As wlb-worker does before its first step."""
        self.assertEqual(self.deliver(run, attempt, [{"seq": 1, "time": 1790000000.0, "type": "attempt",
                                                      "data": ATTEMPT | {"resumed_step": resumed}}])[0], 200)

    def begin(self, saved=None):
        """A run and its first attempt, which with `saved` makes that step and its checkpoint."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        if saved is not None:
            self.record(run, attempt, 0)
            self.deliver(run, attempt, [step(2, saved), {"seq": 3, "time": 1790000003.0, "type": "checkpoint", "data": {
                "step": saved, "path": f"ck/step_{saved}", "bytes": 5, "duration_s": 0.1}}])
        return run, attempt

    def crash(self, run, attempt, node, reported):
        """A rank dies on the node, which has reported that step, and the next attempt is asked for."""
        self.cluster.sql(f"""insert into faults (run_id, attempt_id, kind, is_loss, strength, rank, node, step, cause, detected_at)
            select run_id, id, 'rank_lost', true, 1, 0, '{node}', {reported}, true, now() from attempts where uuid = '{attempt}'""")
        return self.fail_attempt(run, attempt, 139)

    def fail_attempt(self, run, attempt, exit_code=1):
        return self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": exit_code, "step_id": ""})

    def assert_stopped(self, run, reply, reason):
        self.assertEqual((reply["decision"], reply.get("state")), ("stop", "failed"), reply)
        self.assertTrue(reply["reason"].startswith(reason), reply["reason"])
        self.assertEqual({tuple(attempt["nodes"]) for attempt in self.show(run)["attempts"]}, {("n1", "n2")})

    def test_after_a_checkpoint(self):
        """The first attempt has saved step 8 and dies in the next; later ones die there before their nodes report a step."""
        run, attempt = self.begin(saved=8)
        attempt, reply = self.crash(run, attempt, "n1", 8)
        for node, reported in (("n2", "0"), ("n1", "null"), ("n2", "0")):
            self.assertEqual(reply["checkpoint"]["step"], 8)
            self.record(run, attempt, 8)
            attempt, reply = self.crash(run, attempt, node, reported)
        self.assert_stopped(run, reply, "the program fails at step 8 on more than one node")

    def test_before_the_attempt_is_recorded(self):
        """The run is known to record its steps: it has done none since the checkpoint."""
        run, attempt = self.begin(saved=8)
        for node, reported in (("n1", "8"), ("n2", "0"), ("n1", "0"), ("n2", "0")):
            attempt, reply = self.crash(run, attempt, node, reported)
        self.assert_stopped(run, reply, "the program fails at step 8 on more than one node")

    def test_from_scratch(self):
        run, attempt = self.begin()
        for node in ("n1", "n2", "n1"):
            self.record(run, attempt, 0)
            attempt, reply = self.crash(run, attempt, node, 0)
        self.assert_stopped(run, reply, AT_THE_START)

    def test_on_one_node(self):
        """It may be the node's fault."""
        run, attempt = self.begin()
        self.api.call("POST", f"/v1/runs/{run}/settings", {"on_fault": "crash=report"})
        for _ in range(3):
            self.record(run, attempt, 0)
            attempt, reply = self.crash(run, attempt, "n1", 0)
        self.assert_stopped(run, reply, UNKNOWN)

    def test_with_progress_between(self):
        """A rank died on n1 at a step that is repeated weeks later, when one dies on n2; the run ends for another reason."""
        run, attempt = self.begin()
        self.deliver(run, attempt, [step(1, 8)])
        attempt, _ = self.crash(run, attempt, "n1", 8)
        self.deliver(run, attempt, [step(1, 8), step(2, 9)])
        attempt, _ = self.fail_attempt(run, attempt)
        self.deliver(run, attempt, [step(1, 8)])
        attempt, _ = self.crash(run, attempt, "n2", 8)
        for _ in range(2):
            attempt, reply = self.fail_attempt(run, attempt)
        self.assert_stopped(run, reply, UNKNOWN)

    def test_a_trainer_that_records_nothing(self):
        """Nobody knows at which steps its ranks died."""
        run, attempt = self.begin()
        for node in ("n1", "n2", "n1"):
            attempt, reply = self.crash(run, attempt, node, 0)
        self.assert_stopped(run, reply, UNKNOWN)

    def test_a_trainer_that_reports_no_step(self):
        """It has recorded steps since the attempt began, and died after one of them."""
        run, attempt = self.begin()
        for node in ("n1", "n2", "n1", "n2"):
            self.deliver(run, attempt, [step(1, 8)])
            attempt, reply = self.crash(run, attempt, node, 0)
        self.assert_stopped(run, reply, UNKNOWN)


class Worker(training.TrainingTest):
    """wlb-worker with a fault in the program: a rank dies by SIGSEGV after a step, on another node in each attempt."""

    nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.cluster.work / "faulty"
        folder.mkdir()
        (folder / "wlb-worker").symlink_to(harness.BUILD / "tests/worker_crash")

    def crash_after(self, number, attempts):
        """Trains until wlbd stops the run; returns its reason."""
        job = self.submit(nodes=3, tasks_per_node=1, before=f"export CRASH_AFTER={number} PATH=$PWD/faulty:$PATH")
        self.assertEqual(self.cluster.wait_job(job, 240), "FAILED", self.cluster.output(job))
        run = self.cluster.show(job)
        self.assertEqual((run["state"], run["last_step"]), ("failed", number or None), run["reason"])
        nodes = [f"n{attempt % 3 + 1}" for attempt in range(attempts)]
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]],
                         [("rank_lost", node) for node in nodes], run["faults"])
        self.assertEqual([(attempt["nodes"], attempt["exit_code"]) for attempt in run["attempts"]],
                         [(["n1", "n2", "n3"], 139)] * attempts)
        self.assertNotRegex(run["reason"], r"\bn[1-3]\b")
        self.assertIn(run["reason"], self.cluster.output(job))
        self.assertIn("no run has lost a node or excluded it", self.cluster.run("wlb", "nodes").stdout)
        return run["reason"]

    def test_between_two_saves(self):
        number = training.SAVE_INTERVAL + 6
        self.assertTrue(self.crash_after(number, 4).startswith(f"the program fails at step {number} on more than one node: 3 attempts"))

    def test_after_a_save(self):
        """Later attempts die before they have done a step."""
        number = training.SAVE_INTERVAL
        self.assertTrue(self.crash_after(number, 4).startswith(f"the program fails at step {number} on more than one node: 3 attempts"))

    def test_before_the_first_step(self):
        self.assertTrue(self.crash_after(0, 3).startswith(AT_THE_START))


if __name__ == "__main__":
    harness.main()
