#!/usr/bin/env python3
"""The private cluster itself: it comes up, it bears what it is told to, and it leaves nothing behind."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import Cluster, ClusterTest, wait_for

ORDINARY = pwd.getpwnam("daemon").pw_uid  # its group has the same number; from 25.11 Slurm takes no SlurmUser "nobody"


def traces(cluster):
    """What is left of a cluster: its directory, also one not quite made, its processes, its block of ports."""
    found = [str(path) for path in cluster.home.glob("c*")]
    found += [f"pid {pid}" for pid in cluster.processes()]
    found += [link for link in glob.glob("/tmp/wlb-ports-*") if os.readlink(link) == str(cluster.dir)]
    return found


def shared_memory(cluster):
    """Key of the segment that PostgreSQL holds, as ipcs shows it."""
    lines = (cluster.dir / "pg/data/postmaster.pid").read_text(encoding="ascii").splitlines()
    return f"{int(lines[6].split()[0]):#010x}"


class Lifecycle(ClusterTest):
    def test_daemons_run(self):
        print(f"start took {self.cluster.start_s:.2f} s", end=" ")
        status = self.cluster.verb("status")
        self.assertNotIn("stopped", status)
        for name in ("munged", "postgres", "slurmctld", "wlbd", "slurmd-n1", "slurmd-n4"):
            self.assertIn(f"{name:<12} running", status)

    def test_node_dies_whole_and_comes_back(self):
        job = self.cluster.sbatch("srun sh -c 'env -i sleep 1001'", "--no-kill", nodes=2)
        wait_for("the job's tasks", lambda: len(self.tasks("sleep 1001")) == 2, 30)
        nodes = self.cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
        self.assertEqual(nodes, "n[1-2]")
        self.cluster.kill_node(2)
        self.assertEqual(len(self.tasks("sleep 1001")), 1)
        self.assertIn("slurmd-n2    stopped", self.status())
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)
        self.cluster.restore_node(2)
        wait_for("all nodes idle", lambda: self.cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "4\n", 30)
        self.cluster.run("srun", "-N4", "true")

    def test_node_is_frozen_whole_and_goes_on(self):
        job = self.cluster.sbatch("srun sh -c 'env -i sleep 1004'", nodes=2)
        wait_for("the job's tasks", lambda: len(self.tasks("sleep 1004")) == 2, 30)
        self.cluster.verb("freeze-node", "2")
        wait_for("slurmd-n2 to stop", lambda: self.is_stopped(self.daemon("slurmd-n2")), 20)
        wait_for("a task to stop", lambda: any(map(self.is_stopped, self.tasks("sleep 1004"))), 20)
        frozen = [pid for pid in self.tasks("sleep 1004") if self.is_stopped(pid)]
        self.assertEqual(len(frozen), 1)
        self.cluster.verb("thaw-node", "2")
        self.assertFalse(self.is_stopped(frozen[0]) or self.is_stopped(self.daemon("slurmd-n2")))
        self.cluster.verb("freeze-node", "2")
        self.cluster.restore_node(2)
        self.assertFalse(self.is_stopped(self.daemon("slurmd-n2")))
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)
        wait_for("all nodes idle", lambda: self.cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == "4\n", 30)

    def test_services_are_frozen_killed_and_started(self):
        for service in ("munged", "slurmctld", "wlbd", "slurmd-n3"):
            with self.subTest(service):
                pid = self.daemon(service)
                self.cluster.verb("freeze-service", service)
                wait_for(f"{service} to stop", lambda pid=pid: self.is_stopped(pid), 20)
                self.cluster.verb("thaw-service", service)
                self.assertFalse(self.is_stopped(pid))
                self.cluster.verb("kill-service", service)
                self.assertIn(f"{service:<12} stopped", self.status())
                self.cluster.verb("start-service", service)
                self.assertNotEqual(self.daemon(service), pid)
        self.cluster.run("srun", "-N4", "true")
        self.cluster.run("wlb", "runs")

    def status(self):
        return subprocess.run([self.cluster.script, "status", "--dir", self.cluster.dir], capture_output=True, text=True,
                              check=False).stdout

    def daemon(self, name):
        """Its pid, as its start wrote it down."""
        return int((self.cluster.dir / "run" / f"{name}.pid").read_text(encoding="ascii").split()[0])

    def is_stopped(self, pid):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return stat.rpartition(")")[2].split()[0] == "T"

    def test_database_stops_and_starts(self):
        self.cluster.sql("CREATE TABLE kept AS SELECT 7 AS number")
        self.cluster.verb("stop-db")
        self.assertNotEqual(self.cluster.run("psql", "-c", "SELECT 1", check=False).returncode, 0)
        self.cluster.verb("start-db")
        self.assertEqual(self.cluster.sql("SELECT number FROM kept"), [["7"]])

    def test_wrong_words_are_refused(self):
        for words, text in ((["kill-node", "5"], "1 to 4"), (["kill-node"], "1 to 4"), (["bogus"], "bogus"),
                            (["freeze-node", "0"], "1 to 4"), (["kill-service"], "slurmctld"),
                            (["thaw-service", "slurmd-n5"], "slurmd-n5"), (["start", "--nodes", "0"], "1 to 64"),
                            (["start", "--bogus"], "--bogus"), (["start", "--slurm-prefix", "/nowhere"], "/nowhere"),
                            (["start", "--dir", "/" + "d" * 90], "characters"), (["start"], "already")):
            result = subprocess.run([self.cluster.script, *harness.start_options(), "--dir", self.cluster.dir, *words],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2, f"{words}: {result.stderr}")
            self.assertIn(text, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def tasks(self, command):
        """Pids of the tasks of that command line, whatever their environment."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if pathlib.Path(path).read_bytes().replace(b"\0", b" ").strip() == command.encode():
                    found.append(int(path.split("/")[2]))
            except OSError:
                pass
        return found


class Traces(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(nodes=3)
        self.addCleanup(self.cluster.stop)
        self.said = self.cluster.home / "said"  # what a start in the background prints

    def segments(self):
        return subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=True).stdout

    def start_in_background(self):
        """With SIGINT as a terminal gives it: a test that a script has put in the background inherits it ignored."""
        with self.said.open("w", encoding="utf-8") as said:
            process = subprocess.Popen(["env", "--default-signal=INT", self.cluster.script, "start", "--dir",
                                        self.cluster.dir, *harness.start_options()], stderr=said, start_new_session=True)
        self.addCleanup(process.wait)
        return process

    def test_stop_with_a_running_job_leaves_nothing(self):
        self.cluster.start()
        segment = shared_memory(self.cluster)
        self.assertIn(segment, self.segments())
        self.cluster.sbatch("srun sleep 1002 & setsid sleep 1002 & wait", nodes=3)
        wait_for("the job's tasks", lambda: len(self.cluster.processes("sleep 1002")) >= 4, 30)
        self.cluster.verb("stop")
        self.assertEqual(traces(self.cluster), [])
        self.assertNotIn(segment, self.segments())

    def test_stop_finds_what_a_dead_slurmd_left(self):
        self.cluster.start()
        self.cluster.sbatch("srun sleep 1003", nodes=3)
        wait_for("the job's tasks", lambda: len(self.cluster.processes("sleep 1003")) >= 3, 30)
        pid = (self.cluster.dir / "run" / "slurmd-n2.pid").read_text(encoding="ascii").split()[0]
        os.kill(int(pid), signal.SIGKILL)
        self.cluster.verb("stop")
        self.assertEqual(traces(self.cluster), [])

    def test_end_in_the_middle_of_a_start_leaves_nothing(self):
        for delay_s in (0.0, 0.1, 0.3, 0.6):
            with self.subTest(signal="SIGINT", delay_s=delay_s):
                process = self.start_in_background()
                wait_for("its directory", self.cluster.dir.exists, 30, 0.005)
                time.sleep(delay_s)
                os.killpg(process.pid, signal.SIGINT)
                is_over = process.wait(30) == 0  # the start, before the signal
                said = self.said.read_text(encoding="utf-8")
                if is_over:
                    self.assertIn(" up in ", said)
                    self.cluster.verb("stop")
                else:
                    self.assertIn(process.returncode, (130, -signal.SIGINT), said)
                self.assertEqual(traces(self.cluster), [])
            with self.subTest(verb="stop", delay_s=delay_s):
                process = self.start_in_background()
                wait_for("its settings", (self.cluster.dir / "run").exists, 30, 0.005)
                time.sleep(delay_s)
                self.cluster.verb("stop")
                process.wait(30)
                self.assertEqual(traces(self.cluster), [])

    def test_run_stops_after_its_command(self):
        result = subprocess.run([self.cluster.script, "run", "--dir", self.cluster.dir, *harness.start_options(), "--",
                                 "bash", "-c", "srun -N1 hostname; exit 7"], capture_output=True, text=True, timeout=60,
                                check=False)
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertEqual(traces(self.cluster), [])


class SideBySide(unittest.TestCase):
    def test_two_clusters_at_once(self):
        clusters = [Cluster(nodes=4), Cluster(nodes=4)]
        for cluster in clusters:
            self.addCleanup(cluster.stop)
        threads = [threading.Thread(target=cluster.start) for cluster in clusters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        steps = [subprocess.Popen(["srun", "-N4", "--ntasks-per-node=2", "--mpi=pmix", harness.mpi_check()],
                                  env=cluster.env, cwd=cluster.work, stdout=subprocess.PIPE, text=True)
                 for cluster in clusters for _ in range(2)]
        for step in steps:
            self.assertIn("ranks 8 on n1", step.communicate(timeout=60)[0])
            self.assertEqual(step.returncode, 0)
        clusters[0].verb("stop")
        self.assertEqual(traces(clusters[0]), [])
        clusters[1].run("srun", "-N4", "true")


class Ports(unittest.TestCase):
    """scripts/lib/ports.sh alone: who asks at the same time, before any port is in use."""

    FIRST, BLOCKS = 61000, 8  # not those of clusters, and above those that the kernel gives out

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="wlb-test-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.addCleanup(self.release)

    def links(self):
        return [link for link in glob.glob("/tmp/wlb-ports-*") if os.readlink(link).startswith(str(self.home))]

    def release(self):
        for link in self.links():
            os.unlink(link)

    def start(self, name):
        folder = self.home / name
        folder.mkdir()
        lib, last = harness.ROOT / "scripts/lib", self.FIRST + 100 * self.BLOCKS
        return subprocess.Popen(["bash", "-c", f". {lib}/common.sh; . {lib}/ports.sh; PORTS_FIRST={self.FIRST} "
                                 f"PORTS_LAST={last}; ports_reserve {folder}"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def reserve(self, *names):
        """Exit codes and blocks of those that ask at once."""
        ended = [(each.communicate(timeout=60)[0], each.returncode) for each in [self.start(name) for name in names]]
        return [code for _, code in ended], [base for base, _ in ended if base]

    def test_a_block_has_one_cluster(self):
        names = [f"c{i}" for i in range(self.BLOCKS)]
        codes, blocks = self.reserve(*names)
        self.assertEqual((codes, len(set(blocks))), ([0] * self.BLOCKS, self.BLOCKS))
        self.assertEqual(self.reserve("late"), ([1], []))
        self.assertEqual(sorted(os.path.basename(os.readlink(link)) for link in self.links()), names)

    def test_blocks_of_dead_clusters_have_one_cluster(self):
        for i in range(self.BLOCKS):
            os.symlink(self.home / "dead", f"/tmp/wlb-ports-{self.FIRST + 100 * i}")
        codes, blocks = self.reserve(*[f"c{i}" for i in range(self.BLOCKS)])
        self.assertEqual((codes, len(set(blocks))), ([0] * self.BLOCKS, self.BLOCKS))


@unittest.skipIf(os.geteuid() != 0, "whoever is not root has seen the others pass as an ordinary user")
class OrdinaryUser(unittest.TestCase):
    """As an account without rights, with a copy of what is needed where it can read it."""

    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="wlb-test-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.home.chmod(0o755)
        self.script, self.build = harness.copy_for_others(self.home)
        (self.home / "own").mkdir()
        os.chown(self.home / "own", ORDINARY, ORDINARY)

    def as_ordinary_user(self, *command, env=None):
        become = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
        return subprocess.run([*become, *map(str, command)],
                              env={**os.environ, "HOME": str(self.home / "own"), "TMPDIR": str(self.home / "own"),
                                   **(env or {})},
                              cwd=self.home / "own", capture_output=True, text=True, timeout=120, check=False)

    def test_the_copy_holds_no_link_to_the_checkout(self):
        links = [path for path in self.home.rglob("*") if path.is_symlink() and not path.resolve().is_relative_to(self.home)]
        self.assertEqual(links, [])

    def test_a_cluster_of_ones_own(self):
        script = f"""id -u; srun -N4 --mpi=pmix {self.build}/tests/mpi_check; psql -A -t -c "SELECT 'rows'"
            {self.script} kill-node 2 && {self.script} restore-node 2 && sinfo -h -o %D"""
        result = self.as_ordinary_user(self.script, "run", *harness.start_options(self.build), "--", "bash", "-ec", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.split("\n")
        self.assertEqual(lines[:4], [str(ORDINARY), "ranks 4 on n1 n2 n3 n4", "rows", "4"])
        self.assertEqual(os.listdir(self.home / "own"), [])

    def test_a_job_on_roots_cluster(self):
        cluster = Cluster(nodes=2, for_others=True)
        self.addCleanup(cluster.stop)
        cluster.start()
        result = self.as_ordinary_user("bash", "-c", f'eval "$({cluster.script} env --dir {cluster.dir})"; '
                                'srun -N2 id -u; sbatch --wait -o out --wrap "srun id -u" && cat out')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(f"{ORDINARY}\n"), 3, result.stdout)


if __name__ == "__main__":
    harness.main()
