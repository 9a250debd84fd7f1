#!/usr/bin/env python3
"""Stacks of the ranks of a run that hangs: `wlb stacks`, and what the coordinator refuses of them."""
import http.client
import json
import os
import signal
import socketserver
import threading
import time

import harness
import test_ranks
from harness import wait_for
from test_wlbd_api import NOBODY, Api, step
from training import TrainingTest, state_of

TRAINER = """
import os, time
if os.environ["SLURM_PROCID"] == "1":
    time.sleep(600)
while True:
    pass
"""

# Two ranks of the second node, of three on each, stand elsewhere than the others; the first attempt alone does so.
STANDS_STILL = """
import os, select, sys, time
if os.environ["WLB_ATTEMPT"] != "1":
    sys.exit()
if int(os.environ["SLURM_PROCID"]) > 3:
    time.sleep(600)
select.select([], [], [])
"""


RAS_REPORT = "NCCL version 2.27.3 compiled with CUDA 12.9\n\nErrors\n\nINCOMPLETE\n  Missing data from 1 process\n"

ITERATIONS = 288  # more than pass until a rank is stopped

class RasServer(socketserver.StreamRequestHandler):
    """Answers as NCCL's RAS service does, by the protocol of NCCL's client ncclras."""

    def handle(self):
        asked = []
        for answer in ("SERVER PROTOCOL 2\n", "OK\n", RAS_REPORT):
            asked.append(self.rfile.readline().decode())
            self.wfile.write(answer.encode())
        self.server.asked.append(asked)


class Runs(TrainingTest):
    nodes = 2

    def start_ras(self):
        """Returns a server of RAS on a port of its own."""
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), RasServer)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def stacks(self, job, *options):
        text = self.cluster.run("wlb", "stacks", str(job), *options).stdout
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        return text

    def without_age(self, text):
        """The line must be there."""
        head, age, rest = text.split("\n", 2)
        self.assertRegex(age, r"^They are [\d.:]+( s)? old\.$")
        return head + rest

    def test_a_stopped_rank_differs_and_stays_stopped(self):
        ras = self.start_ras()
        job = self.submit("--wlb-on-fault=report", nodes=2, tasks_per_node=2, layout="tp=1,cp=1,pp=1,dp=4", iterations=ITERATIONS,
                          before=f"export SLURM_JOB_GPUS=0 NCCL_RAS_ADDR=127.0.0.1:{ras.server_address[1]}")
        self.wait_step(job, 20)
        pid = self.stop_in_computation(2)
        time.sleep(3)  # until the others wait for it
        text = self.stacks(job)
        self.assertIn(f"Run {job}, attempt 1: stacks of 4 of 4 ranks, gathered at ", text)
        self.assertRegex(text, r"(?m)^3 ranks: 0-1,3$")
        self.assertRegex(text, r"(?m)^1 rank, suspect: 2$")
        self.assertRegex(text, rf"(?m)^Rank 2 on n2, process {pid}: stopped by a signal$")
        self.assertRegex(text, r"(?m)^    \S+ of \S+, number \d+, \S+ \S+: took \S+ s, ended \S+ s ago$")
        self.assertRegex(text.split("1 rank")[0], r"(?m)^  P?MPI_\w+ \(libmpi\.so")
        self.assertIn("\nNCCL's RAS service on n1 says:\n  NCCL version 2.27.3 compiled with CUDA 12.9\n  \n  Errors\n", text)
        self.assertIn("\n  INCOMPLETE\n    Missing data from 1 process\nThe reports of 1 more nodes are in --json.\n", text)
        self.assertEqual(ras.asked, [["CLIENT PROTOCOL 2\n", "TIMEOUT 2\n", "VERBOSE STATUS\n"]] * 2)
        self.assertEqual(state_of(pid), "T")
        again = self.stacks(job)
        self.assertEqual(self.without_age(again), self.without_age(text))  # at most one gathering a minute
        self.assertIn(f"  Thread {pid} of process {pid}, wlb-worker: stopped by a signal\n    do_signal_stop (kernel)\n",
                      self.stacks(job, "--last", "--rank", "2"))
        shown = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertRegex(shown, rf"  stacks of its ranks were gathered at .*: wlb stacks {job} --last\n")
        self.assertEqual(state_of(pid), "T")
        os.kill(pid, signal.SIGCONT)
        self.check_complete(self.finish(job), iterations=ITERATIONS)
        ended = self.cluster.run("wlb", "stacks", str(job))
        self.assertIn("has ended", ended.stderr)
        self.assertEqual(self.without_age(ended.stdout), self.without_age(text))

    def test_any_trainer(self):
        (self.cluster.work / "trainer.py").write_text(TRAINER, encoding="utf-8")
        job = self.cluster.sbatch("wlb run -- /usr/bin/python3 trainer.py", "--wlb-layout=tp=1,cp=1,pp=1",
                                  "--ntasks-per-node=2", nodes=2)
        self.addCleanup(self.cluster.run, "scancel", str(job))
        wait_for("its ranks", lambda: len(self.cluster.processes("trainer.py", "/usr/bin/python3")) >= 4, 60)
        time.sleep(3)  # Python starts, and the agents report
        text = self.stacks(job)
        self.assertRegex(text, r"(?m)^3 ranks: 0,2-3$")
        self.assertRegex(text, r"(?m)^1 rank, suspect: 1$")
        self.assertRegex(text, r"(?m)^Rank 1 on n1, process \d+: sleeping$")
        self.assertRegex(text, r"(?m)^    clock_nanosleep\+0x")


    def test_outliers_of_a_trainer_that_stands_still(self):
        """They are reported, and left out once the run's owner says so. The test records the trainer's steps."""
        (self.cluster.work / "stands_still.py").write_text(STANDS_STILL, encoding="utf-8")
        job = self.cluster.sbatch("wlb run -- /usr/bin/python3 stands_still.py", "--wlb-layout=tp=1,cp=1,pp=1", "--no-kill",
                                  "--wlb-on-fault=hang-after=2", "--ntasks-per-node=3", nodes=2)
        self.addCleanup(self.cluster.run, "scancel", str(job))
        wait_for("its ranks", lambda: len(self.cluster.processes("stands_still.py", "/usr/bin/python3")) >= 6, 60)
        attempt = self.cluster.sql(f"select a.uuid from attempts a join runs r on r.id = run_id where r.name = '{job}'")[0][0]
        api = Api(self.cluster)
        for number in range(1, 4):
            time.sleep(1.2)  # wlbd looks each second
            body = {"attempt_id": attempt, "source": "rank0", "job_id": job, "first_seq": number,
                    "records": [step(number, number)]}
            self.assertEqual(api.call("POST", f"/v1/runs/{job}/records", body)[0], 200)
        found, = wait_for("a verdict", lambda: self.cluster.show(job)["verdicts"], 30)
        self.assertEqual({key: found[key] for key in ("kind", "state", "ranks", "nodes", "action", "certainty", "step")},
                         {"kind": "stack_outliers", "state": "confirmed", "ranks": [4, 5], "nodes": ["n2"],
                          "action": "report", "certainty": 0.5, "step": 3})
        self.assertRegex(found["evidence"], r"^4 of 6 ranks are in .*select.*, 2 in .*sleep.*; all .* are of node n2$")
        shown = self.cluster.run("wlb", "show", str(job)).stdout
        self.assertRegex(shown, r"\nStacks and collectives in progress of attempt 1\n  4 ranks: 0-3: .*\n  2 ranks, suspect: 4-5: .*sleep")
        self.assertIn("stack outliers  ranks 4,5 on n2", self.cluster.run("wlb", "faults", str(job)).stdout)
        self.cluster.run("wlb", "set", str(job), "on-fault=outliers=evict")
        run = self.finish(job, 60)
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]], [["n1", "n2"], ["n1"]])
        self.assertEqual(run["attempts"][0]["reason"], "node n2 is in a different function from most ranks at step 3")
        self.assertEqual([(v["kind"], v["state"], v["action"]) for v in run["verdicts"]], [("stack_outliers", "over", "evict")])


class Requests(test_ranks.RanksTest):
    """Requests of an agent of n1 and of one of n2, which the test makes."""

    def setUp(self):
        self.run_id, self.attempt = self.new_attempt()
        self.links = {}
        for node in ("n1", "n2"):
            self.links[node] = http.client.HTTPConnection(self.api.address, timeout=10)
            self.addCleanup(self.links[node].close)

    def report(self, node, **more):
        path = f"/v1/runs/{self.run_id}/report"
        data = json.dumps({"attempt_id": self.attempt, "source": "node", "node": node, "rank": 2 * int(node[1:]) - 2,
                           "agent": True} | more).encode()
        link = self.links[node]
        link.request("POST", path, data, {"Authorization": "MUNGE " + self.api.credential("POST", path, data)})
        reply = link.getresponse()
        return reply.getheader("WLB-Proof") is not None, json.loads(reply.read())

    def gather(self, uid=0):
        return self.api.call("POST", f"/v1/runs/{self.run_id}/stacks/gather", {}, uid)

    def stacks(self, query=""):
        status, reply = self.api.call("GET", f"/v1/runs/{self.run_id}/stacks{query}")
        self.assertEqual(status, 200, reply)
        return reply

    def send(self, stacks_id, node, ranks, uid=0, **more):
        """As an agent does, again where the gathering is not recorded yet."""
        body = {"attempt_id": self.attempt, "node": node, "stacks_id": stacks_id, "ranks": ranks} | more
        for _ in range(10):
            status, reply = self.api.call("POST", f"/v1/runs/{self.run_id}/stacks", body, uid)
            if status != 503:
                break
            time.sleep(0.1)
        return status, reply

    @staticmethod
    def entry(rank, frames=("f+0x1 (g)",), **more):
        return {"rank": rank, "pid": 7 + rank, "state": "S", "note": "", "left_out": 0, "calls": [],
                "threads": [{"pid": 7 + rank, "tid": 7 + rank, "name": "t", "state": "S", "waits_in": "",
                             "frames": list(frames)}]} | more

    def begin(self):
        for node in ("n1", "n2"):
            self.assertEqual(self.report(node), (False, {"order": "continue"}))
        status, reply = self.gather()
        self.assertEqual((status, reply["attempt"], reply["nodes_asked"]), (200, 1, 2), reply)
        return reply["stacks_id"]

    def test_each_agent_is_asked_once_and_with_a_proof(self):
        stacks_id = self.begin()
        for node in ("n1", "n2"):
            self.assertEqual(self.report(node), (True, {"order": "continue", "want": "stacks", "stacks_id": stacks_id}))
            self.assertEqual(self.report(node), (False, {"order": "continue"}))
        self.assertEqual(self.gather()[1]["stacks_id"], stacks_id)  # within a minute
        self.assertEqual(self.report("n1"), (False, {"order": "continue"}))
        metrics = self.api.send("GET", "/metrics")[1]
        self.assertRegex(metrics, r"(?m)^wlbd_stack_gatherings_total [1-9]")

    def test_who_may_ask(self):
        self.assertEqual(self.gather(NOBODY)[0], 403)
        status, reply = self.gather()
        self.assertEqual(status, 409)
        self.assertIn("no wlb-agent reports for it", reply["error"])
        self.report("n1", agent=False)  # as a trainer that reports itself
        self.assertEqual(self.gather()[0], 409)
        self.assertEqual(self.stacks(), self.stacks() | {"stacks_id": None, "gatherings": [], "ranks": [], "left_out": 0})

    def test_what_nodes_send_is_kept(self):
        stacks_id = self.begin()
        self.assertEqual(self.send(stacks_id, "n2", [self.entry(2), self.entry(3)]), (200, {"ranks": 2}))
        self.assertEqual(self.send(stacks_id, "n1", [self.entry(1), self.entry(0)]), (200, {"ranks": 2}))
        reply = self.stacks()
        self.assertEqual(reply["ranks"], [{"node": f"n{rank // 2 + 1}"} | self.entry(rank) for rank in range(4)])
        self.assertEqual((reply["stacks_id"], reply["world_size"], reply["layout"]["tp"]), (stacks_id, 4, 2))
        self.assertEqual([(g["nodes_asked"], g["nodes"], g["ranks"]) for g in reply["gatherings"]], [(2, 2, 4)])
        self.assertEqual(self.send(stacks_id, "n2", [self.entry(3, frames=["h (i)"])]), (200, {"ranks": 1}))
        self.assertEqual([rank["rank"] for rank in self.stacks(f"?stacks_id={stacks_id}")["ranks"]], [0, 1, 3])
        self.assertEqual(self.stacks("?ranks=none")["ranks"], [])

    def test_outliers_are_named_until_the_run_moves_on(self):
        self.assertEqual(self.api.call("POST", f"/v1/runs/{self.run_id}/settings", {"on_fault": "hang-after=2"})[0], 200)
        for seq in range(2, 5):
            self.report("n1")
            self.report("n2")
            time.sleep(1.2)  # wlbd looks each second
            self.assertEqual(self.deliver(self.run_id, self.attempt, [step(seq, seq)])[0], 200)

        wanted = set()

        def asked():
            replies = [self.report(node)[1] for node in ("n1", "n2")]
            wanted.update(reply["stacks_id"] for reply in replies if "want" in reply)
            return wanted

        stacks_id, = wait_for("the request for stacks", asked, 10, 0.5)
        waits, alone = ["PMPI_Wait+0x1 (libmpi.so.40)", "main+0x1 (t)"], ["compute+0x2 (t)", "main+0x1 (t)"]
        self.send(stacks_id, "n1", [self.entry(0, waits), self.entry(1, waits)])
        self.assertEqual(self.verdicts(), [])
        self.send(stacks_id, "n2", [self.entry(2, waits), self.entry(3, alone)])
        verdict, = wait_for("a verdict", self.verdicts, 10)
        self.assertEqual((verdict["kind"], verdict["state"], verdict["ranks"], verdict["nodes"]),
                         ("stack_outliers", "confirmed", [3], ["n2"]))
        self.assertEqual(verdict["evidence"], "3 of 4 ranks are in PMPI_Wait (libmpi.so.40), 1 in compute (t)")
        open_now = self.api.call("GET", f"/v1/runs/{self.run_id}/ranks")[1]["verdicts"]
        self.assertEqual([(v["kind"], v["ranks"]) for v in open_now], [("stack_outliers", [3])])
        self.assertEqual(self.deliver(self.run_id, self.attempt, [step(5, 5)])[0], 200)
        wait_for("its end", lambda: [v["state"] for v in self.verdicts()] == ["over"], 10)

    def verdicts(self):
        return self.show(self.run_id)["verdicts"]

    def test_what_is_refused(self):
        stacks_id = self.begin()
        for status, words, arguments in (
            (403, "rank 2: the attempt has no such rank on node n1", (stacks_id, "n1", [self.entry(2)])),
            (403, "rank 1000000: the attempt has no such rank", (stacks_id, "n1", [self.entry(1000000)])),
            (403, "node 'n9': is not one of the attempt's", (stacks_id, "n9", [])),
            (403, "another user", (stacks_id, "n1", [self.entry(0)], NOBODY)),
            (409, "were not asked for", (stacks_id + 1, "n1", [self.entry(0)])),
            (400, "field 'stacks_id'", (0, "n1", [self.entry(0)])),
            (400, "listed twice", (stacks_id, "n1", [self.entry(0), self.entry(0)])),
            (400, "field 'ranks'", (stacks_id, "n1", [self.entry(rank) for rank in range(65)])),
            (400, "frames[0]: must be a string of at most 200 bytes", (stacks_id, "n1", [self.entry(0, ["f" * 201])])),
            (400, "printable", (stacks_id, "n1", [self.entry(0, ["\x1b[2J"])])),
            (400, "field 'state'", (stacks_id, "n1", [self.entry(0, state="ready")])),
            (413, "", (stacks_id, "n1", [self.entry(0, note="n" * 300000)])),
        ):
            got, reply = self.send(*arguments)
            self.assertEqual(got, status, reply)
            self.assertIn(words, reply["error"])
        self.assertEqual(self.stacks()["ranks"], [])
        status, reply = self.api.call("GET", f"/v1/runs/{self.run_id}/stacks?stacks_id=x")
        self.assertEqual(status, 400, reply)

    def test_few_gatherings_are_kept(self):
        self.begin()
        pk = self.cluster.sql(f"select id from attempts where uuid = '{self.attempt}'")[0][0]
        for number in range(1, 5):
            self.cluster.sql(f"select wlb_stacks_begin({pk}, {9000000000 + number}, 1)")
            self.cluster.sql(f"select wlb_stacks_put({pk}, {9000000000 + number}, 'n1', '[{{\"rank\":0}}]')")
        self.assertEqual([g["stacks_id"] for g in self.stacks()["gatherings"]], [9000000004, 9000000003])
        self.assertEqual(self.cluster.sql(f"select count(*) from stacks where attempt_id = {pk}"), [["2"]])
        attempts = self.cluster.sql("insert into attempts (run_id, number, uuid) select run_id, number + n, gen_random_uuid() "
                                    f"from attempts, generate_series(1, 5) n where id = {pk} returning id")
        for (other,) in attempts:
            self.cluster.sql(f"select wlb_stacks_begin({other}, 1, 1)")
        self.assertEqual([g["attempt"] for g in self.stacks()["gatherings"]], [6, 5, 4, 3])

    def test_a_gathering_has_a_bound(self):
        self.begin()
        pk = self.cluster.sql(f"select id from attempts where uuid = '{self.attempt}'")[0][0]
        self.cluster.sql(f"select wlb_stacks_begin({pk}, 9000000001, 1)")
        self.cluster.sql(f"update stack_gatherings set size_bytes = 64 << 20 where attempt_id = {pk}")
        with self.assertRaisesRegex(harness.Failed, "have 64 MiB already"):
            self.cluster.sql(f"select wlb_stacks_put({pk}, 9000000001, 'n1', '[{{\"rank\":0}}]')")


if __name__ == "__main__":
    harness.main()
