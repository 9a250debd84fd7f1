#!/usr/bin/env python3
"""Requests of a user without a job, or about nodes, jobs and steps of other users, have no effect on other users."""
import os
import pathlib
import re
import signal
import subprocess
import time
import uuid

import hostile
from harness import wait_for
from hostile import Caller, HostileTest, delivery, event, report


def lose_node(place, run, attempt, node, seconds, more=None):
    """Reports from `node` that its rank is gone, closes the connection, and again; without `attempt` each time as another
    one. Returns the last status."""
    end, status = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        caller = Caller(place, 5)
        body = report(attempt or str(uuid.uuid4()), node, lost_ranks=[{"rank": 0, "time": time.time()}]) | (more or {})
        status, _ = caller.post(f"/v1/runs/{run}/report", body)
        caller.close()
        time.sleep(0.05)
    return status


def announce(place, job, **more):
    return Caller(place).post("/v1/runs", {"run_id": str(job), "job_id": job, "restart_count": 0} | more)[0]


def claim_node(place, run, attempt, node):
    """Every way to make a node one of the attempt's: a rank map, the launcher's list, a new attempt."""
    caller = Caller(place)
    places = [{"rank": 0, "node": node, "local_rank": 0}]
    record = {"seq": 1, "time": time.time(), "type": "attempt",
              "data": {"layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 1}, "world_size": 1, "rank_map": places}}
    caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, [record]))
    caller.post(f"/v1/runs/{run}/attempts", {"attempt_id": str(uuid.uuid4()), "job_id": int(run), "nodes": [node],
                                             "tasks_per_node": 1, "previous": {"attempt_id": attempt, "exit_code": 1}})
    caller.post(f"/v1/runs/{run}/records", delivery(run, str(uuid.uuid4()), [record]))


def act_on_others_run(place, run, attempt):
    """Makes every request that acts on a run, for a run of another user; returns their statuses."""
    caller = Caller(place)
    new = str(uuid.uuid4())
    found = []
    for name in (run, f"{run}.2"):
        for path, body in (
            ("report", report(attempt, "n1")), ("report", report(new, "n1")),
            ("report", {"attempt_id": attempt, "source": "run", "node": "n1", "step_id": f"{run}.0"}),
            ("records", delivery(run, attempt, [event(1)])), ("records", delivery(run, new, [event(1)], "run")),
            ("attempts", {"attempt_id": new, "job_id": int(run), "nodes": ["n1"]}),
            ("settings", {"on_fault": "report"}), ("end", {"state": "cancelled"}),
            ("end", {"state": "complete", "attempt_id": attempt})):
            status, _ = caller.post(f"/v1/runs/{name}/{path}", body)
            found.append((name, path, status))
    found.append((run, "announce", announce(place, int(run), launch=1)))
    found.append((run, "announce", announce(place, int(run), launch=2)))
    return found


class Nodes(HostileTest):
    """n4's slurmd is restarted, as an administrator does, while somebody says that n4 is lost."""

    def stop_slurmd(self, number):
        os.kill(int((self.cluster.dir / f"run/slurmd-n{number}.pid").read_text().split()[0]), signal.SIGKILL)

    def start_slurmd(self, number):
        """Without clearing the node up as the cluster's restore-node does: its job goes on."""
        with open(self.cluster.dir / f"log/slurmd-n{number}.out", "ab") as log:
            slurmd = subprocess.Popen(["slurmd", "-D", "-N", f"n{number}"], stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=log, start_new_session=True, env=self.cluster.env | {
                                          "PATH": f"{self.cluster.env['PATH']}:/usr/sbin",
                                          "WLB_CLUSTER_DAEMON": str(self.cluster.dir)})
        self.shared_cluster.slurmds.append(slurmd)  # ended with the cluster
        began = pathlib.Path(f"/proc/{slurmd.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        (self.cluster.dir / f"run/slurmd-n{number}.pid").write_text(f"{slurmd.pid} {began}\n")

    def lose_n4(self, run, attempt):
        self.stop_slurmd(4)
        attack = self.begin_attack(lose_node, run, attempt, "n4", 3)
        time.sleep(1)
        self.start_slurmd(4)
        attack.results()
        time.sleep(1)

    def test_unknown_job(self):
        self.attack(announce, 999999)
        self.lose_n4(999999, None)

    def test_unknown_job_that_claims_the_node(self):
        attempt = str(uuid.uuid4())
        self.attack(announce, 999998)
        self.attack(claim_node, 999998, attempt, "n4")
        self.lose_n4(999998, attempt)

    def test_own_job_on_another_node(self):
        run, attempt = self.own_run("--nodelist=n1")
        self.attack(claim_node, run, attempt, "n4")
        self.lose_n4(run, attempt)

    def test_own_new_attempts_on_another_node(self):
        run, _ = self.own_run("--nodelist=n1")
        self.lose_n4(run, None)

    def test_step_of_another_job(self):
        """wlbd ends the step of an attempt that does not end by itself: only of that job."""
        run, attempt = self.own_run("--nodelist=n1")
        launcher = {"source": "run", "node": "n1", "step_id": f"{self.victim}.0"}
        self.attack(lose_node, run, attempt, "n1", 1)
        self.attack(lose_node, run, attempt, "n1", 6.5, launcher)


class Names(HostileTest):
    def test_run_of_another(self):
        attempt = self.shown(self.victim)["attempts"][0]["attempt_id"]
        found = self.attack(act_on_others_run, str(self.victim), attempt)[0]
        # JOBID.2 may be recorded for the stranger alone; nothing of root's is touched.
        self.assertEqual([entry for entry in found if entry[0] == str(self.victim) and entry[2] < 400], [])

    def test_names_taken_in_advance(self):
        """The next jobs' names are taken by a stranger, also with slurmctld stopped; the owner's run is his own."""
        following = self.victim + 2
        self.attack(take_names, range(following, following + 30))
        slurmctld = int((self.cluster.dir / "run/slurmctld.pid").read_text().split()[0])
        os.kill(slurmctld, signal.SIGSTOP)
        try:
            self.begin_attack(take_names, range(following + 30, following + 34))
            time.sleep(1.5)
        finally:
            os.kill(slurmctld, signal.SIGCONT)
        job = self.cluster.sbatch("wlb run -- true\nwlb run -- true", "--wlb-layout=auto", "--ntasks-per-node=1")
        self.assertEqual(self.cluster.wait_job(job, 60), "COMPLETED", self.cluster.output(job))
        for name in (f"{job}", f"{job}.2"):
            run = wait_for("the end", lambda name=name: (lambda r: r if r.get("ended_at") else None)(self.shown(name)), 20)
            self.assertEqual((run["user"], run["state"], len(run["attempts"])), ("root", "complete", 1), name)

    def test_array_and_strange_names(self):
        array = self.own_job("--array=1-2")
        for name in (f"{array}_1", f"{array}_[1-2]", f"{array}.0", f"{array}.-1", f"{array}.1.2", "0", "-1", "00012",
                     "4294967296", "99999999999999999999", f"{array}.999999999999", "12%2F3", "%31", "٣"):
            self.attack(act_by_name, name)
        run = self.shown(self.victim)
        self.assertEqual(len(run["attempts"]), 1)


def take_names(place, jobs):
    caller, found = Caller(place, 3), []
    for job in jobs:
        for name in (f"{job}", f"{job}.2"):
            found.append(caller.post(f"/v1/runs/{name}/records", delivery(job, str(uuid.uuid4()), [event(1)]))[0])
        found.append(caller.post("/v1/runs", {"run_id": str(job), "job_id": job, "launch": 1})[0])
    return found


def act_by_name(place, name):
    caller = Caller(place, 5)
    digits = int("0" + re.sub("[^0-9].*", "", name.encode("ascii", "ignore").decode())) % 2**32
    path = "/v1/runs/" + name.encode().decode("latin-1")
    try:
        caller.post("/v1/runs", {"run_id": name, "job_id": digits})
        caller.post(f"{path}/records", delivery(digits, str(uuid.uuid4()), [event(1)]))
        caller.get(path)
    except (UnicodeError, ValueError):
        pass  # the client itself refuses


class Requests(HostileTest):
    def test_many_nodes(self):
        """Requests for an attempt that name 65,536 nodes: one again and again, and each once."""
        run, attempt = self.own_run("--nodelist=n1")
        self.assertEqual(self.attack(name_many_nodes, run, attempt), [{"repeated": 400, "many": 400, "few": 200}])


def name_many_nodes(place, run, attempt):
    """A rank has died on n1 three times, which is then looked for among the names."""
    caller = Caller(place, 20)
    faults = [{"seq": seq, "time": time.time(), "type": "fault", "data": {
        "kind": "rank_lost", "rank": 0, "node": "n1", "step": seq}} for seq in range(1, 4)]
    caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, faults))
    lists = {"repeated": ["n1"] * 16384 + [f"x{n}" for n in range(49152)], "many": [f"x{n}" for n in range(65536)],
             "few": ["n1"] + [f"x{n}" for n in range(8191)]}
    return {what: caller.post(f"/v1/runs/{run}/attempts", {
        "attempt_id": str(uuid.uuid4()), "job_id": int(run), "nodes": nodes, "tasks_per_node": 1,
        "policy": {"layout": "auto"}, "previous": None})[0] for what, nodes in lists.items()}


class Frozen(HostileTest):
    @classmethod
    def tearDownClass(cls):
        cls.cluster.run("scancel", cls.shared_cluster.victim, check=False)
        cls.shared_cluster.victim = cls.shared_cluster.start_victim()
        super().tearDownClass()

    def test_frozen_slurmd(self):
        """A slurmd that is stopped, but whose kernel accepts connections, delays no question about other nodes."""
        self.cluster.run("scancel", self.victim)
        self.shared_cluster.victim = self.shared_cluster.start_victim(nodes=3)
        run, attempt = self.own_run("--nodelist=n4")
        pid = int((self.cluster.dir / "run/slurmd-n4.pid").read_text().split()[0])
        os.kill(pid, signal.SIGSTOP)
        try:
            self.attack(lose_node, run, attempt, "n4", 3.5, processes=3)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.cluster.run("scancel", run)
        self.becomes(lambda: self.cluster.run("scontrol", "update", "nodename=n4", "state=resume", check=False).returncode == 0
                     or "down" not in self.cluster.run("sinfo", "-h", "-n", "n4", "-o", "%T").stdout)

    def test_end_with_questions_under_way(self):
        """SIGTERM while slurmctld does not answer: nothing leaks, nothing hangs."""
        slurmctld = int((self.cluster.dir / "run/slurmctld.pid").read_text().split()[0])
        self.watch.stop()
        os.kill(slurmctld, signal.SIGSTOP)
        try:
            self.begin_attack(take_names, range(5000, 5003), processes=6)
            time.sleep(1)
            code = self.daemon.stop()
        finally:
            os.kill(slurmctld, signal.SIGCONT)
        self.assertEqual((code, self.daemon.sanitizer_report()), (0, ""))
        self.daemon.start()
        self.same_pid = self.daemon.pid
        self.watch.start()


if __name__ == "__main__":
    hostile.main()
