#!/usr/bin/env python3
"""Two wlbd share a database: one acts and the other stands by, whatever happens to the one that acts; a run notices nothing."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import harness
import test_time_limit
import training
from harness import wait_for

LEASE_S = 2
TAKEN_S = LEASE_S + 3  # within which the other acts: the lease, the second after it, a look, and a slow machine
ITERATIONS = 48
SAVE_INTERVAL = 4
# wlb-worker whose ranks read each document slowly, as long as the file is there.
WORKER = test_time_limit.SLOW_WORKER.replace("exec ", "[ -e slowly ] || SLOW_DISK_WAIT_S=0\nexec ")


class Relay:
    """A port of PostgreSQL, whose connections can be cut: they stay open, and no byte passes."""

    def __init__(self, path):
        self.path, self.passes, self.sockets = path, threading.Event(), []
        self.passes.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, far = self.listener.accept()[0], socket.socket(socket.AF_UNIX)
                with contextlib.suppress(OSError):  # the database may be away
                    far.connect(self.path)
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self.forward, args=(source, target), daemon=True).start()
                self.sockets += [near, far]

    def forward(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.passes.wait()
                target.sendall(data)
        self.passes.wait()
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        for each in (self.listener, *self.sockets):
            each.close()


class Coordinator:
    """One of the two, with settings of its own."""

    def __init__(self, cluster, name, address, database):
        self.cluster, self.name, self.address, self.process = cluster, name, address, None
        lines = (cluster.dir / "etc/wlbd.conf").read_text(encoding="utf-8").splitlines()
        own = {"listen": address, **({"database": database} if database else {})}
        kept = [line for line in lines if line.split(" = ")[0] not in own]
        self.conf = cluster.home / f"wlbd-{name}.conf"
        self.conf.write_text("\n".join(kept + [f"{key} = {value}" for key, value in own.items()]) + "\n", encoding="utf-8")
        self.conf.chmod(0o600)

    def start(self):
        with open(self.cluster.dir / "log/wlbd.out", "a", encoding="utf-8") as log:
            program = os.environ.get("WLB_TEST_WLBD", harness.BUILD / "bin/wlbd")
            env = {**self.cluster.env, "LD_PRELOAD": str(harness.BUILD / "tests/stop_order.so"),
                   "WLB_TEST_STOP": str(self.cluster.work / "stop"), "WLB_TEST_ORDERS": str(self.cluster.work / "orders")}
            self.process = subprocess.Popen([program, "--config", self.conf], env=env, stdout=log, stderr=log)
        wait_for(f"{self.name}", lambda: self.health(), 20)

    def end(self, number):
        os.kill(self.process.pid, number)
        self.process.wait(timeout=30)

    def get(self, path):
        """An open page; empty where it does not answer."""
        connection = http.client.HTTPConnection(self.address, timeout=2)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()

    def health(self):
        return json.loads(self.get("/healthz") or "{}")

    def role(self):
        return self.health().get("role")

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))


class TwoCoordinators(training.TrainingTest):
    nodes = 2
    wlbd_conf = harness.WLBD_CONF + f"lease_ms = {1000 * LEASE_S}\nsilence_ms = 2000\nnode_down_after_ms = 500\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.cluster.work / "slow").mkdir()
        (cls.cluster.work / "slow/wlb-worker").write_text(WORKER, encoding="utf-8")
        (cls.cluster.work / "slow/wlb-worker").chmod(0o755)
        (cls.cluster.work / "slowly").touch()
        cls.cluster.verb("kill-wlbd")
        cls.cluster.sql("update coordinator set lease_ms = 0")  # it was killed, and its lease need not be waited for
        cls.relay = Relay(f"{cls.cluster.dir}/pg/.s.PGSQL.5432")
        cls.addClassCleanup(cls.relay.close)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        one = cls.cluster.env["WLB_COORDINATOR"]
        names = f"dbname={cls.cluster.env['PGDATABASE']} user={cls.cluster.env['PGUSER']}"
        cls.a = Coordinator(cls.cluster, "a", one, f"host=127.0.0.1 port={cls.relay.port} {names}")
        cls.b = Coordinator(cls.cluster, "b", f"127.0.0.1:{port}", None)
        both = f"{one},{cls.b.address}"
        plugins = cls.cluster.dir / "etc/plugstack.conf"
        plugins.write_text(plugins.read_text(encoding="utf-8").replace(f"coordinator={one}", f"coordinator={both}"), encoding="utf-8")
        cls.cluster.env["WLB_COORDINATOR"] = both
        for each in (cls.a, cls.b):
            each.start()
            cls.addClassCleanup(cls.kill, each)
        cls.wait_roles("active", "standby", 20)
        cls.term = cls.cluster.sql("select term from coordinator")

    @classmethod
    def kill(cls, coordinator):
        with contextlib.suppress(ProcessLookupError):
            coordinator.process.kill()
            coordinator.process.wait()

    @classmethod
    def roles(cls):
        return cls.a.role(), cls.b.role()

    @classmethod
    def wait_roles(cls, a, b, timeout_s=TAKEN_S):
        wait_for(f"a {a} and b {b}, which were {cls.roles()}", lambda: cls.roles() == (a, b), timeout_s, 0.1)

    def orders(self):
        path = self.cluster.work / "orders"
        return [line.split() for line in path.read_text(encoding="ascii").splitlines()] if path.exists() else []

    def submit_slow(self):
        words = " ".join(training.arguments(iterations=ITERATIONS))
        return self.cluster.sbatch(f"wlb run -- slow/wlb-worker {words} --save ck --load ck --metrics-file m-$SLURM_JOB_ID.jsonl "
                                   f"--log-interval 1 --save-interval {SAVE_INTERVAL}", "--wlb-layout=dp=2", "--ntasks-per-node=1",
                                   "--no-kill", nodes=2)

    def test_1_one_acts(self):
        self.assertEqual(self.a.health()["active"], self.b.health()["active"])
        self.assertTrue(self.b.health()["active"].endswith(self.a.address.rpartition(":")[2]))
        self.assertLess(self.b.threads(), self.a.threads())
        for each, value in ((self.a, 1), (self.b, 0)):
            self.assertIn(f"wlbd_active {value}\n", each.get("/metrics"))
        alone = self.cluster.run("wlb", "runs", env={"WLB_COORDINATOR": self.b.address}, check=False)
        self.assertNotEqual(alone.returncode, 0)
        self.assertRegex(alone.stderr, f"coordinator {self.b.address}: stands by")
        for order in ((self.a, self.b), (self.b, self.a)):
            self.cluster.run("wlb", "runs", env={"WLB_COORDINATOR": ",".join(each.address for each in order)})
        self.assertEqual(self.cluster.sql("select term from coordinator"), self.term)
        late = self.cluster.run("psql", "-X", "-c", f"select wlb_coordinator_session({int(self.term[0][0]) - 1})", check=False)
        self.assertIn("another wlbd acts by now", late.stderr)

    def test_1_doctor(self):
        def findings():
            found = json.loads(self.cluster.run("wlb", "doctor", "--json", check=False).stdout)
            return {each["check"]: (each["finding"], each["detail"]) for each in found}

        found = findings()
        for check, word in (("coordinator", "acts"), ("second coordinator", "stands by"), ("database", ""), ("credential", "")):
            self.assertEqual(found[check][0], "ok", found)
            self.assertTrue(found[check][1].endswith(word), found)
        self.b.end(signal.SIGKILL)
        found = findings()
        self.b.start()
        self.assertEqual((found["coordinator"][0], found["second coordinator"][0], found["credential"][0]), ("ok", "warn", "ok"))
        self.assertNotIn("acting coordinator", found)

    def test_2_killed_and_frozen(self):
        """The one that acts is killed while a run trains, and the next is frozen when it is about to set a lost node DOWN."""
        job = self.submit_slow()
        self.wait_step(job, 1)
        self.a.end(signal.SIGKILL)
        self.wait_roles(None, "active")
        self.a.start()
        self.assertEqual(self.roles(), ("standby", "active"))
        run = self.cluster.show(job)
        self.assertEqual((run["state"], len(run["attempts"]), run["faults"]), ("running", 1, []))
        wait_for("the reports of both nodes and of wlb run", lambda: "wlbd_reporters 3\n" in self.b.get("/metrics"), 20)
        (self.cluster.work / "stop").touch()
        self.cluster.kill_node(2)
        (self.cluster.work / "slowly").unlink()
        frozen = str(self.b.process.pid)
        self.addCleanup(os.kill, self.b.process.pid, signal.SIGCONT)
        wait_for("the order of b", lambda: [frozen, "stops"] in self.orders(), 20)
        wait_for("a", lambda: self.a.role() == "active", TAKEN_S, 0.1)
        os.kill(self.b.process.pid, signal.SIGCONT)
        self.wait_roles("active", "standby")
        self.assertIsNone(self.b.process.poll())
        self.assertEqual(pathlib.Path(f"/proc/{frozen}/comm").read_text(encoding="ascii"), "wlbd\n")
        self.assertNotIn([frozen, "orders"], self.orders())
        wait_for("the end of the run", lambda: self.cluster.show(job)["ended_at"], 60)
        run = self.cluster.show(job)
        self.assertEqual((run["state"], [attempt["nodes"] for attempt in run["attempts"]]), ("complete", [["n1", "n2"], ["n1"]]))
        self.assertEqual([(fault["kind"], fault["node"]) for fault in run["faults"] if fault["cause"]], [("node_lost", "n2")])
        self.assertEqual(self.cluster.sql(f"select count(*), min(step), max(step) from steps where run_id = {run['id']}"),
                         [[str(ITERATIONS), "1", str(ITERATIONS)]])

    def test_3_cut_off_from_the_database(self):
        before = self.a.process.pid
        self.relay.passes.clear()
        self.wait_roles("standby", "active")
        self.assertEqual(self.cluster.sql("select count(distinct application_name) from pg_stat_activity where "
                                          "application_name like 'wlbd of term %'"), [["1"]])
        self.relay.passes.set()
        wait_for("a reads the database", lambda: self.a.health().get("database") == "ok", 10, 0.1)
        self.assertEqual(self.roles(), ("standby", "active"))
        self.assertEqual(self.a.process.pid, before)
        self.assertIsNone(self.a.process.poll())

    def test_4_the_database_is_started_again(self):
        """The one that acts renews its lease where it was away for less than that; else one of them begins a term."""
        lease = "select term, beats, backend_pid from coordinator"
        (term, *before), = self.cluster.sql(lease)
        began_s = time.monotonic()
        self.cluster.verb("stop-db")
        self.cluster.verb("start-db")
        was_short = time.monotonic() - began_s < LEASE_S / 2
        wait_for("another session of the lease", lambda: self.cluster.sql(lease)[0][2] not in ("", before[1]), 2 * TAKEN_S, 0.05)
        if was_short:
            self.assertEqual(self.cluster.sql(lease)[0][0], term)
        wait_for("one that acts", lambda: sorted(map(str, self.roles())) == ["active", "standby"], 2 * TAKEN_S, 0.1)
        wait_for("its answers", lambda: self.cluster.run("wlb", "runs", check=False).returncode == 0, 10)

    def test_5_the_lease_is_given_back(self):
        """A wlbd that is stopped ends its own term, and the other begins one without waiting for the lease, nor for a role that only reads
        and takes the lock."""
        self.cluster.sql("create role reader login")
        locks = subprocess.Popen(["psql", "-X", "-U", "reader", "-c", "select pg_advisory_lock(x'574c43'::bigint), pg_sleep(60)"],
                                 env=self.cluster.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(locks.wait)
        self.addCleanup(locks.kill)
        wait_for("the reader", lambda: self.cluster.sql("select 1 from pg_stat_activity where usename = 'reader' and wait_event = "
                                                        "'advisory'"), 10)
        acting, other = (self.a, self.b) if self.a.role() == "active" else (self.b, self.a)
        term = int(self.cluster.sql("select term from coordinator")[0][0])
        acting.end(signal.SIGTERM)
        self.assertEqual(acting.process.returncode, 0)
        wait_for("the other", lambda: other.role() == "active", TAKEN_S, 0.05)
        self.assertEqual(int(self.cluster.sql("select term from coordinator")[0][0]), term + 2)
        self.assertEqual(self.cluster.sql("select usename from pg_stat_activity where pid = wlb_coordinator_locker()"), [["reader"]])


if __name__ == "__main__":
    harness.main()
