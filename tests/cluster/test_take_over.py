#!/usr/bin/env python3
"""What a cluster of each released version left behind (tests/fixtures) is taken over: the database, a spool folder, a checkpoint
and the requests of clients of that version."""
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import unittest
import uuid

import harness
from harness import wait_for

FIXTURE = harness.ROOT / "tests/fixtures/schema-0.2.0"
NOT_ENDED = ("mid-flight", "half delivered")  # when the database was dumped
TOLERANCE = 1e-9  # relative, of sums in another order


def unpack(name, folder):
    with tarfile.open(FIXTURE / name) as file:
        file.extractall(folder, filter="data")


def differences(old, new, where=""):
    """What of `old` is not in `new`: fields may be added, none may go or change."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [text for key, value in old.items()
                for text in ([f"{where}.{key} is missing"] if key not in new
                             else differences(value, new[key], f"{where}.{key}"))]
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return [f"{where}: {len(old)} entries before, {len(new)} now"]
        return [text for index, pair in enumerate(zip(old, new)) for text in differences(*pair, f"{where}[{index}]")]
    if isinstance(old, float) and isinstance(new, (int, float)):
        return [] if abs(old - new) <= TOLERANCE * abs(old) else [f"{where}: {old} before, {new} now"]
    return [] if old == new else [f"{where}: {old!r} before, {new!r} now"]


def read_json(path):
    with gzip.open(path) as file:
        return json.load(file)


class TakeOver(harness.ClusterTest):
    nodes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            raise unittest.SkipTest("the runs in the fixture are root's")
        cls.before = read_json(FIXTURE / "shown.json.gz")
        cls.cluster.verb("kill-wlbd")
        conf = cls.cluster.dir / "etc/wlbd.conf"
        conf.write_text(conf.read_text() + "job_poll_ms = 500\nrestart_grace_ms = 1000\n")
        cls.cluster.sql("create database empty")
        cls.load_database()
        cls.cluster.verb("start-wlbd")  # after `wlb db migrate`

    @classmethod
    def load_database(cls):
        for statement in ("drop database wlb", "create database wlb"):
            cls.cluster.run("psql", "-X", "-q", "-d", "postgres", "-c", statement)
        path = cls.cluster.work / "database.sql"
        with gzip.open(FIXTURE / "database.sql.gz") as file:
            path.write_bytes(file.read())
        cls.cluster.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path)

    def name(self, what):
        return str(self.before["jobs"][what])

    def steps_of(self, name):
        return [(int(step), float(loss)) for step, loss in self.cluster.sql(
            f"select s.step, s.loss from steps s join runs r on r.id = s.run_id where r.name = '{name}' order by s.step")]

    def test_1_schema_is_that_of_an_empty_database(self):
        conf = self.cluster.work / "empty.conf"
        text = (self.cluster.dir / "etc/wlbd.conf").read_text()
        conf.write_text(text.replace("dbname=wlb", "dbname=empty"))
        self.cluster.run("wlb", "db", "migrate", env={"WLBD_CONF": str(conf)})
        schemas = [self.cluster.run("pg_dump", "-s", "-d", name).stdout for name in ("wlb", "empty")]
        migrated, fresh = ([line for line in text.splitlines() if not re.match(r"\\(un)?restrict ", line)]
                           for text in schemas)
        self.assertEqual(migrated, fresh)

    def test_2_every_run_is_shown_as_before(self):
        open_runs = {self.name(what) for what in NOT_ENDED}
        for name, old in self.before["show"].items():
            with self.subTest(run=name, state=old["state"]):
                new = self.cluster.show(name)
                if name in open_runs:  # they go on: what they have done stays
                    old, new = ({key: run[key] for key in ("steps", "tokens", "steps_done", "checkpoints", "policy")}
                                for run in (old, new))
                self.assertEqual(differences(old, new), [])
        rows = json.loads(self.cluster.run("wlb", "runs", "--json", "--limit", "1000").stdout)["runs"]
        old_rows = [row for row in self.before["runs"]["runs"] if row["run_id"] not in open_runs]
        self.assertEqual(differences(old_rows, [row for row in rows if row["run_id"] not in open_runs]), [])

    def test_3_runs_in_mid_flight_are_closed(self):
        for what in NOT_ENDED:
            name = self.name(what)
            self.assertEqual(self.before["show"][name]["state"], "running")
            run = wait_for(f"end of run {name}", lambda name=name: (lambda r: r if r["ended_at"] else None)(
                self.cluster.show(name)), 60, 0.5)
            self.assertEqual(run["state"], "failed")
            self.assertIn(f"job {name}", run["reason"])

    def test_4_spool_is_delivered_once(self):
        unpack("spool.tar.gz", self.cluster.work)
        spool = self.cluster.work / ".wlb"
        self.assertGreater(len(list(spool.glob("*.jsonl"))), 2)
        for _ in range(2):
            self.cluster.run("wlb", "flush", spool)
            self.assertEqual(list(spool.glob("*.jsonl")), [])
            for what in ("half delivered", "undelivered"):
                name = self.name(what)
                expected = [(record["step"], record["loss"]) for record in self.before["metrics"][what]]
                self.assertEqual(self.steps_of(name), expected)
                run = self.cluster.show(name)
                self.assertEqual((run["state"], run["steps_done"], run["steps_repeated"], len(run["attempts"])),
                                 ("complete", len(expected), 0, 1), run["reason"])
            unpack("spool.tar.gz", self.cluster.work)  # as when the flush was killed before it removed them

    def test_5_checkpoint_is_loaded(self):
        folder = self.cluster.work / "checkpoint"
        folder.mkdir()
        unpack("checkpoint.tar.gz", folder)
        told = json.loads((folder / "losses.json").read_text())
        manifest = next(folder.glob("ck/*/manifest.json"))
        facts = json.loads(manifest.read_text())
        self.assertIn("hyperparameters", facts)
        self.assertNotIn("earlier version", self.go_on(folder, told))
        del facts["hyperparameters"]
        shutil.rmtree(folder / "ck")
        unpack("checkpoint.tar.gz", folder)
        manifest.write_text(json.dumps(facts))
        self.assertIn("is of an earlier version, which did not record learning rate", self.go_on(folder, told))

    def go_on(self, folder, told):
        """Trains from the checkpoint as far as its run did, with the same losses; returns the standard error."""
        went_on = self.cluster.run(harness.BUILD / "bin/wlb-worker", *told["arguments"], "--load", "ck", "--metrics-file", "m.jsonl",
                                   cwd=folder, timeout_s=120)
        losses = {str(record["step"]): record["loss"]
                  for record in map(json.loads, (folder / "m.jsonl").read_text().splitlines())}
        (folder / "m.jsonl").unlink()
        self.assertEqual(sorted(map(int, losses)), list(range(11, 21)))
        for step, loss in losses.items():
            self.assertLess(abs(loss - told["losses"][step]), TOLERANCE * abs(loss), f"step {step}")
        return went_on.stderr

    def test_6_plans_and_calibrations(self):
        shown = self.cluster.run("wlb", "show", self.name("lost node")).stdout
        self.assertIn("Why this layout", shown)
        for uid, old in self.before["calibrations"].items():
            new = self.cluster.sql(f"select wlb_calibration_json('{old['node_type']}', 2, {uid})")[0][0]
            self.assertEqual(differences(old, json.loads(new)), [])

    def test_7_causes_are_judged_as_before(self):
        """By the judgements that the migration has made for the faults of that time; their sentences are the reasons."""
        broken = self.cluster.sql("select f.attempt_id, f.id, wlb_attempt_cause(f.attempt_id), f.kind, f.strength > 0 and f.sentence <> "
                                  "a.reason from faults f join attempts a on a.id = f.attempt_id where f.cause")
        self.assertGreater(len({kind for *_, kind, _ in broken}), 2, broken)
        for attempt, cause, judged, kind, differs in broken:
            self.assertEqual((judged, differs), (cause, "f"), f"attempt {attempt}: {kind}")


class OldClients(harness.ClusterTest):
    """Every request that clients of that time sent in one run, with new credentials, is answered as it was."""

    nodes = 2
    SAME = {"report": ("order",), "records": ("acked_seq",), "end": ("run_id", "state"), "runs": ("run_id",),
            "attempts": ("decision", "attempt", "nodes", "tasks_per_node", "layout", "spares", "checkpoint")}

    def test_session_is_answered_as_before(self):
        if os.geteuid() != 0:
            self.skipTest("the run in the fixture is root's")
        session = read_json(FIXTURE / "requests.json.gz")["session"]
        self.job = self.cluster.sbatch("sleep 600", "--job-name=session", "--requeue", "--no-kill",
                                       "--ntasks-per-node=2", nodes=2)
        self.addCleanup(self.cluster.run, "scancel", self.job)
        wait_for("the job", lambda: self.cluster.job(self.job)["JobState"] == "RUNNING", 20)
        self.attempts = [str(uuid.uuid4()) for _ in range(4)]
        self.links = {}
        for number, entry in enumerate(session):
            line = entry["request"].split("\r\n", 1)[0]
            self.assertEqual(self.replay(entry, line.split()[0], line.split()[1]), [], f"request {number}: {line}")
        kinds = {re.sub(r"\?.*", "", e["request"].split()[1]).rsplit("/", 1)[1] for e in session}
        self.assertLessEqual({"runs", "attempts", "records", "report", "end", "healthz"}, kinds)

    def fill(self, text):
        for index, attempt in enumerate(self.attempts):
            text = text.replace("{attempt%d}" % index, attempt)
        return text.replace("{run}", str(self.job))

    def replay(self, entry, method, path):
        """What is different. Asks again while the answer may still change: a verdict takes its time, as it did then."""
        kind = re.sub(r"\?.*", "", path).rsplit("/", 1)[1]
        old, end = json.loads(self.fill(entry["reply"])) if entry["reply"].startswith("{") else None, time.monotonic() + 15
        while True:
            status, text = self.send(entry, method, self.fill(path))
            problems = [f"status {entry['status']} before, {status} now: {text[:200]}"] if status != entry["status"] else \
                self.compare(kind, old, text)
            if not problems or kind not in ("report", "attempts") or time.monotonic() > end:
                return problems
            time.sleep(0.2)

    def compare(self, kind, old, text):
        if old is None:
            return []
        new = json.loads(text)
        if kind in self.SAME:
            wanted = {key: old[key] for key in self.SAME[kind] if key in old}
            return differences(wanted, new)
        return [f"{key} is missing" for key in old if key not in new]

    def send(self, entry, method, path):
        head, body = entry["request"].split("\r\n\r\n", 1)
        body = self.fill(body)
        digest = hashlib.sha256(f"{method}\n{path}\n{body}".encode()).hexdigest()
        credential = subprocess.run(["munge", "-S", self.cluster.env["WLB_MUNGE_SOCKET"], "-s", digest], check=True,
                                    capture_output=True, text=True, timeout=10).stdout.strip()
        head = self.fill(head).replace("{credential}", credential).replace("{address}", self.cluster.env["WLB_COORDINATOR"])
        head = re.sub(r"Content-Length: \d+", f"Content-Length: {len(body)}", head)
        link = self.links.setdefault(entry["connection"], http.client.HTTPConnection(self.cluster.env["WLB_COORDINATOR"],
                                                                                    timeout=20))
        for again in (False, True):  # an old connection may be closed by now: clients open another
            if link.sock is None:
                link.connect()
                self.addCleanup(link.close)
            link.sock.sendall(f"{head}\r\n\r\n{body}".encode())
            reply = http.client.HTTPResponse(link.sock, method=method)
            try:
                reply.begin()
            except (OSError, http.client.HTTPException):
                link.close()
                if again:
                    raise
                continue
            text = reply.read().decode()
            if reply.will_close:
                link.close()
            return reply.status, text


if __name__ == "__main__":
    harness.main()
