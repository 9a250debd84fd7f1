"""Runs attacks by unprivileged accounts on a private cluster with a job of root, while a watch measures how wlbd answers
root.

    class Floods(HostileTest):
        def test_reports(self):
            self.attack(send_many_reports, uid=NOBODY, processes=4)

A function that attacks runs in processes of its own, as an unprivileged account. Before each test the watch starts; after it
these must hold: root's reads, deliveries and decisions were all answered in time; root's job was left alone; wlbd is the same
process, below 200 MiB throughout, back to within 40 MiB of its start, idle, and has not filled its log. Each class ends wlbd
by SIGTERM: exit code 0, and nothing from the sanitizers.
"""
import contextlib
import ctypes
import functools
import hashlib
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import unittest
import uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

import harness
from harness import clock_s, wait_for

NOBODY = 65534
STRANGER = 12345  # a second account; MUNGE needs no name for it
BOTH = (NOBODY, STRANGER)
MIB = 1 << 20
SANITIZED = "WLB_TEST_WLBD" in os.environ
# The bounds of waits, beside other tests on two cores, by clock_s(); speed is measured elsewhere.
ANSWER_MOST_S = 20 if SANITIZED else 10
CALM_MOST_S = 40 if SANITIZED else 30
RSS_MOST_MIB = 200
RSS_LEFT_MOST_MIB = 40  # among it the attempts of the tests before, which wlbd keeps for a minute: 64 MiB a user at most
LOG_MOST_BYTES = MIB
SANITIZER = re.compile(r"ERROR: AddressSanitizer|LeakSanitizer|runtime error:")


# ---- requests --------------------------------------------------------------------------------------------------------

class Munge:
    """Credentials of the account that this process runs as, without a process for each."""

    OPT_SOCKET = 8  # munge.h

    def __init__(self, path):
        self.lib = ctypes.CDLL("libmunge.so.2")
        self.lib.munge_ctx_create.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.lib.munge_ctx_create())
        self.lib.munge_ctx_set(self.context, self.OPT_SOCKET, ctypes.c_char_p(str(path).encode()))

    def encode(self, payload):
        text = ctypes.c_char_p()
        rc = self.lib.munge_encode(ctypes.byref(text), self.context, payload, len(payload))
        if rc != 0:
            raise OSError(f"munge_encode: error {rc}")
        return text.value.decode()


def digest(method, path, body):
    return hashlib.sha256(f"{method}\n{path}\n".encode() + body).hexdigest().encode()


class Caller:
    """Requests over one kept connection, each with a credential of this process's account."""

    def __init__(self, place, timeout_s=30):
        self.place = place
        self.munge = Munge(place.munge_socket)
        self.timeout_s = timeout_s
        self.link = None

    def credential(self, method, path, body=b""):
        return self.munge.encode(digest(method, path, body))

    def call(self, method, path, body=None, credential=None):
        """(status, text); a connection that wlbd has closed is opened again, once."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        for again in (False, True):
            if self.link is None:
                self.link = http.client.HTTPConnection(*self.place.address, timeout=self.timeout_s)
            headers = {"Authorization": "MUNGE " + (credential or self.credential(method, path, data))}
            try:
                self.link.request(method, path, data or None, headers)
                reply = self.link.getresponse()
                return reply.status, reply.read().decode()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if again or isinstance(error, TimeoutError):
                    return 0, f"{type(error).__name__}: {error}"

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)

    def close(self):
        if self.link is not None:
            self.link.close()
        self.link = None

    __del__ = close


class Place:
    """The addresses of wlbd and munged: all that an attacker needs of the cluster."""

    def __init__(self, cluster):
        host, port = cluster.env["WLB_COORDINATOR"].rsplit(":", 1)
        self.address = (host, int(port))
        self.munge_socket = cluster.dir / "munge/munge.sock"
        self.coordinator = cluster.env["WLB_COORDINATOR"]

    def connect(self, timeout_s=10):
        return socket.create_connection(self.address, timeout=timeout_s)


def head_of(method, path, length=0, credential=None, more=()):
    """The head of a request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: wlbd", f"Content-Length: {length}", *more]
    if credential is not None:
        lines.append(f"Authorization: MUNGE {credential}")
    return "\r\n".join([*lines, "", ""]).encode()


def read_status(link):
    """Status of the next reply on a raw connection; 0 when wlbd closed it or did not answer."""
    try:
        reply = http.client.HTTPResponse(link)
        reply.begin()
        reply.read()
        return reply.status
    except (OSError, http.client.HTTPException):
        return 0


def close_all(links):
    for link in links:
        link.close()


# ---- bodies ----------------------------------------------------------------------------------------------------------

def event(seq, detail="", kind="note", at_s=1790000000.0):
    return {"seq": seq, "time": at_s, "type": "event", "data": {"kind": kind, "detail": detail}}


def step(seq, number, **fields):
    data = {"step": number, "loss": 2.0, "grad_norm": 0.5, "lr": 0.001, "tokens": 4096, "documents": 9,
            "step_time_s": 0.5, "tokens_per_s": 8192.0}
    return {"seq": seq, "time": 1790000000.0 + min(seq, 10**6), "type": "step", "data": data | fields}


def delivery(run, attempt, records, source="rank0"):
    return {"attempt_id": attempt, "source": source, "job_id": int(str(run).split(".", maxsplit=1)[0]),
            "first_seq": records[0]["seq"], "records": records}


def report(attempt, node, rank=0, **more):
    return {"attempt_id": attempt, "source": "node", "node": node, "rank": rank, "ranks": [rank], "step": 1} | more


# ---- the watch -------------------------------------------------------------------------------------------------------

class Watch:
    """Sends root's requests and measures their answers: reads, deliveries of steps, and requests for the next attempt."""

    KINDS = ("list", "show", "delivery", "decision")
    PAUSE_S = 0.15
    STEPS_PER_ATTEMPT = 4

    def __init__(self, place, run, nodes):
        self.place, self.run, self.nodes = place, run, nodes
        self.attempt, self.number = None, 0
        self.stopping = threading.Event()
        self.answers = []
        self.begun_s = []  # when it began attempts
        self.threads = []

    def start(self):
        self.stopping.clear()
        self.answers = []
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.read, self.train)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)

    def ask(self, caller, what, method, path, body=None):
        began = clock_s()
        status, text = caller.call(method, path, body)
        self.answers.append((what, status, clock_s() - began, text[:300]))
        return json.loads(text) if status == 200 else {}

    def read(self):
        caller = Caller(self.place)
        while not self.stopping.wait(self.PAUSE_S):
            self.ask(caller, "list", "GET", "/v1/runs?user=root&limit=50")
            self.ask(caller, "show", "GET", f"/v1/runs/{self.run}")
            caller.close()  # so that a new connection is measured as well

    def train(self):
        caller = Caller(self.place)
        while not self.stopping.is_set():
            self.decide(caller)
            for seq in range(1, self.STEPS_PER_ATTEMPT + 1):
                if self.stopping.wait(self.PAUSE_S):
                    return
                self.number += 1
                body = delivery(self.run, self.attempt, [step(seq, self.number)])
                self.ask(caller, "delivery", "POST", f"/v1/runs/{self.run}/records", body)

    def decide(self, caller):
        """Asks as `wlb run` does after a failed attempt, until the decision is start; all of it counts as one answer."""
        previous = {"attempt_id": self.attempt, "exit_code": 1} if self.attempt else None
        mine = str(uuid.uuid4())
        body = {"attempt_id": mine, "job_id": int(self.run), "nodes": self.nodes, "tasks_per_node": 1,
                "policy": {"layout": "auto"}, "previous": previous}
        began = clock_s()
        while True:
            status, text = caller.call("POST", f"/v1/runs/{self.run}/attempts", body)
            word = json.loads(text).get("decision") if status == 200 else None
            if word != "wait" or clock_s() - began > ANSWER_MOST_S:
                break
            time.sleep(0.1)
        self.answers.append(("decision", status if word == "start" else f"{status} {word}", clock_s() - began, text))
        if word == "start":
            self.attempt = mine
            self.begun_s.append(time.monotonic())

    def has_all_kinds(self):
        return len({answer[0] for answer in self.answers}) == len(self.KINDS)

    def problems(self):
        found = []
        for what in self.KINDS:
            answers = [answer for answer in self.answers if answer[0] == what]
            refused = [f"{what}: {status}: {text}" for _, status, _, text in answers if status != 200]
            slowest = max((took for _, _, took, _ in answers), default=0)
            if not answers:
                found.append(f"{what}: none was answered")
            elif slowest > ANSWER_MOST_S:
                found.append(f"{what}: an answer took {slowest:.1f} s")
            if refused:
                found.append(f"{len(refused)} of {len(answers)}: {refused[0]}")
        return found

    def summary(self):
        slowest = {}
        for what, _, took, _ in self.answers:
            slowest[what] = max(slowest.get(what, 0), took)
        return ", ".join(f"{what} {took:.2f} s" for what, took in slowest.items())


# ---- wlbd under watch ------------------------------------------------------------------------------------------------

class Daemon:
    """wlbd as a child of the test, so that its exit code is known."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.log = cluster.dir / "log/wlbd.out"
        self.program = os.environ.get("WLB_TEST_WLBD", str(cluster.build / "bin/wlbd"))
        self.process = None
        self.started_s = 0

    def start(self, descriptors=None):
        """Starts wlbd in place of the one that the cluster started."""
        def limit():
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        if self.process is None:
            self.cluster.verb("kill-wlbd")
        with open(self.log, "ab") as log:
            self.started_s = time.monotonic()
            self.process = subprocess.Popen([self.program], env=self.cluster.env | {
                "WLB_CLUSTER_DAEMON": str(self.cluster.dir)}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=limit)
        began = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        (self.cluster.dir / "run/wlbd.pid").write_text(f"{self.pid} {began}\n")
        wait_for("wlbd with its database", self.healthy, 20)

    def stop(self, with_signal=signal.SIGTERM, within_s=30):
        """Ends wlbd; returns its exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(within_s)
        (self.cluster.dir / "run/wlbd.pid").unlink(missing_ok=True)
        return code

    def page(self, path):
        """(status, text) of a page that needs no credential; (0, "") when wlbd does not answer."""
        link = http.client.HTTPConnection(self.cluster.env["WLB_COORDINATOR"], timeout=10)
        with contextlib.closing(link), contextlib.suppress(OSError, http.client.HTTPException):
            link.request("GET", path)
            reply = link.getresponse()
            return reply.status, reply.read().decode()
        return 0, ""

    def healthy(self):
        return self.page("/healthz")[0] == 200

    def metric(self, name):
        lines = self.page("/metrics")[1].splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))

    @property
    def pid(self):
        return self.process.pid

    def memory_mib(self, field):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", text)[1]) / 1024

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def idle(self):
        before = self.cpu_s()
        time.sleep(0.4)
        return self.cpu_s() - before < 0.12

    def sanitizer_report(self):
        text = self.log.read_text(errors="replace")
        found = SANITIZER.search(text)
        return text[found.start():found.start() + 3000] if found else ""


# ---- a test ----------------------------------------------------------------------------------------------------------

AT_END = contextlib.ExitStack()  # by which, unlike by atexit, a cluster that does not stop fails the program


class SharedCluster:
    """The cluster that all attacks of a process share, with root's job, the watch, and wlbd."""

    NODES = 4
    SETTINGS = "request_timeout_ms = 3000\n"  # of wlbd.conf: slow senders are waited for no longer

    def __init__(self):
        self.cluster = harness.Cluster(self.NODES, for_others=True)
        AT_END.callback(self.cluster.stop)
        self.cluster.start()
        self.cluster.dir.joinpath("munge").chmod(0o755)
        conf = self.cluster.dir / "etc/wlbd.conf"
        conf.write_text(conf.read_text() + self.SETTINGS)
        self.place = Place(self.cluster)
        self.slurmds = []
        self.daemon = Daemon(self.cluster)
        self.daemon.start()
        self.root = Caller(self.place)
        self.victim = self.start_victim()
        self.watch = Watch(self.place, self.watched_job(), ["n1", "n2"])
        self.warm_up()

    def start_victim(self, nodes=NODES):
        """Submits a job of root on the first nodes; returns its id."""
        job = self.cluster.sbatch("wlb run -- sleep 100000", "--wlb-layout=auto", "--requeue", "--no-kill",
                                  "--ntasks-per-node=1", "--job-name=victim", f"--nodelist=n[1-{nodes}]", nodes=nodes)
        wait_for("root's run", lambda: [a["state"] for a in self.shown(job).get("attempts", [])] == ["running"], 30)
        return job

    def shown(self, run):
        status, text = self.root.get(f"/v1/runs/{run}")
        return json.loads(text) if status == 200 else {}

    def watched_job(self):
        job = self.cluster.sbatch("sleep 100000", "--job-name=watched", "--ntasks-per-node=1", "--nodelist=n[1-2]", nodes=2)
        wait_for("the watched job", lambda: self.cluster.job(job)["JobState"] == "RUNNING", 20)
        status, text = self.root.post("/v1/runs", {"run_id": str(job), "job_id": job, "restart_count": 0,
                                                   "policy": {"layout": "auto", "min_nodes": 1}})
        if status != 200:
            raise harness.Failed(f"announcing the watched run: {status} {text}")
        return str(job)

    def warm_up(self):
        """Makes every kind of request once, and records wlbd's memory after that."""
        self.watch.start()
        wait_for("first answers", self.watch.has_all_kinds, 30)
        self.watch.stop()
        self.rss_mib = self.daemon.memory_mib("VmRSS")

    @staticmethod
    @functools.cache
    def get():
        return SharedCluster()


class HostileTest(unittest.TestCase):
    descriptors = None  # of wlbd

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("attackers with accounts of their own need root")
        cls.shared_cluster = SharedCluster.get()
        cls.cluster, cls.place, cls.daemon = cls.shared_cluster.cluster, cls.shared_cluster.place, cls.shared_cluster.daemon
        cls.watch, cls.shown = cls.shared_cluster.watch, cls.shared_cluster.shown
        if cls.daemon.process.poll() is None and cls.descriptors is not None:
            cls.daemon.stop()
        if cls.daemon.process.poll() is not None:
            cls.daemon.start(cls.descriptors)
            cls.shared_cluster.warm_up()

    @classmethod
    def tearDownClass(cls):
        if cls.daemon.process.poll() is not None:
            return
        code = cls.daemon.stop()
        if code != 0 or cls.daemon.sanitizer_report():
            raise AssertionError(f"wlbd ended by SIGTERM with {code}\n{cls.daemon.sanitizer_report()}")

    def run(self, result=None):
        """Prints at once why a test failed, and the ends of the logs."""
        before = harness.problem_count(result)
        super().run(result)
        if harness.problem_count(result) > before:
            for text in [text for test, text in [*result.failures, *result.errors] if test is self]:
                print(text, file=sys.stderr)
            self.cluster.show_logs(4)
        return result

    @property
    def victim(self):
        return self.shared_cluster.victim

    def setUp(self):
        self.heal()
        self.log_bytes = self.daemon.log.stat().st_size
        self.same_pid = self.daemon.pid
        self.began = time.monotonic()
        self.daemon.forget_peak()
        self.watch.start()

    def heal(self):
        """Repairs what the previous test left broken, so that only that test fails by it."""
        if self.daemon.process.poll() is None and self.keeps_memory():
            self.daemon.stop()
        if self.daemon.process.poll() is not None:
            self.daemon.start(self.descriptors)
        if not self.victim_problems():
            return
        self.cluster.run("scancel", self.victim, check=False)
        self.cluster.run("scontrol", "update", f"nodename=n[1-{SharedCluster.NODES}]", "state=resume", check=False)
        self.shared_cluster.victim = self.shared_cluster.start_victim()

    def tearDown(self):
        if not self.watch.stopping.is_set():
            self.becomes(self.watch.has_all_kinds)
            self.watch.stop()
        problems = self.watch.problems() + self.victim_problems() + self.daemon_problems()
        print(f"[{self.watch.summary()}; peak {self.peak_mib:.0f} MiB, {self.left_mib:.0f} left; "
              f"{time.monotonic() - self.began:.1f} s]", end=" ", flush=True)
        self.assertEqual(problems, [])

    def victim_problems(self):
        job, run = self.cluster.job(self.victim), self.shown(self.victim)
        found = []
        if (job["JobState"], job["Restarts"]) != ("RUNNING", "0"):
            found.append(f"root's job is {job['JobState']} after {job['Restarts']} restarts")
        if run.get("state") != "running" or len(run["attempts"]) != 1 or run["faults"]:
            found.append(f"root's run is {run.get('state')}; attempts "
                         f"{[(a['state'], a['reason']) for a in run.get('attempts', [])]}; faults "
                         f"{[(f['kind'], f['node'], f['rank']) for f in run.get('faults', [])]}")
        nodes = self.cluster.run("sinfo", "-h", "-N", "-o", "%N %T").stdout.split("\n")
        found += [f"node {line}" for line in nodes if re.search("down|drain", line)]
        return found

    def daemon_problems(self):
        self.peak_mib = self.left_mib = 0
        code = self.daemon.process.poll()
        if code is not None or self.daemon.pid != self.same_pid:
            return [f"wlbd ended with {code}: {self.daemon.sanitizer_report()}"]
        found = []
        self.peak_mib = self.daemon.memory_mib("VmHWM")
        log_bytes = self.daemon.log.stat().st_size - self.log_bytes
        if log_bytes > LOG_MOST_BYTES:
            found.append(f"its log grew by {log_bytes} bytes")
        if not SANITIZED and self.peak_mib > RSS_MOST_MIB:
            found.append(f"its memory was {self.peak_mib:.0f} MiB")
        if not self.becomes(self.daemon.idle):
            found.append("it does not become idle")
        if not self.becomes(lambda: not self.keeps_memory()):
            found.append(f"it keeps {self.daemon.memory_mib('VmRSS'):.0f} MiB; {self.shared_cluster.rss_mib:.0f} at its start")
        self.left_mib = self.daemon.memory_mib("VmRSS")
        if self.daemon.sanitizer_report():
            found.append(self.daemon.sanitizer_report())
        return found

    def keeps_memory(self):
        return not SANITIZED and self.daemon.memory_mib("VmRSS") > self.shared_cluster.rss_mib + RSS_LEFT_MOST_MIB

    @staticmethod
    def becomes(condition, within_s=CALM_MOST_S):
        try:
            return wait_for("it", condition, within_s, 0.2)
        except harness.Failed:
            return False

    # ---- attackers ----

    def attack(self, function, *arguments, uid=NOBODY, processes=1, within_s=120):
        """Runs function(place, *arguments) in `processes` processes of that account, or of several in turn; returns the
        result of each."""
        return self.begin_attack(function, *arguments, uid=uid, processes=processes).results(within_s)

    def begin_attack(self, function, *arguments, uid=NOBODY, processes=1):
        attack = Attack(self.place, function, arguments, uid, processes)
        self.addCleanup(attack.end)
        return attack

    def as_user(self, *command, uid=NOBODY, check=True, **options):
        return self.cluster.run(*command, user=uid, group=uid, extra_groups=[], check=check, cwd=self.folder_of(uid),
                                **options)

    def folder_of(self, uid):
        folder = self.cluster.home / f"user-{uid}"
        if not folder.is_dir():
            folder.mkdir()
            os.chown(folder, uid, uid)
        return folder

    def own_job(self, *options, script="sleep 100000", uid=NOBODY, nodes=1):
        """Starts a job of an attacker; returns its id."""
        path = self.folder_of(uid) / f"job-{time.monotonic_ns()}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n")
        job = int(self.as_user("sbatch", "--parsable", f"-N{nodes}", "-o", "%j.out", *options, path, uid=uid).stdout)
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        wait_for(f"job {job}", lambda: self.cluster.job(job)["JobState"] == "RUNNING", 60)
        return job

    def own_run(self, *options, nodes=1):
        """Starts a job of NOBODY and announces its run with one attempt; returns (run, attempt)."""
        job = self.own_job("--ntasks-per-node=1", *options, nodes=nodes)
        names = sorted(self.cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.split())
        hosts = self.cluster.run("scontrol", "show", "hostnames", ",".join(names)).stdout.split()
        return str(job), self.attack(announce_and_start, job, hosts)[0]


def announce_and_start(place, job, nodes):
    caller = Caller(place)
    attempt = str(uuid.uuid4())
    status, text = caller.post("/v1/runs", {"run_id": str(job), "job_id": job, "restart_count": 0,
                                            "policy": {"layout": "auto"}})
    end = time.monotonic() + 10
    while status == 200 and time.monotonic() < end:
        status, text = caller.post(f"/v1/runs/{job}/attempts", {
            "attempt_id": attempt, "job_id": job, "nodes": nodes, "tasks_per_node": 1, "policy": {"layout": "auto"},
            "previous": None})
        if json.loads(text).get("decision") != "wait":
            break
        time.sleep(0.2)
    if status != 200 or json.loads(text)["decision"] != "start":
        raise harness.Failed(f"own run: {status} {text}")
    return attempt


class Attack:
    """Processes of unprivileged accounts that all call one function."""

    def __init__(self, place, function, arguments, uid, processes):
        context = multiprocessing.get_context("fork")
        uids = uid if isinstance(uid, tuple) else (uid,)
        self.queue = context.SimpleQueue()
        self.processes = [context.Process(target=self.work, args=(place, function, arguments, uids[number % len(uids)]),
                                          daemon=True) for number in range(processes)]
        for process in self.processes:
            process.start()

    def work(self, place, function, arguments, uid):
        signal.alarm(0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            self.queue.put((True, function(place, *arguments)))
        except BaseException:  # of any kind: the test prints it
            self.queue.put((False, traceback.format_exc()))

    def results(self, within_s=120):
        end = time.monotonic() + within_s
        found = []
        while len(found) < len(self.processes):
            wait_for("the attack's end", lambda: not self.queue.empty(), max(0.1, end - time.monotonic()), 0.02)
            good, value = self.queue.get()
            if not good:
                raise harness.Failed(f"the attack itself failed: {value}")
            found.append(value)
        self.end()
        return found

    def end(self):
        for process in self.processes:
            process.kill()
            process.join()


def main(names=None):
    with AT_END:
        harness.main(names)
