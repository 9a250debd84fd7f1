#!/usr/bin/env python3
"""What a user can do to runs, nodes and jobs that are not his: nothing. Attacks on a live cluster."""
import http.client
import json
import re
import threading
import time
import uuid

import harness
import test_wlbd_api
from harness import wait_for
from test_wlbd_api import NOBODY

DAEMON, BIN, SYS, SYNC = 1, 2, 3, 4  # other accounts without rights


class TrustTest(test_wlbd_api.RunningJobs):
    nodes = 4
    for_others = True

    def submit(self, node, uid=0, options=()):
        """A job of `uid` on one node whose step runs: a slurmd that is restarted while a step starts fails it."""
        started = self.cluster.home / "started"
        started.mkdir(exist_ok=True)
        started.chmod(0o777)
        script = f"srun sh -c 'touch {started}/$SLURM_JOB_ID; exec sleep 600'"
        result = self.cluster.run("sbatch", "--parsable", "--requeue", "-w", node, "-o", "/dev/null", *options, "--wrap",
                                  script, user=uid)
        job = int(result.stdout)
        self.addCleanup(self.cluster.run, "scancel", job)
        wait_for(f"the step of job {job}", lambda: (started / str(job)).exists(), 20)
        return job

    def report(self, run, attempt, uid, link=None, **more):
        """(status, JSON) of a report; over `link` where it must stay open."""
        path = f"/v1/runs/{run}/report"
        body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0} | more
        if link is None:
            return self.api.call("POST", path, body, uid)
        data = json.dumps(body).encode()
        link.request("POST", path, data, {"Authorization": "MUNGE " + self.api.credential("POST", path, data, uid)})
        reply = link.getresponse()
        return reply.status, json.loads(reply.read())

    def announce(self, job, uid):
        return self.api.call("POST", "/v1/runs", {"job_id": int(job), "launch": 1}, uid,
                             timeout_s=60)  # libslurm waits long for a slurmctld that is away

    def rows(self, job):
        """(uid, confirmed, state) of the runs of a job, oldest first."""
        return [tuple(row) for row in self.cluster.sql(
            f"select uid, confirmed, state from runs where job_id = {job} order by id")]

    def node_state(self, node):
        text = self.cluster.run("scontrol", "-o", "show", "node", node).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)["State"]

    def start_slurmctld(self):
        self.cluster.verb("start-service", "slurmctld")
        wait_for("slurmctld", lambda: self.cluster.run("sinfo", check=False).returncode == 0, 30)


class Nodes(TrustTest):
    def test_a_user_without_a_job_brings_down_no_node(self):
        """He reports the loss of a node while its slurmd is restarted."""
        victim = self.submit("n4")
        attempt, run = str(uuid.uuid4()), "99999"
        self.assertEqual(self.announce(run, NOBODY)[0], 200)
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.assertEqual(self.report(run, attempt, NOBODY, link, node="n4")[0], 200)
        self.cluster.verb("kill-service", "slurmd-n4")
        self.report(run, attempt, NOBODY, link, node="n4", lost_ranks=[{"rank": rank} for rank in range(8)])
        link.close()
        time.sleep(0.5)
        self.cluster.verb("start-service", "slurmd-n4")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            self.assertNotIn("DOWN", self.node_state("n4"))
            job = self.cluster.job(victim)
            self.assertEqual((job["JobState"], job["Restarts"]), ("RUNNING", "0"))
            time.sleep(0.1)

    def assert_not_set_down(self, run, attempt, link):
        """NOBODY reports that n4 is lost while its slurmd is stopped for longer than wlbd waits."""
        self.cluster.verb("kill-service", "slurmd-n4")
        self.addCleanup(lambda: wait_for("slurmd of n4", lambda: not self.node_state("n4").endswith("*"), 30))
        self.addCleanup(self.cluster.verb, "start-service", "slurmd-n4")
        self.report(run, attempt, NOBODY, link, node="n4", agent=True)
        link.close()
        wait_for("what wlbd does about n4", lambda: re.search(f"run {run}: node n4 is not set DOWN|run {run}: node n4 lost",
                                                              (self.cluster.dir / "log/wlbd.out").read_text()), 30)
        time.sleep(1)
        self.assertNotIn("DOWN", self.node_state("n4"))

    def test_a_user_whose_job_has_never_run_brings_down_no_node(self):
        """It is held, and wlbd would set a lost node DOWN for a job that is requeued."""
        victim = self.submit("n4")
        job = int(self.cluster.run("sbatch", "--parsable", "--hold", "-o", "/dev/null", "--wrap", "sleep 600",
                                   user=NOBODY).stdout)
        self.addCleanup(self.cluster.run, "scancel", job)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        link, attempt = http.client.HTTPConnection(self.api.address, timeout=10), str(uuid.uuid4())
        self.assertEqual(self.report(job, attempt, NOBODY, link, node="n4", agent=True)[0], 200)
        self.assert_not_set_down(job, attempt, link)
        self.assertEqual(self.cluster.job(victim)["JobState"], "RUNNING")

    def test_a_user_brings_down_no_node_that_his_job_had_before(self):
        """He queues it again, and another user's job gets the node."""
        job = self.submit("n4", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, reply = self.ask(str(job), ["n4"], uid=NOBODY)
        self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n4"]))
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.assertEqual(self.report(job, attempt, NOBODY, link, node="n4", agent=True)[0], 200)
        self.cluster.run("scontrol", "requeuehold", job, user=NOBODY)
        wait_for("the job in the queue", lambda: self.cluster.job(job)["JobState"] == "PENDING", 60)
        victim = self.submit("n4")
        self.assert_not_set_down(job, attempt, link)
        self.assertEqual(self.cluster.job(victim)["JobState"], "RUNNING")

    def test_a_user_without_a_job_gives_no_evidence_against_a_node(self):
        """He reports of it while it is away, and then no more: its loss is recorded in his run, and no run avoids the node."""
        self.addCleanup(lambda: wait_for("n3", lambda: self.node_state("n3") == "IDLE", 30))
        self.addCleanup(self.cluster.verb, "start-service", "slurmd-n3")
        self.cluster.verb("kill-service", "slurmd-n3")
        for run in ("99991", "99992"):
            self.assertEqual(self.announce(run, NOBODY)[0], 200)
            link = http.client.HTTPConnection(self.api.address, timeout=10)
            self.assertEqual(self.report(run, str(uuid.uuid4()), NOBODY, link, node="n3")[0], 200)
            link.close()
        lost = "select count(*) from faults where kind = 'node_lost' and node = 'n3' and run_id in " \
               "(select id from runs where job_id in (99991, 99992))"
        wait_for("its loss", lambda: self.cluster.sql(lost) == [["2"]], 15)
        self.assertEqual(self.cluster.sql("select * from node_evidence where node = 'n3'"), [])

    def test_reports_from_elsewhere_do_not_hide_a_lost_node(self):
        """A user who shares n4 goes on reporting of it, from another address, after its slurmd has stopped."""
        victim, job = self.submit("n4", options=["-n1"]), self.submit("n4", NOBODY, options=["-n1"])
        attempts = {}
        for run, uid in ((victim, 0), (job, NOBODY)):
            self.assertEqual(self.announce(run, uid)[0], 200)
            attempts[uid], reply = self.ask(str(run), ["n4"], uid=uid)
            self.assertEqual(reply["decision"], "start")
        link = http.client.HTTPConnection(self.api.address, timeout=10, source_address=("127.0.0.2", 0))
        self.addCleanup(link.close)
        elsewhere = threading.Event()
        self.addCleanup(elsewhere.set)

        def go_on_reporting():
            while not elsewhere.wait(0.3):
                self.report(job, attempts[NOBODY], NOBODY, link, node="n4")

        thread = threading.Thread(target=go_on_reporting)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(elsewhere.set)
        self.cluster.verb("kill-service", "slurmd-n4")
        self.addCleanup(self.cluster.verb, "restore-node", "4")
        self.assertEqual(self.report(victim, attempts[0], 0, node="n4", lost_ranks=[{"rank": 0}])[0], 200)
        wait_for("n4 to be set DOWN", lambda: "DOWN" in self.node_state("n4"), 15)

    def test_a_job_of_ones_own_is_no_more_than_that(self):
        """Other nodes, ranks and steps than those of one's own attempt are refused, and nothing is done to them."""
        victim = self.submit("n4")
        job = self.submit("n1", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, reply = self.ask(str(job), ["n1", "n4"], uid=NOBODY)
        self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n1"]))
        self.assertEqual(self.report(job, attempt, NOBODY)[0], 200)
        for more, word in (
            ({"node": "n4"}, "n4"),
            ({"rank": 2}, "rank 2"),
            ({"lost_ranks": [{"rank": 2}]}, "lost_ranks"),
            ({"lost_ranks": [{"rank": 0}, {"rank": 1}, {"rank": 1}]}, "at most 2"),
            ({"exits": [{"rank": 7, "code": 1}]}, "exits"),
            ({"ranks": [0, 1, 2]}, "ranks"),
            ({"source": "run", "step_id": f"{victim}.0"}, f"{victim}.0"),
            ({"source": "run", "step_id": f"{job}.0x"}, "step_id"),
        ):
            status, reply = self.report(job, attempt, NOBODY, **more)
            self.assertEqual((status, word in reply["error"]), (403, True), reply)
        status, reply = self.api.call("POST", f"/v1/runs/{job}/attempts", {
            "attempt_id": str(uuid.uuid4()), "nodes": ["n1"],
            "previous": {"attempt_id": attempt, "exit_code": 1, "step_id": f"{victim}.0"}}, NOBODY)
        self.assertEqual(status, 400, reply)
        # He tells the launcher's step and loses a rank, so that wlbd sees to the step's end.
        self.report(job, attempt, NOBODY, source="run", step_id=f"{victim}.0")
        self.report(job, attempt, NOBODY, lost_ranks=[{"rank": 0}])
        time.sleep(7)
        self.assertIn(f"{victim}.0", self.cluster.run("squeue", "--steps", "-h", "-o", "%i").stdout.split())

    def test_names_that_are_no_nodes_are_not_stored(self):
        job = self.submit("n1", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, reply = self.ask(str(job), ["n1", "n4", *(f"invented{number}" for number in range(8000))], uid=NOBODY)
        self.assertEqual((reply["nodes"], reply["missing"]), (["n1"], ["n4"]))
        stored = self.cluster.sql(f"select length(decision::text) from attempts where uuid = '{attempt}'")
        self.assertLess(int(stored[0][0]), 2000)

    def test_ranks_are_recorded_on_nodes_of_the_job(self):
        """Late records too are stored: of an attempt on other nodes, before the job was requeued, while wlbd was away."""
        job = self.submit("n1", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, _ = self.ask(str(job), ["n1"], uid=NOBODY)

        def record(seq, *nodes):
            places = [{"rank": rank, "node": node, "local_rank": 0} for rank, node in enumerate(nodes)]
            return {"seq": seq, "time": 1790000000.0, "type": "attempt",
                    "data": {"world_size": len(nodes), "rank_map": places}}

        status, reply = self.deliver(str(job), attempt, [record(1, "n1", "n4")], uid=NOBODY)
        self.assertEqual((status, "rank_map[1]: node 'n4'" in reply["error"]), (400, True), reply)
        self.assertEqual(self.deliver(str(job), attempt, [record(1, "n1", "n1")], uid=NOBODY), (200, {"acked_seq": 1}))
        for late in (["n2"], ["n2", "n3", "n4"]):
            other = str(uuid.uuid4())
            for _ in range(2):  # as where the first reply was lost
                self.assertEqual(self.deliver(str(job), other, [record(1, *late)], uid=NOBODY), (200, {"acked_seq": 1}))
            stored = self.cluster.sql(f"select m.node from rank_map m join attempts a on a.id = m.attempt_id "
                                      f"where a.uuid = '{other}' order by m.rank")
            self.assertEqual([node for (node,) in stored], late)

    def test_an_attempt_of_somebody_else_is_not_started_again(self):
        victim = self.submit("n4")
        self.announce(victim, 0)
        attempt = str(uuid.uuid4())
        self.deliver(str(victim), attempt, [test_wlbd_api.event(1)])  # of a plain srun: there is no decision yet
        job = self.submit("n1", NOBODY)
        self.announce(job, NOBODY)
        status, reply = self.api.call("POST", f"/v1/runs/{job}/attempts",
                                      {"attempt_id": attempt, "nodes": ["n1"]}, NOBODY)
        self.assertEqual(status, 409, reply)
        self.assertEqual(self.cluster.sql(f"select launched, nodes from attempts where uuid = '{attempt}'"),
                         [["f", "{}"]])

    def test_more_lost_ranks_than_a_node_has(self):
        job = self.submit("n1", NOBODY)
        self.announce(job, NOBODY)
        attempt, _ = self.ask(str(job), ["n1"], uid=NOBODY)
        for count, refusal in ((5000, 400), (400000, 413)):
            many = [{"rank": rank} for rank in range(count)]
            status, reply = self.report(job, attempt, NOBODY, lost_ranks=many)
            self.assertEqual(status, refusal, reply)
        self.assertEqual(self.show(str(job))["faults"], [])

    def test_more_attempts_than_one_user_can_have(self):
        """Of jobs that Slurm does not know; other users' are taken as before."""
        replies = [self.deliver("99997", str(uuid.uuid4()), [test_wlbd_api.event(1)], uid=BIN)[0] for _ in range(70)]
        self.assertEqual(replies, [200] * 64 + [503] * 6)
        self.assertEqual(self.deliver("99997", str(uuid.uuid4()), [test_wlbd_api.event(1)], uid=DAEMON)[0], 200)

    def test_more_open_runs_than_one_user_can_have(self):
        """Neither a new one, nor one that is over and would be opened again by a new attempt."""
        self.cluster.sql("insert into runs (name, job_id, uid, user_name, confirmed, submitted_at) "
                         f"select n, n, {SYNC}, 'sync', true, now() from generate_series(800001, 804096) n")
        self.cluster.sql("insert into runs (name, job_id, uid, user_name, state, ended_by, ended_at) "
                         f"values (99994, 99994, {SYNC}, 'sync', 'failed', 'coordinator', now())")
        self.addCleanup(self.cluster.sql, f"delete from runs where uid = {SYNC}")
        status, reply = self.announce(99995, SYNC)
        self.assertEqual((status, "4096 open runs" in reply.get("error", "")), (503, True), reply)
        begin = ("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c",
                 f"select wlb_attempt_create(id, '{uuid.uuid4()}') from runs where name = '99994'")
        self.assertIn("4096 open runs", self.cluster.run(*begin, check=False).stderr)
        self.assertEqual(self.announce(99995, DAEMON)[0], 200)
        self.cluster.sql("update runs set state = 'complete', ended_at = now() where job_id = 804096")
        self.cluster.run(*begin)
        self.assertEqual(self.report("99994", str(uuid.uuid4()), SYNC)[0], 200)

    def test_attempts_that_others_name_do_not_count_against_their_owner(self):
        """64 attempts of one user have ended and left wlbd's memory; another user names them all in reports."""
        run, attempts = "99996", [str(uuid.uuid4()) for _ in range(64)]
        for attempt in attempts:
            self.assertEqual(self.deliver(run, attempt, [test_wlbd_api.event(1)], uid=SYS)[0], 200)
        self.cluster.sql(f"update attempts set state = 'complete', ended_at = now() where run_id = "
                         f"(select id from runs where name = '{run}')")
        self.cluster.verb("kill-wlbd")
        self.cluster.verb("start-wlbd")
        named = [self.report(run, attempt, DAEMON)[0] for attempt in attempts]
        self.assertEqual(named, [403] * 64)
        self.assertEqual(self.deliver(run, str(uuid.uuid4()), [test_wlbd_api.event(1)], uid=SYS)[0], 200)


class Owners(TrustTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 500\n")

    def test_the_owner_is_not_shut_out_by_who_came_first(self):
        job = self.submit("n1", NOBODY)
        self.cluster.verb("kill-service", "slurmctld")
        attempts = {uid: str(uuid.uuid4()) for uid in (DAEMON, NOBODY)}
        try:
            for uid, attempt in attempts.items():
                self.assertEqual(self.announce(job, uid), (200, {"run_id": str(job), "state": "starting"}))
                self.assertEqual(self.deliver(str(job), attempt, [test_wlbd_api.step(1, 1)], uid=uid),
                                 (200, {"acked_seq": 1}))
                self.assertEqual(self.report(job, attempt, uid), (200, {"order": "continue"}))
            self.assertEqual(self.rows(job), [("1", "f", "starting"), ("65534", "f", "starting")])
            for uid, user in ((DAEMON, "daemon"), (NOBODY, "nobody")):
                self.assertEqual(self.api.call("GET", f"/v1/runs/{job}", uid=uid)[1]["user"], user)
            status, _ = self.api.call("POST", f"/v1/runs/{job}/end", {"state": "failed"}, DAEMON)
            self.assertEqual(status, 200)
        finally:
            self.start_slurmctld()
        wait_for("Slurm's word", lambda: self.rows(job) == [("1", "f", "failed"), ("65534", "t", "starting")], 30)
        self.assertEqual(self.show(str(job))["user"], "nobody")
        self.assertEqual(self.announce(job, DAEMON)[0], 403)
        self.assertEqual(self.api.call("POST", f"/v1/runs/{job}/end", {"state": "failed"}, DAEMON)[0], 403)
        self.assertEqual(self.report(job, attempts[NOBODY], NOBODY)[0], 200)

    def test_a_run_that_is_not_its_announcers_is_closed(self):
        job = self.submit("n1", NOBODY)
        self.cluster.verb("kill-service", "slurmctld")
        try:
            self.assertEqual(self.announce(job, DAEMON)[0], 200)
        finally:
            self.start_slurmctld()
        wait_for("the end of the run", lambda: self.rows(job) == [("1", "f", "failed")], 30)
        self.assertIn("belongs to nobody", self.cluster.sql(f"select reason from runs where job_id = {job}")[0][0])
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        self.assertEqual(self.rows(job), [("1", "f", "failed"), ("65534", "t", "starting")])


class Evidence(TrustTest):
    """What a user can have held against a node that is not his job's: nothing."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 500\n")

    def wait_for_n4(self):
        wait_for("n4", lambda: not self.node_state("n4").endswith("*"), 30)

    def lose(self, run, attempt, link):
        """NOBODY reports of n4, and then no more, while its slurmd is stopped. Returns the proof of its loss."""
        self.addCleanup(self.cluster.verb, "start-service", "slurmd-n4")
        self.cluster.verb("kill-service", "slurmd-n4")
        self.assertEqual(self.report(run, attempt, NOBODY, link, node="n4", agent=True)[0], 200)
        link.close()
        proofs = f"select f.proof from faults f join attempts a on a.id = f.attempt_id where a.uuid = '{attempt}' " \
                 "and f.kind = 'node_lost' and f.node = 'n4'"
        wait_for("the loss of n4", lambda: self.cluster.sql(proofs), 20)
        self.assertEqual(self.cluster.sql("select * from node_evidence where node = 'n4'"), [])
        return json.loads(self.cluster.sql(proofs)[0][0])

    def test_nodes_that_slurm_has_not_named_give_no_evidence(self):
        """He asks for an attempt on nodes that are not his job's, while slurmctld is away."""
        self.addCleanup(self.wait_for_n4)
        began_s = time.time()
        job = self.submit("n1", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, reply = self.ask(str(job), ["n1", "n4"], uid=NOBODY)
        self.assertEqual((reply["nodes"], reply["of_job"]), (["n1"], True))
        state = self.cluster.dir / "slurm/job_state"
        wait_for("the job in slurmctld's saved state", lambda: state.stat().st_mtime > began_s, 20)
        self.cluster.verb("kill-service", "slurmctld")
        self.addCleanup(self.start_slurmctld)
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        attempt, reply = self.ask(str(job), ["n1", "n4"], uid=NOBODY, previous={"attempt_id": attempt, "exit_code": 75})
        self.assertEqual((reply["nodes"], reply["of_job"]), (["n1", "n4"], False))
        self.assertIn("job_unknown", self.lose(job, attempt, link))

    def test_a_job_that_is_over_gives_no_evidence(self):
        """He goes on reporting of its node, whose slurmd is stopped later."""
        self.addCleanup(self.wait_for_n4)
        job = self.submit("n4", NOBODY)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        attempt, _ = self.ask(str(job), ["n4"], uid=NOBODY)
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.assertEqual(self.report(job, attempt, NOBODY, link, node="n4", agent=True)[0], 200)
        self.cluster.run("scancel", job)
        wait_for("the end of the job", lambda: self.cluster.job(job)["JobState"] == "CANCELLED", 20)
        wait_for("an idle n4", lambda: self.node_state("n4") == "IDLE", 30)
        for _ in range(4):  # more than four polls, each of which would close a run that nobody reports for
            time.sleep(1)
            self.report(job, attempt, NOBODY, link, node="n4", agent=True)
        self.assertIn("job_over", self.lose(job, attempt, link))

    def test_a_run_whose_job_slurm_has_forgotten_is_not_continued(self):
        self.assertEqual(self.announce(99995, NOBODY)[0], 200)
        self.cluster.sql("update runs set confirmed = true where job_id = 99995")
        link = http.client.HTTPConnection(self.api.address, timeout=10)
        self.addCleanup(link.close)  # a run of which a process reports stays open
        self.assertEqual(self.report(99995, str(uuid.uuid4()), NOBODY, link)[0], 200)
        status, reply = self.api.call("POST", "/v1/runs/99995/attempts",
                                      {"attempt_id": str(uuid.uuid4()), "nodes": ["n1", "n2"]}, NOBODY)
        self.assertEqual((status, "no longer knows job 99995" in reply["error"]), (409, True), reply)


class ManyRuns(TrustTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 500\n")

    def job_questions(self):
        """How often slurmctld was asked for one job."""
        found = re.search(r"REQUEST_JOB_INFO_SINGLE .*count:([0-9]+)", self.cluster.run("sdiag").stdout)
        return int(found[1])

    def test_one_job_has_so_many_open_runs(self):
        """Reports name ever more runs of a job. Of those that there are Slurm is asked for the job, not for each."""
        job = self.submit("n1", NOBODY)
        self.cluster.sql("insert into runs (name, job_id, launch, uid, user_name, confirmed, submitted_at) "
                         f"select '{job}.' || n, {job}, n, {NOBODY}, 'nobody', true, now() from generate_series(2, 961) n")
        replies = [self.report(f"{job}.{launch}", str(uuid.uuid4()), NOBODY) for launch in range(962, 1032)]
        statuses = [status for status, _ in replies]
        self.assertIn(statuses, [[200] * 64 + [503] * 6, [200] * 63 + [503] * 7])  # Slurm's plugin may announce one
        self.assertRegex(replies[-1][1]["error"], f"job {job}: has 1024 open runs, and can have 1024; try again")
        self.assertEqual(len(self.rows(job)), 1024)
        before = self.job_questions()
        time.sleep(4)
        self.assertIn(self.job_questions() - before, range(2, 64))
        self.assertEqual(self.announce(job, DAEMON)[0], 403)


class Claims(TrustTest):
    """A user claims nodes for his own attempt."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 500\n")

    def claim(self, run, attempt, nodes, lost, uid):
        """Records an attempt with a rank on each node, and the loss of one."""
        places = [{"rank": rank, "node": node, "local_rank": 0} for rank, node in enumerate(nodes)]
        data = {"layout": {"tp": 1, "cp": 1, "pp": 1, "dp": len(nodes)}, "world_size": len(nodes), "rank_map": places}
        for seq, (kind, data) in enumerate((("attempt", data), ("fault", {"kind": "node_lost", "node": lost})), 1):
            self.deliver(run, attempt, [{"seq": seq, "time": time.time(), "type": kind, "data": data}], uid=uid)

    def two_nodes(self):
        """A running job of NOBODY on two nodes, whose run is announced."""
        job = int(self.cluster.run("sbatch", "--parsable", "--requeue", "-N2", "-o", "/dev/null", "--wrap", "sleep 600",
                                   user=NOBODY).stdout)
        self.addCleanup(self.cluster.run, "scancel", job)
        wait_for(f"job {job}", lambda: self.cluster.job(job)["JobState"] == "RUNNING", 20)
        self.assertEqual(self.announce(job, NOBODY)[0], 200)
        return job

    def test_a_requeued_job_gets_no_claimed_nodes(self):
        for launched in (False, True):
            job, attempt = self.two_nodes(), str(uuid.uuid4())
            if launched:
                nodes = self.cluster.run("scontrol", "show", "hostnames", self.cluster.job(job)["NodeList"]).stdout.split()
                attempt, reply = self.ask(str(job), nodes, uid=NOBODY)
                self.assertEqual(reply["decision"], "start", reply)
            self.claim(str(job), attempt, [f"n{number}" for number in range(1, 5)], "n4", NOBODY)
            self.cluster.run("scontrol", "requeuehold", job, user=NOBODY)
            wait_for("the job in the queue", lambda job=job: self.cluster.job(job)["JobState"] == "PENDING", 60)
            time.sleep(6)  # more than ten polls
            run = self.show(str(job))
            self.assertEqual([event["kind"] for event in run["events"] if event["kind"] == "job_resized"], [])
            if launched:
                self.assertEqual(sorted(run["attempts"][0]["nodes"]), sorted(nodes))
            self.cluster.run("scontrol", "release", job, user=NOBODY)
            wait_for("its second start", lambda job=job: self.cluster.job(job)["JobState"] == "RUNNING", 150)
            self.assertEqual(self.cluster.job(job)["NumNodes"], "2")
            self.cluster.run("scancel", job)

    def test_a_told_resize_is_no_resize(self):
        """An event of the name that wlbd uses itself, with a number that no integer holds, stops no poll of the jobs."""
        job, attempt = self.two_nodes(), str(uuid.uuid4())
        detail = f"job {job} was requeued and may start on {10**30} to 2 nodes"
        record = {"seq": 1, "time": time.time(), "type": "event", "data": {"kind": "job_resized", "detail": detail}}
        self.assertEqual(self.deliver(str(job), attempt, [record], uid=NOBODY)[0], 200)
        other = self.two_nodes()
        self.cluster.run("scancel", other)
        wait_for("the end of another run", lambda: self.show(str(other))["state"] == "cancelled", 40)


class ForgottenJob(TrustTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 3600000\n")  # a poll of the jobs would end both runs

    def test_a_job_that_slurm_has_forgotten(self):
        """As after MinJobAge: whoever asks has a run of his own."""
        for uid in (DAEMON, NOBODY):
            self.assertEqual(self.announce(99998, uid)[0], 200)
        self.assertEqual([row[:2] for row in self.rows(99998)], [("1", "f"), ("65534", "f")])
        status, reply = self.api.call("POST", "/v1/runs/99998/end", {"state": "complete"}, NOBODY)
        self.assertEqual((status, reply["state"]), (200, "complete"))
        # wlbd may have found by now that Slurm does not know the job, and have ended the other run as failed.
        self.assertIn(self.rows(99998)[0], [("1", "f", "starting"), ("1", "f", "failed")])


if __name__ == "__main__":
    harness.main()
