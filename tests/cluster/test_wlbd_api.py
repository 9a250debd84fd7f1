#!/usr/bin/env python3
"""The whole API of wlbd as docs/api.md has it, against a real munged, PostgreSQL and Slurm."""
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request
import uuid

import harness
from harness import clock_s, wait_for

NOBODY = 65534
READ_METRICS = """import json, sys
from prometheus_client.{} import text_string_to_metric_families as read
print(json.dumps([[family.name, family.type, len(family.samples)] for family in read(sys.stdin.read())]))"""


class Api:
    """Requests to a cluster's wlbd with credentials made by munge(1)."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.address = cluster.env["WLB_COORDINATOR"] if "WLB_COORDINATOR" in cluster.env else None
        if self.address is None:
            lines = (cluster.dir / "etc/wlb.conf").read_text(encoding="utf-8").splitlines()
            self.address = dict(line.split(" = ", 1) for line in lines if " = " in line)["coordinator"]
        self.socket = cluster.dir / "munge/munge.sock"

    def credential(self, method, path, body, uid=0):
        digest = hashlib.sha256(f"{method}\n{path}\n".encode() + body).hexdigest()
        return subprocess.run(["munge", "-S", self.socket, "-s", digest], capture_output=True, text=True, check=True,
                              timeout=10, user=uid).stdout.strip()

    def send(self, method, path, body=b"", credential=None, timeout_s=15):
        connection = http.client.HTTPConnection(self.address, timeout=timeout_s)
        headers = {"Authorization": f"MUNGE {credential}"} if credential else {}
        try:
            connection.request(method, path, body or None, headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def call(self, method, path, body=None, uid=0, timeout_s=15):
        """(status, JSON) of an authenticated request."""
        data = json.dumps(body).encode() if body is not None else b""
        status, text = self.send(method, path, data, self.credential(method, path, data, uid), timeout_s)
        return status, json.loads(text)


def event(seq, kind="note"):
    return {"seq": seq, "time": 1790000000.0 + seq, "type": "event", "data": {"kind": kind, "detail": f"number {seq}"}}


def step(seq, number, loss=2.0):
    return {"seq": seq, "time": 1790000000.0 + seq, "type": "step",
            "data": {"step": number, "loss": loss, "grad_norm": 0.5, "lr": 0.001, "tokens": 4096, "documents": 9,
                     "step_time_s": 0.5, "tokens_per_s": 8192}}


def places(node_of_rank, **more):
    ranks = [{"rank": rank, "node": node, "local_rank": 0} for rank, node in enumerate(node_of_rank)]
    return {"seq": 1, "time": 1790000000.0, "type": "attempt", "data": {
        "layout": {"tp": 1, "cp": 1, "pp": 1, "dp": len(ranks)}, "world_size": len(ranks), "rank_map": ranks} | more}


class ApiTest(harness.ClusterTest):
    nodes = 2
    running = False  # whether new_run's job shall run

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            raise unittest.SkipTest("credentials of two users need root")
        cls.api = Api(cls.cluster)
        cls.cluster.dir.joinpath("munge").chmod(0o755)

    @classmethod
    def restart_wlbd(cls, more_settings=""):
        cls.cluster.restart_wlbd(more_settings)

    def new_run(self):
        """A run of a job that Slurm knows; its name."""
        when = ["--no-kill"] if self.running else ["--begin=now+3600"]
        job = self.cluster.sbatch("sleep 600", "--job-name=api", *when, nodes=2)
        if self.running:
            wait_for(f"job {job}", lambda: self.cluster.job(job)["JobState"] == "RUNNING", 20)
        self.addCleanup(self.cluster.run, "scancel", job)
        status, reply = self.api.call("POST", "/v1/runs", {"run_id": str(job), "job_id": job, "restart_count": 0,
                                                            "policy": {"layout": "auto", "min_nodes": 1}})
        self.assertEqual((status, reply), (200, {"run_id": str(job), "state": "starting"}))
        return str(job)

    def deliver(self, run, attempt, records, source="rank0", uid=0):
        return self.api.call("POST", f"/v1/runs/{run}/records", {
            "attempt_id": attempt, "source": source, "job_id": int(run.split(".")[0]),
            "first_seq": records[0]["seq"], "records": records}, uid)

    def show(self, run):
        status, reply = self.api.call("GET", f"/v1/runs/{run}?steps=all")
        self.assertEqual(status, 200, reply)
        return reply


class Credentials(ApiTest):
    def test_open_pages(self):
        status, text = self.api.send("GET", "/healthz")
        self.assertEqual((status, json.loads(text)["database"]), (200, "ok"))
        status, text = self.api.send("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn("wlbd_database_up 1\n", text)
        self.check_metrics()

    def check_metrics(self):
        """Both formats, read by the client library of Prometheus, which Debian's Python has; and each metric is in the administrator's guide."""
        guide = (harness.ROOT / "docs/administration.md").read_text(encoding="utf-8")
        for kind, reader in (("text/plain", "parser"), ("application/openmetrics-text; version=1.0.0", "openmetrics.parser")):
            self.new_run()
            request = urllib.request.Request(f"http://{self.api.address}/metrics", headers={"Accept": kind})
            with urllib.request.urlopen(request, timeout=15) as reply:
                self.assertEqual(reply.headers["Content-Type"].split(";")[0], kind.split(";")[0])
                text = reply.read().decode()
            done = subprocess.run(["/usr/bin/python3", "-c", READ_METRICS.format(reader)], input=text, capture_output=True, text=True,
                                  timeout=20, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            families = json.loads(done.stdout)
            self.assertEqual([name for name, _, count in families if f"`{name}" not in guide and count > 0], [])
            self.assertIn(["wlbd_records_stored", "counter", 1], families)
            self.assertIn(["wlbd_database_up", "gauge", 1], families)

    def test_bad_credentials(self):
        good = self.api.credential("GET", "/v1/runs", b"")
        self.assertEqual(self.api.send("GET", "/v1/runs")[0], 401)
        self.assertEqual(self.api.send("GET", "/v1/runs", credential="MUNGE:garbage:")[0], 401)
        self.assertEqual(self.api.send("GET", "/v1/runs", credential=good[:-20] + "AAAAAAAAAAAAAAAAAAA:")[0], 401)
        self.assertEqual(self.api.send("GET", "/v1/runs?limit=1", credential=good)[0], 401)
        good = self.api.credential("GET", "/v1/runs", b"")
        self.assertEqual(self.api.send("GET", "/v1/runs", credential=good)[0], 200)
        status, text = self.api.send("GET", "/v1/runs", credential=good)
        self.assertEqual(status, 401)
        self.assertIn("used before", text)

    def test_credential_is_for_one_body(self):
        run = self.new_run()
        path, body = f"/v1/runs/{run}/end", b'{"state":"failed"}'
        stolen = self.api.credential("POST", path, body)
        self.assertEqual(self.api.send("POST", path, b'{"state":"complete"}', stolen)[0], 401)
        self.assertEqual(self.show(run)["state"], "starting")

    def test_other_users(self):
        run = self.new_run()
        attempt = str(uuid.uuid4())
        self.assertEqual(self.deliver(run, attempt, [event(1)])[0], 200)
        for path, body in (
            ("/v1/runs", {"run_id": run, "job_id": int(run)}),
            (f"/v1/runs/{run}/end", {"state": "failed"}),
            (f"/v1/runs/{run}/records", {"attempt_id": attempt, "source": "rank0", "first_seq": 2, "records": []}),
            (f"/v1/runs/{run}/records", {"attempt_id": str(uuid.uuid4()), "source": "run", "first_seq": 1,
                                         "records": [event(1)]}),
            (f"/v1/runs/{run}/report", {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0}),
            (f"/v1/runs/{run}/attempts", {"attempt_id": str(uuid.uuid4()), "nodes": ["n1"]}),
        ):
            status, reply = self.api.call("POST", path, body, NOBODY)
            self.assertEqual(status, 403, f"{path}: {reply}")
        self.assertEqual(self.api.call("GET", f"/v1/runs/{run}", uid=NOBODY)[0], 200)

    def test_private_data(self):
        run = self.new_run()
        self.restart_wlbd("private_data = yes\n")
        self.assertEqual(self.api.call("GET", f"/v1/runs/{run}", uid=NOBODY)[0], 403)
        self.assertEqual(self.api.call("GET", f"/v1/runs/{run}/steps", uid=NOBODY)[0], 403)
        for query in ("", "?text=api", "?node=n1", "?sort=-elapsed", "?since=1", "?user=root&state=starting"):
            self.assertEqual(self.api.call("GET", f"/v1/runs{query}", uid=NOBODY), (200, {"runs": [], "left_out": 0}))
        self.assertEqual(self.api.call("GET", f"/v1/runs/{run}")[0], 200)


class Requests(ApiTest):
    def test_malformed(self):
        run = self.new_run()
        attempt = str(uuid.uuid4())
        for method, path, body, status, word in (
            ("GET", "/nothing", b"", 404, "path"),
            ("GET", "/v1/runs/x", b"", 400, "the name of a run"),
            ("GET", "/v1/runs/999999", b"", 404, "999999"),
            ("GET", "/v1/runs?limit=many", b"", 400, "limit"),
            ("GET", "/v1/runs?sort=reason", b"", 400, "sort"),
            ("GET", "/v1/runs?since=1h", b"", 400, "since"),
            ("GET", f"/v1/runs/{run}/steps?every=0", b"", 400, "every"),
            ("GET", f"/v1/runs/{run}?steps=some", b"", 400, "steps"),
            ("GET", f"/v1/runs/{run}/report", b"", 405, "GET"),
            ("POST", "/v1/runs", b"{", 400, "line 1"),
            ("POST", "/v1/runs", b"[]", 400, "object"),
            ("POST", "/v1/runs", b"", 400, "body"),
            ("POST", "/v1/runs", b"{}", 400, "job_id"),
            ("POST", "/v1/runs", b"[" * 100000, 400, "deeper"),
            ("POST", "/v1/runs", b'{"job_id":1,"run_id":"2"}', 400, "run_id"),
            ("POST", "/v1/runs", b'{"job_id":1,"policy":{"layout":"bogus"}}', 400, "bogus"),
            ("POST", f"/v1/runs/{run}/end", b'{"state":"fine"}', 400, "state"),
            ("POST", f"/v1/runs/{run}/report", b'{"attempt_id":"x"}', 400, "attempt_id"),
            ("POST", f"/v1/runs/{run}/attempts", json.dumps({"attempt_id": attempt, "nodes": [""]}).encode(), 400,
             "name"),
            ("POST", f"/v1/runs/{run}/records", b'{"attempt_id":"\xff"}', 400, "body"),
        ):
            got, text = self.api.send(method, path, body, self.api.credential(method, path, body))
            self.assertEqual(got, status, f"{method} {path}: {text}")
            self.assertIn(word, json.loads(text)["error"])

    def test_list_of_runs(self):
        older, newer = self.new_run(), self.new_run()
        self.api.call("POST", f"/v1/runs/{newer}/end", {"state": "out_of_nodes", "reason": "none left"})

        def names(query):
            status, reply = self.api.call("GET", f"/v1/runs{query}")
            self.assertEqual(status, 200, reply)
            return [run["run_id"] for run in reply["runs"]]

        self.assertEqual(names("?limit=2"), [newer, older])
        self.assertEqual(names("?state=out_of_nodes"), [newer])
        self.assertEqual(names("?user=root&limit=1"), [newer])
        self.assertEqual(names("?user=nobody"), [])
        self.assertEqual(names("?state=it%27s"), [])

    def test_huge_body(self):
        body = b'{"x":"' + b"y" * (8 << 20) + b'"}'
        good = self.api.credential("POST", "/v1/runs", body)
        self.assertEqual(self.api.send("POST", "/v1/runs", body, good)[0], 413)
        try:
            self.assertEqual(self.api.send("POST", "/v1/runs", body, "none")[0], 401)
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed before all of it was sent: as good a refusal
        self.assertEqual(self.api.send("GET", "/healthz")[0], 200)

    def announce_long_body(self, uid):
        """A connection on which a user announces 8 MiB, and sends nothing more."""
        path = "/v1/runs/1/records"
        host, port = self.api.address.split(":")
        link = socket.create_connection((host, int(port)), timeout=10)
        self.addCleanup(link.close)
        link.sendall(f"POST {path} HTTP/1.1\r\nHost: wlbd\r\nContent-Length: {8 << 20}\r\n"
                     f"Authorization: MUNGE {self.api.credential('POST', path, b'', uid)}\r\n\r\n".encode())

    def test_silent_heads_keep_nobody_out(self):
        """Two users announce as much as all users may send; others are served."""
        for uid in [NOBODY, NOBODY - 1] * 8:
            self.announce_long_body(uid)
        longest = {"pad": "y" * ((8 << 20) - 16)}
        for uid in (NOBODY, NOBODY - 1):
            wait_for("the heads to be counted",
                     lambda uid=uid: self.api.call("POST", "/v1/runs/1/records", longest, uid)[0] == 503, 10)
        run, attempt = self.new_run(), str(uuid.uuid4())
        for number, size in enumerate((10, 20000)):
            record = event(number + 1) | {"data": {"kind": "note", "detail": "x"}, "pad": "y" * size}
            self.assertEqual(self.deliver(run, attempt, [record])[0], 200)
        report = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "step": 1}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", report)[0], 200)
        for body in ({}, {"pad": "y" * 20000}):
            status, reply = self.api.call("POST", "/v1/runs", body, uid=NOBODY - 2)
            self.assertEqual(status, 400, reply)

    def test_client_that_dribbles_is_cut_off(self):
        self.restart_wlbd("request_timeout_ms = 1500\n")
        host, port = self.api.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            began = time.monotonic()
            with self.assertRaises(OSError):
                while time.monotonic() - began < 20:
                    slow.sendall(b"G")
                    time.sleep(0.1)
        self.assertLess(time.monotonic() - began, 15)

    def test_announce_is_idempotent_and_continues(self):
        run = self.new_run()
        again = {"run_id": run, "job_id": int(run), "launch": 1, "policy": {"spares": 1}}
        self.assertEqual(self.api.call("POST", "/v1/runs", again), (200, {"run_id": run, "state": "starting"}))
        self.assertEqual(self.show(run)["policy"], {"layout": "auto", "min_nodes": 1, "spares": 1})
        self.assertEqual(self.show(run)["job_name"], "api")
        status, reply = self.api.call("POST", f"/v1/runs/{run}/end", {"state": "failed", "reason": "so"})
        self.assertEqual((status, reply["state"]), (200, "failed"))
        status, reply = self.api.call("POST", f"/v1/runs/{run}/end", {"state": "complete"})
        self.assertEqual((status, reply["state"]), (200, "failed"))  # what was said first stays
        status, reply = self.api.call("POST", "/v1/runs", again | {"launch": 2})
        self.assertEqual((status, reply["run_id"]), (200, f"{run}.2"))
        self.assertEqual(self.show(f"{run}.2")["job_id"], int(run))


class Records(ApiTest):
    def test_each_record_once_and_in_order(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        self.assertEqual(self.deliver(run, attempt, [step(1, 1), step(2, 2)]), (200, {"acked_seq": 2}))
        self.assertEqual(self.deliver(run, attempt, [step(1, 1), step(2, 2)]), (200, {"acked_seq": 2}))
        self.assertEqual(self.deliver(run, attempt, [step(2, 2), step(3, 3)]), (200, {"acked_seq": 3}))
        status, reply = self.deliver(run, attempt, [step(5, 5)])
        self.assertEqual((status, reply["acked_seq"]), (409, 3))
        self.assertEqual(self.deliver(run, attempt, [event(1)], source="run"), (200, {"acked_seq": 1}))
        shown = self.show(run)
        self.assertEqual([s["step"] for s in shown["steps"]], [1, 2, 3])
        self.assertEqual(shown["steps_repeated"], 0)

    def test_a_later_attempt_replaces_steps(self):
        run, first, second = self.new_run(), str(uuid.uuid4()), str(uuid.uuid4())
        self.deliver(run, first, [step(1, 1, 3.0), step(2, 2, 2.5)])
        self.deliver(run, second, [step(1, 2, 2.25), step(2, 3, 2.0)])
        self.deliver(run, first, [step(3, 3, 9.0)])  # left in the spool, delivered late: the newer row stays
        shown = self.show(run)
        self.assertEqual([(s["step"], s["attempt"], s["loss"]) for s in shown["steps"]],
                         [(1, 1, 3.0), (2, 2, 2.25), (3, 2, 2.0)])
        self.assertEqual(shown["steps_repeated"], 2)
        self.assertEqual(self.cluster.sql(f"select step, attempt, loss from run_steps_superseded where run = '{run}' "
                                          "order by step"), [["2", "1", "2.5"], ["3", "1", "9"]])

    def test_bad_record_stores_nothing(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        status, reply = self.deliver(run, attempt, [step(1, 1), step(2, 2, "low")])
        self.assertEqual(status, 400)
        self.assertIn("records[1]: step: field 'loss'", reply["error"])
        self.assertEqual(self.show(run)["steps"], [])

    def test_unknown_run_and_attempt_are_created(self):
        job = self.cluster.sbatch("sleep 600", "--begin=now+3600")
        self.addCleanup(self.cluster.run, "scancel", job)
        attempt = str(uuid.uuid4())
        record = {"seq": 1, "time": 1790000000.0, "type": "attempt", "data": {
            "layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 2}, "world_size": 2, "seq_length": 256, "train_iters": 2,
            "rank_map": [{"rank": 0, "node": "n1", "local_rank": 0}, {"rank": 1, "node": "n2", "local_rank": 0}],
            "model": {"hidden_size": 64}, "dtype": "float64", "device": "cpu", "resumed_step": 0, "checkpoint": None}}
        self.assertEqual(self.deliver(str(job), attempt, [record, step(2, 1), step(3, 2)])[0], 200)
        end = {"seq": 4, "time": 1790000010.0, "type": "attempt_end",
               "data": {"state": "complete", "exit_code": 0, "reason": ""}}
        self.assertEqual(self.deliver(str(job), attempt, [end])[0], 200)
        shown = self.show(job)
        self.assertEqual(shown["state"], "complete")
        self.assertEqual(shown["nodes"], ["n1", "n2"])
        self.assertEqual(shown["layout"], {"tp": 1, "cp": 1, "pp": 1, "dp": 2})
        self.assertEqual(len(shown["rank_map"]), 2)
        self.assertEqual(shown["attempts"][0]["attempt_id"], attempt)

    def test_attempt_of_a_launcher(self):
        """What rank 0 records stands, whether it arrives before the launcher's record or after it."""
        launchers, rank0s = places(["n1", "n2"]), places(["n2"], model={"hidden_size": 64}, train_iters=2)
        for order in (("run", "rank0"), ("rank0", "run")):
            run, attempt = self.new_run(), str(uuid.uuid4())
            for source in order:
                with self.subTest(order=order, source=source):
                    record = launchers if source == "run" else rank0s
                    self.assertEqual(self.deliver(run, attempt, [record], source)[0], 200)
                    shown, = self.show(run)["attempts"]
                    nodes = ["n1", "n2"] if source == order[0] == "run" else ["n2"]
                    self.assertEqual((shown["nodes"], shown["layout"]["dp"], [place["node"] for place in shown["rank_map"]]),
                                     (nodes, len(nodes), nodes))
            self.assertEqual((self.show(run)["model"], self.show(run)["train_iters"]), ({"hidden_size": 64}, 2))

    def test_wlbd_killed_at_any_instant(self):
        """Whatever was acknowledged is there once; whatever was not is delivered again, as a spool does."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        stop = threading.Event()
        pid_file = self.cluster.dir / "run"

        def kill_and_start():
            while not stop.wait(random.uniform(0.05, 0.4)):
                self.cluster.verb("kill-wlbd")
                self.cluster.verb("start-wlbd")

        self.assertTrue(pid_file.is_dir())
        killer = threading.Thread(target=kill_and_start)
        killer.start()
        acked, deadline = 0, time.monotonic() + 60
        try:
            while acked < 120 and time.monotonic() < deadline:
                records = [step(seq, seq) for seq in range(acked + 1, acked + random.randint(1, 5) + 1)]
                try:
                    status, reply = self.deliver(run, attempt, records)
                except (OSError, http.client.HTTPException):
                    continue
                if status == 200:
                    self.assertGreater(reply["acked_seq"], acked)
                    acked = reply["acked_seq"]
                else:
                    self.assertEqual(status, 503, reply)
                    time.sleep(0.02)
        finally:
            stop.set()
            killer.join()
        self.assertGreaterEqual(acked, 120)
        wait_for("wlbd", lambda: self.api.send("GET", "/healthz")[0] == 200, 10)
        shown = self.show(run)
        self.assertEqual([s["step"] for s in shown["steps"]], list(range(1, acked + 1)))
        self.assertEqual(shown["steps_repeated"], 0)


class EndedRuns(ApiTest):
    """A run that is over gets no further attempt, and what still arrives of it stays in no memory."""

    def ended(self, how):
        """A run that its launcher has ended, or that Slurm ended, or a job that ended without a run; its name."""
        if how == "launcher":
            run = self.new_run()
            self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", {"state": "complete"})[0], 200)
            return run
        job = self.cluster.sbatch("true", *(["--wlb-layout=auto"] if how == "slurm" else []), nodes=1)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        if how == "slurm":
            wait_for("the end of the run", lambda: self.show(str(job))["state"] == "complete", 30)
        return str(job)

    def metrics(self):
        return dict(line.rsplit(" ", 1) for line in self.api.send("GET", "/metrics")[1].splitlines() if not line.startswith("#"))

    def report(self, run, attempt):
        return self.api.call("POST", f"/v1/runs/{run}/report", {
            "attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "ranks": [0], "step": 1})

    def check_memory(self, attempts=0):
        metrics = self.metrics()
        self.assertEqual((int(metrics["wlbd_attempts"]), [name for name in metrics if name.startswith("wlbd_run_step{")]),
                         (attempts, []))

    def test_reports(self):
        for how in ("launcher", "slurm", "none"):
            with self.subTest(how=how):
                run = self.ended(how)
                for _ in range(5):
                    status, reply = self.report(run, str(uuid.uuid4()))
                    self.assertEqual(status, 409, reply)
                    self.assertIn("has ended", reply["error"])
                self.check_memory()
                if how != "none":
                    story = self.show(run)
                    self.assertEqual((story["state"], story["attempts"]), ("complete", []))

    def test_late_records(self):
        """They are stored; the attempt has ended with its run, and its own record says how."""
        for how in ("launcher", "slurm"):
            with self.subTest(how=how):
                run, attempts = self.ended(how), [str(uuid.uuid4()) for _ in range(5)]
                for attempt in attempts:
                    status, reply = self.deliver(run, attempt, [step(1, 1)])
                    self.assertEqual((status, reply), (200, {"acked_seq": 1}))
                    self.assertEqual(self.report(run, attempt)[0], 409)
                self.check_memory()
                end = {"seq": 2, "time": 1790000000.0, "type": "attempt_end", "data": {"state": "complete", "exit_code": 0}}
                self.assertEqual(self.deliver(run, attempts[-1], [end])[0], 200)
                story = self.show(run)
                why = "its run was over when its first record arrived"
                self.assertEqual((story["state"], [(each["state"], each["reason"]) for each in story["attempts"]]),
                                 ("complete", [("lost", why)] * 4 + [("complete", "")]))
                wait_for("nothing in memory", lambda: self.metrics()["wlbd_attempts"] == "0", 5)
                self.check_memory()


class Reasons(ApiTest):
    """Each attempt that has ended and is not complete says why, in whatever way it ended."""

    def end_record(self, run, source="rank0", attempt=None, **data):
        attempt = attempt or str(uuid.uuid4())
        self.deliver(run, attempt, [event(1)], source)
        self.deliver(run, attempt, [{"seq": 2, "time": 1790000000.0, "type": "attempt_end", "data": data}], source)

    def end_records(self, run):
        """That of rank 0 arrives after the launcher's, which knows more."""
        attempt = str(uuid.uuid4())
        self.end_record(run, "run", attempt, state="ended", exit_code=85, reason="n3 is usable again: saved step 9 and stopped")
        self.end_record(run, "rank0", attempt, state="ended", exit_code=85, reason="SIGUSR1: saved step 9 and stopped")

    def end_before_its_record(self, run):
        """The end of the run is reported, and the failed step recorded as a fault, before the launcher's record arrives."""
        attempt = str(uuid.uuid4())
        self.deliver(run, attempt, [event(1)], "run")
        self.api.call("POST", f"/v1/runs/{run}/end", {"state": "failed", "exit_code": 255, "attempt_id": attempt})
        wait_for("the fault", lambda: [fault["kind"] for fault in self.show(run)["faults"]] == ["step_failed"], 15)
        self.end_record(run, "run", attempt, state="failed", exit_code=255, reason="srun does not know an option")

    def test_ways_to_end(self):
        ways = (
            ("failed", "srun does not know an option", self.end_before_its_record),
            ("ended", "n3 is usable again: saved step 9 and stopped", self.end_records),
            ("failed", "the Slurm step ended with exit code 1", lambda run: self.end_record(run, state="failed")),
            ("ended", "it was ended by order", lambda run: self.end_record(run, state="ended", exit_code=75)),
            ("ended", "it saved and stopped as it was asked to", lambda run: self.end_record(run, state="ended", exit_code=85)),
            ("failed", "the Slurm step ended with exit code 3", lambda run: self.end_record(run, "run", state="failed", exit_code=3)),
            ("failed", "why", lambda run: self.end_record(run, "run", state="failed", exit_code=3, reason="why")),
            ("lost", "its end was not reported", lambda run: (
                self.deliver(run, str(uuid.uuid4()), [event(1)]), self.api.call("POST", f"/v1/runs/{run}/end", {"state": "failed"}))),
        )
        for state, reason, way in ways:
            with self.subTest(state=state, reason=reason):
                self.running = way == self.end_before_its_record  # an attempt that is open while its job waits ends by a requeue
                run = self.new_run()
                way(run)
                wait_for(f"{(state, reason)}", lambda: [(each["state"], each["reason"]) for each in self.show(run)["attempts"]] ==
                         [(state, reason)], 15)

    def test_every_state(self):
        for state, exit_code in itertools.product(("failed", "ended", "lost"), ("null", "-255", "0", "1", "75", "85", "137")):
            self.assertNotEqual(self.cluster.sql(f"select wlb_attempt_reason('{state}', '', {exit_code})"), [[""]])


class MissingSteps(ApiTest):
    def test_steps_that_were_reported_and_are_not_recorded(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        self.deliver(run, attempt, [places(["n1", "n2"])])
        self.deliver(run, attempt, [step(number + 1, number) for number in range(1, 4)])
        body = {"attempt_id": attempt, "source": "node", "node": "n2", "rank": 1, "step": 6}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", body)[0], 200)
        self.assertEqual(self.show(run)["steps_missing"], [])  # it goes on
        self.api.call("POST", f"/v1/runs/{run}/end", {"state": "complete", "attempt_id": attempt})
        missing = [{"attempt": 1, "first_step": 4, "last_step": 6, "node": "n1"}]
        wait_for("the missing steps", lambda: self.show(run)["steps_missing"] == missing, 5)
        self.assertEqual(next(each["steps_missing"] for each in self.api.call("GET", "/v1/runs")[1]["runs"] if each["run_id"] == run), 3)
        self.assertRegex(self.cluster.run("wlb", "runs").stdout, rf"(?m)^{run} .* 3 \(3 missing\) ")
        self.assertIn("steps 4 to 6 of attempt 1 are not recorded: its rank 0 on n1 had not delivered them.",
                      self.cluster.run("wlb", "show", run).stdout)
        self.deliver(run, attempt, [step(number + 1, number) for number in range(4, 7)])
        self.assertEqual(self.show(run)["steps_missing"], [])
        self.assertNotIn("missing", self.cluster.run("wlb", "runs").stdout)


class Database(ApiTest):
    def test_away_is_said_at_once(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        self.assertEqual(self.deliver(run, attempt, [step(1, 1)])[0], 200)
        self.cluster.verb("stop-db")
        began = clock_s()
        status, reply = self.deliver(run, attempt, [step(2, 2)])
        self.assertEqual(status, 503)
        self.assertIn("database", reply["error"])
        self.assertEqual(self.api.send("GET", "/healthz")[0], 503)
        self.assertEqual(self.api.call("GET", "/v1/runs")[0], 503)
        self.assertLess(clock_s() - began, 2)  # database_timeout_ms, which a reply that waits takes
        # Liveness goes on without it.
        report = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "step": 1, "goodbye": True}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", report), (200, {"order": "continue"}))
        self.cluster.verb("start-db")
        wait_for("the database again", lambda: self.api.send("GET", "/healthz")[0] == 200, 10)
        self.assertEqual(self.deliver(run, attempt, [step(1, 1), step(2, 2)]), (200, {"acked_seq": 2}))
        self.assertEqual([s["step"] for s in self.show(run)["steps"]], [1, 2])

    def test_a_database_that_hangs_is_away(self):
        run, attempt = self.new_run(), str(uuid.uuid4())
        postmaster = int((self.cluster.dir / "pg/data/postmaster.pid").read_text(encoding="utf-8").split()[0])
        with open(f"/proc/{postmaster}/task/{postmaster}/children", encoding="utf-8") as children:
            processes = [postmaster, *map(int, children.read().split())]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = clock_s()
            self.assertEqual(self.deliver(run, attempt, [step(1, 1)])[0], 503)
            self.assertLess(clock_s() - began, 8)
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
        wait_for("the database again", lambda: self.api.send("GET", "/healthz")[0] == 200, 10)
        wait_for("delivery", lambda: self.deliver(run, attempt, [step(1, 1)])[0] == 200, 10)
        self.assertEqual([s["step"] for s in self.show(run)["steps"]], [1])

    def check_away(self, api, word):
        """Health and metrics say that the database is not there, and why."""
        status, text = api.send("GET", "/healthz")
        self.assertEqual(status, 503, text)
        self.assertIn(word, json.loads(text)["database"])
        self.assertIn("wlbd_database_up 0\n", api.send("GET", "/metrics")[1])

    def test_a_database_that_cannot_store(self):
        """It answers, and its disk is full."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        self.cluster.sql("create function disk_full() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' "
                         "using errcode = 'disk_full'; end $$")
        self.cluster.sql("create trigger disk_full before insert on sources for each row execute function disk_full()")
        try:
            self.assertEqual(self.deliver(run, attempt, [step(1, 1)]),
                             (503, {"error": "the database is unavailable (its disk is full); try again"}))
            self.check_away(self.api, "cannot store")
            self.assertIn("warning: database: 53100: could not extend file",
                          (self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8"))
        finally:
            self.cluster.sql("drop function disk_full cascade")
        self.assertEqual(self.deliver(run, attempt, [step(1, 1)])[0], 200)
        wait_for("the database again", lambda: self.api.send("GET", "/healthz")[0] == 200, 20)
        self.assertIn("wlbd_statements_waiting 0\n", self.api.send("GET", "/metrics")[1])

    def set_read_only(self, change):
        self.cluster.sql(f"alter system {change}")
        self.cluster.sql("select pg_reload_conf()")

    def test_a_read_only_database(self):
        """One that was connected before is left, and none is connected to: another of its hosts may be the primary."""
        run, attempt = self.new_run(), str(uuid.uuid4())
        self.assertEqual(self.deliver(run, attempt, [step(1, 1)])[0], 200)
        conf, _ = self.settings("read_only.conf")
        self.set_read_only("set default_transaction_read_only = on")
        try:
            wait_for("refusal", lambda: self.deliver(run, attempt, [step(2, 2)])[0] == 503, 10)
            self.check_away(self.api, "cannot store")
            with subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                                  stderr=subprocess.PIPE) as late, contextlib.ExitStack() as end:
                end.callback(late.terminate)
                other = Api(self.cluster)
                other.address = late.stderr.readline().split()[-1]
                wait_for("a try", lambda: "read-only" in other.send("GET", "/healthz")[1], 10)
                self.check_away(other, "read-only")
            # All four connections for records have met it, and none comes back.
            wait_for("the loss", lambda: "is unavailable" in self.deliver(run, attempt, [step(2, 2)])[1]["error"], 10)
            self.assertIn("read-only", self.deliver(run, attempt, [step(2, 2)])[1]["error"])
        finally:
            self.set_read_only("reset default_transaction_read_only")
        wait_for("the database again", lambda: self.api.send("GET", "/healthz")[0] == 200, 20)
        self.assertEqual(self.deliver(run, attempt, [step(1, 1), step(2, 2)]), (200, {"acked_seq": 2}))

    def settings(self, name, **changed):
        """The cluster's wlbd.conf with a free port and other settings, as a file of its own."""
        text = (self.cluster.dir / "etc/wlbd.conf").read_text(encoding="utf-8")
        values = dict(line.strip().split(" = ", 1) for line in text.splitlines() if " = " in line)
        path = self.cluster.work / name
        values |= {"listen": "127.0.0.1:0"} | changed
        path.write_text("".join(f"{key} = {value}\n" for key, value in values.items()), encoding="utf-8")
        return path, values

    def test_a_connection_string_that_does_not_parse(self):
        """wlbd ends at once, and shows no part of it."""
        for database in ("host=db dbname=wlb password=two SECRET", "postgresql://wlb:a@SECRET@db/wlb", "SECRET SECRET"):
            conf, _ = self.settings("unquoted.conf", database=database)
            for words in ((harness.BUILD / "bin/wlbd", "--config", conf), (harness.BUILD / "bin/wlbd", "--check", "--config", conf),
                          ("wlb", "db", "status", "--config", conf)):
                result = self.cluster.run(*words, check=False, timeout_s=20)
                self.assertEqual(result.returncode, 1 if words[0] == "wlb" else 2, result.stderr)
                self.assertRegex(result.stderr, r"unquoted.conf, line \d+: database: .*password='two words'")
                self.assertNotIn("SECRET", result.stdout + result.stderr)

    def test_clients_are_told_of_the_database_in_own_words(self):
        """What libpq and the server say, with names of hosts, users and files, is for the log."""
        _, values = self.settings("own.conf")
        cases = {"user=SECRET": "its server refuses wlbd's login", "dbname=SECRET": "its server has no such database",
                 "host=/SECRET": "no connection", "host=SECRET.invalid": "its host's name cannot be resolved",
                 "sslmode=SECRET": "no connection", "passfile=/SECRET sslrootcert=/SECRET sslmode=verify-full host=127.0.0.1": "no connection"}
        for changed, words in cases.items():
            with self.subTest(changed):
                conf, _ = self.settings("own.conf", database=f"{values['database']} {changed}")
                with subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                                      stderr=subprocess.PIPE) as late, contextlib.ExitStack() as end:
                    end.callback(late.terminate)
                    other = Api(self.cluster)
                    other.address = late.stderr.readline().split()[-1]
                    wait_for("a try of each connection", lambda other=other: "not connected yet" not in
                             other.send("GET", "/healthz")[1] + str(other.call("GET", "/v1/runs")), 10)
                    self.assertEqual(json.loads(other.send("GET", "/healthz")[1])["database"], words)
                    replies = [str(other.call("GET", path)) for path in ("/v1/runs", "/v1/runs/1", "/v1/faults", "/v1/nodes")]
                    replies += [other.send("GET", path)[1] for path in ("/healthz", "/metrics")]
                    late.terminate()
                    log = late.stderr.read()
                self.assertIn(f"the database is unavailable ({words}); try again", replies[0])
                self.assertNotIn("SECRET", "".join(replies))
                self.assertIn("SECRET" if changed.find("127") < 0 else "no connection", log)

    def test_others_may_read_the_password(self):
        _, values = self.settings("readable.conf")
        database = f"{values['database']} password=SECRET"
        for mode, group, database, warns in ((0o644, "root", database, True), (0o640, "daemon", database, True), (0o640, "root", database, False),
                                             (0o600, "root", database, False), (0o644, "root", values["database"], False)):
            conf, _ = self.settings("readable.conf", database=database)
            conf.chmod(mode)
            shutil.chown(conf, group=group)
            with subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                                  stderr=subprocess.PIPE) as wlbd, contextlib.ExitStack() as end:
                end.callback(wlbd.terminate)
                lines = [wlbd.stderr.readline()]
                while lines[-1] and "listens on" not in lines[-1]:
                    lines.append(wlbd.stderr.readline())
            check = self.cluster.run(harness.BUILD / "bin/wlbd", "--check", "--config", conf)
            found = self.cluster.run("wlb", "doctor", check=False, env={"WLBD_CONF": str(conf)}).stdout
            for text in ("".join(lines), check.stderr, found):
                self.assertEqual("chmod 600" in text, warns, text)
                self.assertNotIn("SECRET", text)
            self.assertIn(f"{'warn' if warns else 'ok  '}  wlbd.conf ", found)

    def test_another_schema_is_refused(self):
        conf, _ = self.settings("other.conf")
        digest = self.cluster.sql("select obj_description('wlb_code'::regnamespace, 'pg_namespace')")[0][0]
        for change, undo, word in (
            ("insert into schema_version (version, file) values (9999, 'x')",
             "delete from schema_version where version = 9999", "upgrade WLB"),
            ("create table kept as select * from schema_version; delete from schema_version",
             "insert into schema_version select * from kept; drop table kept", "wlb db migrate"),
            ("comment on schema wlb_code is 'of another version'", f"comment on schema wlb_code is '{digest}'", "functions and views"),
            ("update schema_version set file = '0001_tables.sql' where version = 1",
             "update schema_version set file = '0001.sql' where version = 1", "pg_dump"),
        ):
            self.cluster.sql(change)
            try:
                result = self.cluster.run(harness.BUILD / "bin/wlbd", "--config", conf, check=False, timeout_s=20)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(word, result.stderr)
            finally:
                self.cluster.sql(undo)

    def test_starts_without_its_database_and_ends_in_order(self):
        conf, _ = self.settings("early.conf")
        self.cluster.verb("stop-db")
        with subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                              stderr=subprocess.PIPE) as early:
            try:
                line = early.stderr.readline()
                self.assertIn("listens on 127.0.0.1:", line)
                other = Api(self.cluster)
                other.address = line.split()[-1]
                status, text = other.send("GET", "/healthz")
                self.assertEqual(status, 503)
                self.assertNotIn(json.loads(text)["database"], ("", "ok"))
            finally:
                self.cluster.verb("start-db")
            wait_for("the database", lambda: other.send("GET", "/healthz")[0] == 200, 10)
            early.terminate()
            self.assertEqual(early.wait(timeout=20), 0)
        wait_for("the other one's database", lambda: self.api.send("GET", "/healthz")[0] == 200, 10)

    def test_another_wlbd_on_the_same_database(self):
        """The later one warns and serves, until it is alone."""
        conf, _ = self.settings("second.conf")
        with subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                              stderr=subprocess.PIPE) as second, contextlib.ExitStack() as end:
            end.callback(second.terminate)
            other = Api(self.cluster)
            other.address = second.stderr.readline().split()[-1]

            def health():
                status, text = other.send("GET", "/healthz")
                return status, json.loads(text).get("other_wlbd")

            status, who = wait_for("the warning", lambda: health() if health()[1] else None, 20)
            self.assertEqual(status, 200)
            self.assertRegex(who, r"^on the host of the database since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
            self.assertNotIn("other_wlbd", self.api.send("GET", "/healthz")[1])
            found = self.cluster.run("wlb", "doctor", check=False, env={"WLB_COORDINATOR": other.address}).stdout
            self.assertIn("another wlbd, connected on the host of the database", found)
            self.cluster.verb("kill-wlbd")
            self.cluster.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'wlbd'")
            wait_for("the lock", lambda: health() == (200, None), 20)
            second.terminate()
            log = second.stderr.read()
            self.assertEqual(second.wait(timeout=20), 0)
        self.restart_wlbd()
        self.assertRegex(log, "warning: database: another wlbd, connected on the host of the database since .*; stop one")
        self.assertIn("no other wlbd uses it any more", log)

    def test_two_migrations_at_once(self):
        self.cluster.sql("create database fresh")
        conf, values = self.settings("fresh.conf")
        self.settings("fresh.conf", database=values["database"].replace("dbname=wlb", "dbname=fresh"))
        env = self.cluster.env | {"WLBD_CONF": str(conf)}
        both = [subprocess.Popen([harness.BUILD / "bin/wlb", "db", "migrate"], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        for one in both:
            text, _ = one.communicate(timeout=60)
            self.assertEqual(one.returncode, 0, text)
        rows = self.cluster.run("psql", "-X", "-q", "-A", "-t", "-d", "fresh", "-c",
                                "select version from schema_version order by version").stdout.split()
        self.assertEqual(rows, [str(number + 1) for number in range(len(rows))])
        self.assertEqual(len(rows), len(list((harness.ROOT / "sql/tables").glob("*.sql"))))


class RunningJobs(ApiTest):
    """What needs a job that runs on both nodes."""

    running = True

    def ask(self, run, nodes, attempt=None, uid=0, **more):
        body = {"attempt_id": attempt or str(uuid.uuid4()), "job_id": int(run), "nodes": nodes, "tasks_per_node": 2,
                "policy": {"layout": "auto"}, "previous": None} | more
        end = time.monotonic() + 20
        while True:
            status, reply = self.api.call("POST", f"/v1/runs/{run}/attempts", body, uid)
            self.assertEqual(status, 200, reply)
            if reply["decision"] != "wait" or time.monotonic() > end:
                return body["attempt_id"], reply
            time.sleep(reply["retry_after_s"])

    def open_reporters(self, run, attempt, nodes=("n1", "n2")):
        """report(node, field=value...) over one connection for each node, and these connections."""
        path = f"/v1/runs/{run}/report"
        links = {node: http.client.HTTPConnection(self.api.address, timeout=10) for node in nodes}
        for link in links.values():
            self.addCleanup(link.close)

        def report(node, **more):
            body = json.dumps({"attempt_id": attempt, "source": "node", "node": node, "rank": 2 * int(node[1:]) - 2,
                               "step": 7} | more).encode()
            links[node].request("POST", path, body,
                                {"Authorization": "MUNGE " + self.api.credential("POST", path, body)})
            return json.loads(links[node].getresponse().read())

        return report, links

    def kill_slurmd(self, number):
        """The node's slurmd, and it alone: the job's processes go on. It may take a moment to die."""
        pid_file = self.cluster.dir / f"run/slurmd-n{number}.pid"
        os.kill(int(pid_file.read_text(encoding="utf-8").split()[0]), signal.SIGKILL)
        self.addCleanup(self.wait_node_back, number)

    def wait_node_back(self, number):
        self.cluster.restore_node(number)
        wait_for(f"n{number} to be back", lambda: self.node_state(number) in ("IDLE", "ALLOCATED", "MIXED"), 30)

    def node_state(self, number):
        text = self.cluster.run("scontrol", "-o", "show", "node", f"n{number}").stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)["State"].split("+")[0].rstrip("*")

    def assert_node_lost(self, run, within_s):
        fault, = wait_for("the fault", lambda: self.show(run)["faults"], within_s)
        self.assertEqual((fault["kind"], fault["node"], fault["cause"]), ("node_lost", "n2", True))
        wait_for("n2 DOWN in Slurm", lambda: self.node_state(2) == "DOWN", 3)
        self.assertIn(f"wlb: run {run}: node n2 lost", self.cluster.run("scontrol", "show", "node", "n2").stdout)


class Attempts(RunningJobs):
    def test_crashes_that_are_reported_leave_no_node_out(self):
        """Ranks crashed on n1 in three attempts; on-fault says what follows."""
        run = self.new_run()
        previous, _ = self.ask(run, ["n1", "n2"])
        pk = self.cluster.sql(f"select run_id from attempts where uuid = '{previous}'")[0][0]
        for number in (11, 12, 13):
            self.cluster.sql(f"""
                with a as (insert into attempts (run_id, number, uuid, new_steps) values ({pk}, {number}, gen_random_uuid(), 5)
                    returning id)
                insert into faults (run_id, attempt_id, kind, is_loss, strength, rank, node, step, cause, detected_at)
                select {pk}, id, 'rank_lost', true, 1, 0, 'n1', 10 * {number}, true, now() from a""")
        for action, nodes in (("report", ["n1", "n2"]), ("evict", ["n2"])):
            status, reply = self.api.call("POST", f"/v1/runs/{run}/settings", {"on_fault": f"crash={action}"})
            self.assertEqual(status, 200, reply)
            previous, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": previous, "exit_code": 137, "step_id": ""})
            self.assertEqual((reply["decision"], reply.get("nodes")), ("start", nodes), reply)
        self.assertIn("n1 failed again and again", reply["reason"])

    def test_attempt_of_a_launcher_changes_no_decision(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.assertEqual(self.deliver(run, attempt, [places(["n1", "n1"])], "run")[0], 200)
        shown, = self.show(run)["attempts"]
        self.assertEqual((shown["nodes"], shown["layout"]["dp"], shown["rank_map"]), (["n1", "n2"], 4, []))

    def test_start_again_and_stop(self):
        run = self.new_run()
        first, reply = self.ask(run, ["n1", "n2"])
        self.assertEqual((reply["decision"], reply["attempt"], reply["nodes"]), ("start", 1, ["n1", "n2"]))
        self.assertEqual(reply["layout"], {"tp": 1, "cp": 1, "pp": 1, "dp": 4})
        self.assertIsNone(reply["checkpoint"])
        self.assertEqual(self.ask(run, ["n1", "n2"], first)[1], reply)  # the same question, the same answer
        saved = {"step": 1, "path": "ck/step_1", "bytes": 5, "duration_s": 0.1}
        self.deliver(run, first, [step(1, 1), {"seq": 2, "time": 1790000000, "type": "checkpoint", "data": saved}])
        last = first
        for number in (2, 3, 4):
            previous = {"attempt_id": last, "exit_code": 1, "step_id": f"{run}.0" if number != 3 else ""}
            last, reply = self.ask(run, ["n1", "n2"], previous=previous)
            self.assertEqual((reply["decision"], reply.get("attempt")), ("start", number), reply)
            self.assertEqual(reply["checkpoint"], {"step": 1, "path": "ck/step_1"})
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": last, "exit_code": 1})
        self.assertEqual((reply["decision"], reply["state"]), ("stop", "failed"))  # three without a new step
        shown = self.show(run)
        self.assertEqual([a["exit_code"] for a in shown["attempts"]], [1, 1, 1, 1])
        self.assertEqual({f["kind"] for f in shown["faults"]}, {"step_failed"})

    def test_a_program_that_fails_everywhere(self):
        """Ranks crash at one step, on other nodes: no node is blamed, and the run ends with that reason."""
        run = self.new_run()
        last, _ = self.ask(run, ["n1", "n2"])
        self.deliver(run, last, [step(1, 8)])
        for node in ("n1", "n2", "n1", "n2"):
            self.cluster.sql(f"""insert into faults (run_id, attempt_id, kind, is_loss, strength, rank, node, step, cause, detected_at)
                select run_id, id, 'rank_lost', true, 1, 0, '{node}', 8, true, now() from attempts where uuid = '{last}'""")
            previous, reply = last, None
            last, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": previous, "exit_code": 139, "step_id": ""})
        self.assertEqual((reply["decision"], reply["state"]), ("stop", "failed"))
        self.assertEqual(reply["reason"], "the program fails at step 8 on more than one node: 3 attempts in a row ended without a new "
                         "step; correct the program or its data")
        self.assertEqual([attempt["nodes"] for attempt in self.show(run)["attempts"]], [["n1", "n2"]] * 4)

    def test_an_end_that_was_not_judged(self):
        """wlbd ended after it had stored that the attempt had failed, and before it had judged why."""
        said = {"first_exit": {"rank": 3, "node": "n2", "signal": 11}}
        for more, fault in ((said, ("rank_lost", "n2", 3)), ({}, ("step_failed", None, None))):
            run = self.new_run()
            first, _ = self.ask(run, ["n1", "n2"])
            self.cluster.sql(f"update attempts set state = 'failed', exit_code = 139, ended_at = now() where uuid = '{first}'")
            self.restart_wlbd()
            _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": first, "exit_code": 139, "step_id": "", **more})
            self.assertEqual(reply["decision"], "start")
            self.assertEqual([(f["kind"], f["node"], f["rank"]) for f in self.show(run)["faults"] if f["cause"]], [fault])
        self.assertEqual(self.show(run)["faults"][0]["detail"], "the Slurm step ended with exit code 139")

    def test_links_of_nodes_that_were_not_in_the_attempt(self):
        """Ranks on several nodes hung: only the attempt's nodes are checked, and no other is blamed."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.cluster.sql(f"""insert into faults (run_id, attempt_id, kind, step, cause, proof, sentence, strength, detected_at)
            select run_id, id, 'hang', 8, true, '{{"evicted": true}}', 'ranks hang at step 8', 6, now() from attempts where uuid = '{attempt}'""")
        previous = {"attempt_id": attempt, "exit_code": 1, "step_id": ""}
        _, reply = self.ask(run, ["n1", "n2", "n99"], previous=previous, links={"checked": False})
        self.assertEqual((reply["decision"], reply["nodes"]), ("check_links", ["n1", "n2"]))
        _, reply = self.ask(run, ["n1", "n2", "n99"], previous=previous, links={
            "checked": True, "unreached": {"n99": ["n1", "n2"], "n1": ["n99"]}})
        self.assertEqual(reply["decision"], "start")
        self.assertEqual({fault["node"] for fault in self.show(run)["faults"]}, {None})

    def test_links_of_an_attempt_on_one_node(self):
        """A node of the job that it left out is not checked."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.cluster.sql(f"""update attempts set decision = jsonb_set(decision, '{{nodes}}', '["n1"]') where uuid = '{attempt}';
            insert into faults (run_id, attempt_id, kind, step, cause, proof, sentence, strength, detected_at)
            select run_id, id, 'hang', 8, true, '{{"evicted": true}}', 'ranks hang at step 8', 6, now() from attempts where uuid = '{attempt}'""")
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": 1, "step_id": ""},
                            links={"checked": False})
        self.assertEqual(reply["decision"], "start")

    def test_back_off(self):
        """The next attempt after one without a new step is put off; it is told for how long."""
        conf = self.cluster.dir / "etc/wlbd.conf"
        self.addCleanup(self.restart_wlbd)
        self.addCleanup(conf.write_text, conf.read_text(encoding="utf-8"), encoding="utf-8")
        conf.write_text(conf.read_text(encoding="utf-8").replace("back_off_ms = 0", "back_off_ms = 8000"), encoding="utf-8")
        self.restart_wlbd()
        run = self.new_run()
        first, _ = self.ask(run, ["n1", "n2"])
        self.deliver(run, first, [step(1, 8)])
        previous = {"attempt_id": first, "exit_code": 1, "step_id": ""}
        began = time.monotonic()
        second, _ = self.ask(run, ["n1", "n2"], previous=previous)  # that had a new step
        self.assertLess(time.monotonic() - began, 8)
        previous["attempt_id"] = second
        body = {"attempt_id": str(uuid.uuid4()), "job_id": int(run), "nodes": ["n1", "n2"], "tasks_per_node": 2,
                "policy": {"layout": "auto"}, "previous": previous}
        path = f"/v1/runs/{run}/attempts"
        wait_for("the pause", lambda: "ended without a new step" in self.api.call("POST", path, body)[1]["reason"], 5)
        reply = self.api.call("POST", path, body)[1]
        self.assertEqual(reply["decision"], "wait")
        self.assertGreater(reply["retry_after_s"], 0.5)
        self.assertRegex(reply["reason"], r"^1 attempt has ended without a new step: the next one starts in \d s$")
        _, reply = self.ask(run, ["n1", "n2"], body["attempt_id"], previous=previous)
        self.assertEqual(reply["decision"], "start")
        self.assertGreater(time.monotonic() - began, 8)

    def lose_a_rank(self):
        """A new run, and a function that has its rank 3 fail."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        for node in links:
            report(node)
        return run, lambda: report("n2", exits=[{"rank": 3, "time": time.time(), "code": 1}])

    def end_wlbd(self, unlock=lambda: None):
        """By SIGTERM; returns what it logs from then on."""
        pid = int((self.cluster.dir / "run/wlbd.pid").read_text(encoding="ascii").split()[0])
        log = self.cluster.dir / "log/wlbd.out"
        begin = log.stat().st_size
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.3)
        unlock()
        wait_for("wlbd's end", lambda: pid not in self.cluster.processes("bin/wlbd"), 20)
        return log.read_bytes()[begin:].decode()

    def test_what_was_found_is_stored_at_the_end(self):
        """The first statement waits for a lock, and the others for it."""
        run, lose = self.lose_a_rank()
        with subprocess.Popen(["psql", "-X", "-q"], env=self.cluster.env, stdin=subprocess.PIPE, text=True) as holder:
            holder.stdin.write("begin; lock table faults in exclusive mode;\n")
            holder.stdin.flush()
            locked = "select 1 from pg_locks where relation = 'faults'::regclass and mode = 'ExclusiveLock' and granted"
            wait_for("the lock", lambda: self.cluster.sql(locked), 10)
            lose()
            waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'select wlb_fault_found%'"
            wait_for("a statement that waits", lambda: self.cluster.sql(waits), 10)
            log = self.end_wlbd(holder.stdin.close)
        stored = self.cluster.sql("select a.state, f.kind, f.cause from attempts a join runs r on r.id = a.run_id left join faults f "
                                  f"on f.attempt_id = a.id where r.name = '{run}'")
        self.restart_wlbd()
        self.assertEqual(stored, [["failed", "rank_lost", "t"]], log)
        self.assertNotIn("not recorded", log)

    def test_what_meets_damaged_data_is_set_aside(self):
        """What is found of the run after it is stored, and other runs are not said to be unrecorded for it."""
        for code, why in (("data_corrupted", "invalid page"), ("undefined_file", "could not access status of transaction")):
            with self.subTest(code=code):
                run, lose = self.lose_a_rank()
                self.cluster.sql(f"create function damaged() returns trigger language plpgsql as $$ begin raise exception '{why}' "
                                 f"using errcode = '{code}'; end $$")
                self.cluster.sql("create trigger damaged before insert on faults for each row execute function damaged()")
                try:
                    lose()
                    wait_for("the attempt's end", lambda run=run: self.show(run)["attempts"][0]["state"] == "failed", 20)
                finally:
                    self.cluster.sql("drop function damaged cascade")
                self.assertEqual(self.api.send("GET", "/healthz")[0], 200)
                self.assertEqual(self.show(run)["faults"], [])
                self.assertRegex((self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8"),
                                 rf"error: not recorded: select wlb_fault_found\(.* \({why}\)")

    def test_what_is_lost_at_the_end_is_named(self):
        run, lose = self.lose_a_rank()
        self.cluster.verb("stop-db")
        lose()
        log = self.cluster.dir / "log/wlbd.out"
        wait_for("the fault", lambda: f"run {run}, attempt 1: rank 3 on n2 ended" in log.read_text(encoding="utf-8"), 10)
        text = self.end_wlbd()
        self.cluster.verb("start-db")
        self.restart_wlbd()
        self.assertRegex(text, r"error: not recorded: select wlb_fault_found\(.*, of the run with id \d+ \(wlbd ends, and the database")

    def test_first_exit_is_the_cause(self):
        """Whichever tells of it first; the neighbour whose connection closed before is not."""
        said = {"first_exit": {"rank": 3, "node": "n2", "signal": 9}}
        for carrier in ("previous", "attempt_end", "end"):
            with self.subTest(carrier=carrier):
                run = self.new_run()
                attempt, _ = self.ask(run, ["n1", "n2"])
                report, links = self.open_reporters(run, attempt)
                for node in links:
                    report(node)
                links["n2"].close()
                if carrier == "previous":
                    _, reply = self.ask(run, ["n1", "n2"],
                                        previous={"attempt_id": attempt, "exit_code": 137} | said)
                    self.assertEqual(reply["decision"], "start")
                elif carrier == "attempt_end":
                    data = {"state": "failed", "exit_code": 137, "reason": ""} | said
                    self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": data}],
                                 source="run")
                else:
                    status, reply = self.api.call("POST", f"/v1/runs/{run}/end", {
                        "state": "failed", "exit_code": 137, "attempt_id": attempt} | said)
                    self.assertEqual(status, 200, reply)
                faults = wait_for("the fault", lambda run=run: self.show(run)["faults"], 10)
                self.assertEqual([(f["kind"], f["rank"], f["node"]) for f in faults if f["cause"]],
                                 [("rank_lost", 3, "n2")])
                self.assertEqual(faults[0]["step"], 7)
                self.cluster.run("scancel", run)  # the nodes are the next one's
        status, reply = self.api.call("POST", f"/v1/runs/{run}/end", {
            "state": "failed", "first_exit": {"rank": -1, "node": "n2", "signal": 9}})
        self.assertEqual(status, 400)
        self.assertIn("first_exit", reply["error"])

    def test_bad_input_is_not_tried_again(self):
        run = self.new_run()
        first, _ = self.ask(run, ["n1"])
        _, reply = self.ask(run, ["n1"], previous={"attempt_id": first, "exit_code": 2})
        self.assertEqual((reply["decision"], reply["state"]), ("stop", "failed"))
        wait_for("what wlbd stores after its reply", lambda: self.show(run)["state"] == "failed", 10)


    def test_launcher_that_was_replaced_has_no_say(self):
        run = self.new_run()
        first, _ = self.ask(run, ["n1", "n2"])
        second, reply = self.ask(run, ["n1", "n2"])  # of the requeued job: it knows of no previous attempt
        self.assertEqual((reply["decision"], reply["attempt"]), ("start", 2))
        self.assertEqual([a["state"] for a in self.show(run)["attempts"]], ["lost", "starting"])
        body = {"attempt_id": first, "source": "node", "node": "n1", "rank": 0, "goodbye": True}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", body)[1]["order"], "end")
        status, reply = self.api.call("POST", f"/v1/runs/{run}/attempts", {
            "attempt_id": str(uuid.uuid4()), "nodes": ["n1"], "previous": {"attempt_id": first, "exit_code": 1}})
        self.assertEqual(status, 409, reply)
        end = {"state": "failed", "attempt_id": first}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", end)[0], 409)
        end = {"state": "complete", "attempt_id": second}
        self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/end", end)[1]["state"], "complete")
        self.assertEqual([a["state"] for a in self.show(run)["attempts"]], ["lost", "complete"])


class Losses(RunningJobs):
    def test_lost_connection_of_a_live_node_is_a_lost_rank(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        self.assertEqual(report("n1"), {"order": "continue"})
        self.assertEqual(report("n2"), {"order": "continue"})
        links["n2"].close()
        wait_for("the order to end", lambda: report("n1")["order"] == "end", 6)
        self.assertEqual(report("n1", goodbye=True)["reason"], "rank 2 on n2 is lost")
        links["n1"].close()
        fault, = wait_for("the fault", lambda: self.show(run)["faults"], 3)
        self.assertEqual((fault["kind"], fault["rank"], fault["node"], fault["step"], fault["cause"]),
                         ("rank_lost", 2, "n2", 7, True))
        self.assertEqual(self.show(run)["attempts"][0]["state"], "failed")

    def test_reconnecting_in_time_is_no_fault(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1"])
        body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0}
        for _ in range(4):  # each on a connection of its own
            self.assertEqual(self.api.call("POST", f"/v1/runs/{run}/report", body)[1], {"order": "continue"})
            time.sleep(1)
        self.api.call("POST", f"/v1/runs/{run}/report", body | {"goodbye": True})
        time.sleep(3)
        self.assertEqual(self.show(run)["faults"], [])

    def test_told_rank_is_believed_at_once(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1"])
        body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "step": 3,
                "lost_ranks": [{"rank": 1, "time": 1790000000.1}]}
        self.api.call("POST", f"/v1/runs/{run}/report", body | {"goodbye": True})
        fault, = wait_for("the fault", lambda: self.show(run)["faults"], 3)
        self.assertEqual((fault["kind"], fault["rank"]), ("rank_lost", 1))

    def test_told_exits_are_cause_and_reason(self):
        """Exit codes 0, 2, 75 and 85 are no faults; the order that ranks get says what the run's story says."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        path, body = f"/v1/runs/{run}/report", {"attempt_id": attempt, "source": "node", "goodbye": True}
        self.api.call("POST", path, body | {"node": "n1", "rank": 0, "lost_ranks": [{"rank": 1, "time": 1}], "exits": [
            {"rank": 0, "time": 1, "code": 0}, {"rank": 1, "time": 1, "code": 85}]})
        time.sleep(1)
        self.assertEqual(self.show(run)["faults"], [])
        reply = self.api.call("POST", path, body | {"node": "n2", "rank": 2, "exits": [{"rank": 3, "time": 1, "code": 139}],
                                                    "lost_ranks": [{"rank": 3, "time": 1}]})[1]
        wait_for("the fault", lambda: self.show(run)["faults"], 3)
        self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
            "state": "failed", "exit_code": 139, "reason": "srun ended with exit code 139"}}], source="run")
        reply = self.api.call("POST", path, body | {"node": "n1", "rank": 0})[1]
        self.assertEqual(reply, {"order": "end", "reason": "rank 3 on n2 was killed by signal 11"})
        shown = self.show(run)
        self.assertEqual([(f["kind"], f["rank"], f["cause"]) for f in shown["faults"]], [("rank_lost", 3, True)])
        self.assertEqual(shown["attempts"][0]["reason"], reply["reason"])

    def test_dead_slurmstepd(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1"])
        body = {"attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "stepd": "gone", "goodbye": True,
                "exits": [{"rank": 1, "time": 1, "code": 137}]}
        reply = self.api.call("POST", f"/v1/runs/{run}/report", body)[1]
        self.assertEqual(reply["order"], "end")
        self.assertEqual(reply["reason"], "slurmstepd on n1 is gone")
        wait_for("the reason", lambda: self.show(run)["attempts"][0]["reason"] == reply["reason"], 5)
        self.assertEqual([(f["kind"], f["node"], f["cause"]) for f in self.show(run)["faults"]],
                         [("step_failed", "n1", True)])

    def test_node_whose_slurmstepd_died_first(self):
        """The processes of n2 die one after the other, and its agent has said that slurmstepd is gone before it dies too."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        report("n1")
        self.assertEqual(report("n2", stepd="gone", goodbye=True, exits=[{"rank": 1, "time": 1, "code": 137}])["order"], "end")
        links["n2"].close()
        self.kill_slurmd(2)
        report("n1", goodbye=True)
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": 1})
        self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n1"]))
        self.assertIn("n2 is lost", reply["reason"])
        causes = wait_for("the cause", lambda: [f for f in self.show(run)["faults"] if f["cause"] and f["kind"] == "node_lost"], 5)
        self.assertEqual([fault["node"] for fault in causes], ["n2"])
        self.assertEqual(self.show(run)["attempts"][0]["reason"], "node n2 is lost")

    def test_closed_connection_and_dead_slurmd_are_a_lost_node(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        report("n1")
        report("n2")
        self.kill_slurmd(2)
        links["n2"].close()
        self.assert_node_lost(run, 6)
        self.assertEqual(report("n1", goodbye=True), {"order": "end", "reason": "node n2 is lost"})
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": 1})
        self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n1"]))
        self.assertIn("n2 is lost", reply["reason"])

    def check_lost_after_the_end(self, run, attempt, end):
        """The next attempt begins without n2, and the record has both: what ended the attempt, and the node."""
        _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt, "exit_code": 1} | end)
        self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n1"]))
        lost = wait_for("the lost node", lambda: [f for f in self.show(run)["faults"] if f["kind"] == "node_lost"], 5)
        self.assertEqual([(fault["attempt"], fault["node"], fault["cause"]) for fault in lost], [(1, "n2", False)])
        wait_for("n2 DOWN in Slurm", lambda: self.node_state(2) == "DOWN", 5)
        return [(fault["kind"], fault["rank"], fault["node"]) for fault in self.show(run)["faults"] if fault["cause"]]

    def test_node_lost_between_two_attempts(self):
        """It has sent its last report when it dies, and does not answer when the next attempt is decided."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        report("n1")
        report("n2")
        report("n1", exits=[{"rank": 0, "time": 1790000000, "code": 1}])
        wait_for("the order to end", lambda: report("n2")["order"] == "end", 5)
        for node in ("n1", "n2"):
            report(node, goodbye=True)
            links[node].close()
        self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
            "state": "failed", "exit_code": 1, "reason": "", "first_exit": {"rank": 0, "node": "n1", "exit_code": 1}}}], source="run")
        self.kill_slurmd(2)
        cause = self.check_lost_after_the_end(run, attempt, {"first_exit": {"rank": 0, "node": "n1", "exit_code": 1}})
        self.assertEqual(cause, [("rank_lost", 0, "n1")])
        self.assertEqual(self.show(run)["attempts"][0]["reason"], "rank 0 on n1 ended with exit code 1")

    def test_node_lost_while_its_step_ends(self):
        """The launcher has reported the end of the step; what is left of it on n2 is gone with its node."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        report("n1")
        report("n2")
        self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
            "state": "failed", "exit_code": 1, "reason": ""}}], source="run")
        report("n1", goodbye=True)
        self.kill_slurmd(2)
        links["n2"].close()
        self.assertEqual(self.check_lost_after_the_end(run, attempt, {}), [("step_failed", None, None)])

    def test_rank_that_is_reported_after_the_end_of_its_step_is_the_cause(self):
        """MPI_Abort has Slurm cancel the step, whose launcher then names no rank; the agents report a moment later."""
        for reported in (True, False):
            with self.subTest(reported=reported):
                run = self.new_run()
                attempt, _ = self.ask(run, ["n1", "n2"])
                report, links = self.open_reporters(run, attempt)
                for node in links:
                    report(node, agent=True)
                self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
                    "state": "failed", "exit_code": 7, "reason": ""}}], source="run")
                if reported:
                    time.sleep(0.5)
                    report("n2", agent=True, exits=[{"rank": 2, "time": 1790000000, "code": 7}], goodbye=True)
                faults = wait_for("the cause", lambda: [(f["kind"], f["rank"], f["node"]) for f in self.show(run)["faults"] if f["cause"]], 5)
                self.assertEqual(faults, [("rank_lost", 2, "n2") if reported else ("step_failed", None, None)])

    def test_node_that_never_reported_is_the_cause(self):
        """n2 is lost while its step starts, so Slurm kills the ranks on n1: they are not the cause."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.kill_slurmd(2)
        self.api.call("POST", f"/v1/runs/{run}/report", {
            "attempt_id": attempt, "source": "node", "node": "n1", "rank": 0, "exits": [{"rank": 0, "time": 1, "code": 137},
                                                                                        {"rank": 1, "time": 1, "code": 137}]})
        wait_for("n2 to be the cause", lambda: [(f["kind"], f["node"]) for f in self.show(run)["faults"] if f["cause"]] ==
                 [("node_lost", "n2")], 10)
        self.assertEqual(self.show(run)["attempts"][0]["reason"], "node n2 is lost")

    def test_node_that_died_while_wlbd_was_away_is_the_cause(self):
        """The launcher tells of a rank that ended because of it, before the reports of n2 are due."""
        for end in ({"signal": 13}, {"exit_code": 1}):
            with self.subTest(end):
                run = self.new_run()
                attempt, _ = self.ask(run, ["n1", "n2"])
                self.cluster.verb("kill-wlbd")
                self.kill_slurmd(2)
                self.cluster.verb("start-wlbd")
                said = {"exit_code": 1, "first_exit": {"rank": 0, "node": "n1"} | end}
                self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
                    "state": "failed", "reason": ""} | said}], source="run")
                _, reply = self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt} | said)
                self.assertEqual((reply["decision"], reply["nodes"]), ("start", ["n1"]))
                self.assertEqual([(fault["kind"], fault["node"]) for fault in self.show(run)["faults"] if fault["cause"]],
                                 [("node_lost", "n2")])
                seen = f"select proof ? 'seen' from faults join runs r on r.id = run_id where kind = 'node_lost' and r.name = '{run}'"
                self.assertEqual(self.cluster.sql(seen), [["t"]])
                self.cluster.run("scancel", run)
                self.wait_node_back(2)

    def test_node_that_died_before_wlbd_knows_its_address_is_the_cause(self):
        """The launcher tells of a rank that ended because of it while slurmctld does not answer yet."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        slurmctld = int((self.cluster.dir / "run/slurmctld.pid").read_text(encoding="utf-8").split()[0])
        self.cluster.verb("kill-wlbd")
        self.kill_slurmd(2)
        os.kill(slurmctld, signal.SIGSTOP)
        self.addCleanup(os.kill, slurmctld, signal.SIGCONT)
        self.cluster.verb("start-wlbd")
        said = {"exit_code": 1, "first_exit": {"rank": 0, "node": "n1", "signal": 13}}
        self.deliver(run, attempt, [{"seq": 1, "time": 1790000000, "type": "attempt_end", "data": {
            "state": "failed", "reason": ""} | said}], source="run")
        time.sleep(2)
        os.kill(slurmctld, signal.SIGCONT)
        self.ask(run, ["n1", "n2"], previous={"attempt_id": attempt} | said)
        self.assertEqual([(fault["kind"], fault["node"]) for fault in self.show(run)["faults"] if fault["cause"]], [("node_lost", "n2")])

    def test_silent_node_is_found_without_a_closed_connection(self):
        """Power cut: no FIN ever comes."""
        self.restart_wlbd("silence_ms = 1000\n")
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, _ = self.open_reporters(run, attempt)
        report("n2")
        self.kill_slurmd(2)
        wait_for("a fault, while n1 reports", lambda: report("n1")["order"] == "end", 5)
        report("n1", goodbye=True)
        self.assert_node_lost(run, 6)

    def test_silent_job_closes_its_run(self):
        self.restart_wlbd("job_poll_ms = 500\n")
        job = self.cluster.sbatch("true")
        self.cluster.wait_job(job)
        self.api.call("POST", "/v1/runs", {"job_id": job})
        wait_for("the end of the run", lambda: self.show(job)["ended_at"], 30)
        self.assertEqual(self.show(job)["state"], "complete")
        failed = self.cluster.sbatch("exit 3")
        self.cluster.wait_job(failed)
        self.api.call("POST", "/v1/runs", {"job_id": failed})
        wait_for("the end of the run", lambda: self.show(failed)["ended_at"], 30)
        self.assertEqual((self.show(failed)["state"], self.show(failed)["reason"]),
                         ("failed", f"job {failed} ended FAILED with exit code 3"))


class Restarts(RunningJobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("restart_grace_ms = 1000\n")

    def test_node_that_died_while_wlbd_was_away(self):
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.cluster.verb("kill-wlbd")
        self.kill_slurmd(2)
        self.cluster.verb("start-wlbd")
        report, _ = self.open_reporters(run, attempt)
        wait_for("the order to end", lambda: report("n1")["order"] == "end", 6)
        report("n1", goodbye=True)
        self.assert_node_lost(run, 6)

    def slow_down_once(self, name, parameter=""):
        """The function of the schema takes longer than a statement may when it is called next."""
        argument = "$1" if parameter else ""
        self.cluster.sql(f"""alter function {name}({parameter}) rename to fast_{name}; create sequence calls_{name};
            create function {name}({parameter}) returns json language plpgsql as $$ begin
            if nextval('calls_{name}') = 1 then perform pg_sleep(30); end if; return fast_{name}({argument}); end $$""")
        self.addCleanup(self.cluster.sql, f"""drop function {name}({parameter}); drop sequence calls_{name};
            alter function fast_{name}({parameter}) rename to {name}""")

    def test_database_that_was_slow_at_the_restart(self):
        """The open attempts are asked for again, and so are the open runs."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.cluster.verb("kill-wlbd")
        self.kill_slurmd(2)
        self.slow_down_once("wlb_attempts_open")
        self.slow_down_once("wlb_attempt_json", "bigint")
        self.slow_down_once("wlb_runs_open")
        log = self.cluster.dir / "log/wlbd.out"
        before = len(log.read_text(encoding="utf-8"))
        self.cluster.verb("start-wlbd")
        report, _ = self.open_reporters(run, attempt)
        report("n1")  # the attempt may come into memory by it, and its other node still has to be missed
        wait_for("the attempts", lambda: " open attempts; their nodes have 1 s" in log.read_text(encoding="utf-8")[before:], 15)
        wait_for("the order to end", lambda: report("n1").get("order") == "end", 6)
        report("n1", goodbye=True)
        self.assert_node_lost(run, 3)
        text = log.read_text(encoding="utf-8")[before:]
        for line in ("open attempts are not all in memory yet, and wlbd asks for them again in 1 s: the database took too long",
                     "open runs cannot be read, and none is ended or requeued until the next poll: the database took too long"):
            self.assertIn(line, text)

    def test_node_that_died_after_the_end_of_the_training(self):
        """Rank 0 has recorded the end, srun waits for the tasks of n2, and wlbd is started again in between."""
        for state, code in (("complete", 0), ("failed", 1)):
            with self.subTest(state):
                run = self.new_run()
                attempt, _ = self.ask(run, ["n1", "n2"])
                self.deliver(run, attempt, [{"seq": 1, "time": 1790000000.0, "type": "attempt_end", "data": {
                    "state": state, "exit_code": code, "reason": "" if code == 0 else "rank 0 failed"}}])
                self.cluster.verb("kill-wlbd")
                self.kill_slurmd(2)
                self.cluster.verb("start-wlbd")
                report, _ = self.open_reporters(run, attempt)
                wait_for("the lost node", lambda: report("n1") and [
                    fault["node"] for fault in self.show(run)["faults"] if fault["kind"] == "node_lost"] == ["n2"], 6)
                report("n1", goodbye=True)
                self.wait_node_back(2)

    def test_requeued_job_needs_none_of_its_old_nodes(self):
        """Its step is over, although its launcher has not reported that."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        self.deliver(run, attempt, [{"seq": 1, "time": 1790000000.0, "type": "attempt_end", "data": {
            "state": "complete", "exit_code": 0, "reason": ""}}])
        self.cluster.sql(f"update runs set requeued_at = now() where name = '{run}'")
        self.cluster.verb("kill-wlbd")
        self.kill_slurmd(2)
        self.cluster.verb("start-wlbd")
        time.sleep(3)
        self.assertEqual(self.show(run)["faults"], [])


class RestartsAfterALoss(RunningJobs):
    """wlbd is killed between the loss of a node and the time at which it is set DOWN, and the job is requeued meanwhile."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("node_down_after_ms = 6000\n")

    def lost_lately(self, run):
        return json.loads(self.cluster.sql(f"""select entry->'lost_lately' from json_array_elements(wlb_runs_open()) entry
            where entry->>'run' = '{run}'""")[0][0])

    def lose(self):
        """A run that has lost n2; wlbd does not run."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])
        report, links = self.open_reporters(run, attempt)
        for node in ("n1", "n2"):
            report(node, agent=True)
        self.kill_slurmd(2)
        links["n2"].close()
        wait_for("the loss", lambda: self.cluster.sql("select node from faults join runs r on r.id = run_id where "
                                                      f"r.name = '{run}' and kind = 'node_lost' and proof ? 'seen'") == [["n2"]], 5)
        self.cluster.verb("kill-wlbd")
        self.assertNotEqual(self.node_state(2), "DOWN")
        return run

    def test_node_of_a_requeued_job(self):
        """It would wait in state COMPLETING until Slurm itself finds the node lost."""
        run = self.lose()
        self.cluster.run("scontrol", "requeue", run)
        self.cluster.verb("start-wlbd")
        wait_for("n2 DOWN in Slurm", lambda: self.node_state(2) == "DOWN", 15)
        self.assertIn(f"wlb: run {run}: node n2 lost", self.cluster.run("scontrol", "show", "node", "n2").stdout)

    def test_node_that_is_back(self):
        """It is watched once, and not at each look at the job."""
        run = self.lose()
        self.cluster.run("scontrol", "requeuehold", run)
        self.wait_node_back(2)
        before = len((self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8"))
        self.cluster.verb("start-wlbd")
        wait_for("the look at the job", lambda: self.cluster.sql("select count(*) from queue_waits join runs r on r.id = run_id where "
                                                                 f"r.name = '{run}'") == [["1"]], 20)
        time.sleep(3)
        log = (self.cluster.dir / "log/wlbd.out").read_text(encoding="utf-8")[before:]
        self.assertEqual(log.count(f"run {run}: node n2 is not set DOWN: it answers"), 1)
        self.assertIn(self.node_state(2), ("IDLE", "ALLOCATED", "MIXED"))

    def test_whose_loss_is_acted_on(self):
        """Only that of a node that Slurm had named as the job's when the attempt began, and only for some minutes."""
        run = self.new_run()
        attempt, _ = self.ask(run, ["n1", "n2"])

        of_attempt = f"(select id from attempts where uuid = '{attempt}')"
        for node in ("n1", "n3"):
            self.cluster.sql(f"""insert into faults (run_id, attempt_id, kind, is_loss, node, proof, detected_at)
                select run_id, id, 'node_lost', true, '{node}', '{{}}', now() from attempts where id = {of_attempt}""")
        self.assertEqual(self.lost_lately(run), [])
        self.cluster.sql(f"update faults set proof = '{{\"seen\": true}}' where attempt_id = {of_attempt}")
        self.assertEqual(self.lost_lately(run), ["n1"])
        self.cluster.sql(f"update faults set detected_at = now() - interval '11 min' where attempt_id = {of_attempt}")
        self.assertEqual(self.lost_lately(run), [])
        self.cluster.sql(f"update faults set detected_at = now() where attempt_id = {of_attempt}")
        self.assertEqual(self.lost_lately(run), ["n1"])
        self.cluster.sql(f"update attempts set decision = decision - 'of_job' where uuid = '{attempt}'")
        self.assertEqual(self.lost_lately(run), [])


if __name__ == "__main__":
    harness.main()
