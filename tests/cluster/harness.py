"""Starts a private Slurm cluster for a test, and runs commands and jobs on it.

    class Submit(ClusterTest):
        nodes = 4
        def test_hostname(self):
            job = self.cluster.sbatch("srun hostname", nodes=2)
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED")

Each class gets a cluster of its own (about a second). It is ended whatever happens: failure, Ctrl-C, SIGTERM, or the
deadline that ctest gives in WLB_TEST_DEADLINE_S. When a test fails the ends of all logs are shown.
"""
import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from scontrol import Scontrol

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLURM_PREFIX = os.environ.get("WLB_SLURM_PREFIX", "")
BUILD = pathlib.Path(os.environ.get("WLB_BUILD_DIR", ROOT / "build"))
JOB_ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}


class Failed(AssertionError):
    """A command failed, or a wait reached its limit."""


LONG_WAIT_S = 20  # a wait from there on guards against hangs alone
MOST_INTERVAL_S = 0.5


def processor_times_s():
    """Seconds for each of user, nice, system, idle, iowait, irq, softirq and steal since the machine's start, of a processor."""
    line = pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    return [int(ticks) / os.sysconf("SC_CLK_TCK") / os.cpu_count() for ticks in line.split()[1:9]]


def starved_s():
    """Seconds since the machine's start in which a program had to wait for a processor, be it that the host took it. Where the
    kernel does not tell: in which the processors worked."""
    user, nice, system, _, _, irq, softirq, steal = processor_times_s()
    try:
        some = pathlib.Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return user + nice + system + irq + softirq + steal
    return int(some.rpartition("total=")[2]) / 1e6 + steal


def clock_s():
    """A clock for limits: time in which programs wait for a processor, as beside other tests, counts a quarter, since it says
    nothing of the program that is tested."""
    return time.monotonic() - 0.75 * starved_s()


def wait_for(what, condition, timeout_s, interval_s=None):
    """Calls condition() until it returns something true, which is returned. A long wait may last twice as long, on a slow
    machine. interval_s: for what may last only for a moment; else the calls, whose programs take the processors from other tests,
    become rarer, so that they add a twentieth to a wait, and are at most a third of it."""
    began, limit_s = clock_s(), 2 * timeout_s if timeout_s >= LONG_WAIT_S else timeout_s
    began_s = time.monotonic()
    while True:
        called_s = time.monotonic()
        value = condition()
        if value:
            return value
        if clock_s() - began > limit_s:
            raise Failed(f"{what}: not within {limit_s} s")
        now_s = time.monotonic()
        time.sleep(interval_s or min(max(0.1, (now_s - began_s) / 20, 2 * (now_s - called_s)), MOST_INTERVAL_S))


def prove(socket, authorization, status, method, path, body, user=None):
    """The header WLB-Proof of a reply, as docs/api.md has it, made by `user`; `authorization` is the request's header."""

    def digest(data):
        return hashlib.sha256(data).hexdigest()

    credential = authorization.split(" ", 1)[1]
    parts = ["reply", digest(credential.encode()), str(status), method, path, digest(body)]
    text = digest("\n".join(parts).encode())
    made = subprocess.run(["munge", "-S", str(socket), "-s", text], capture_output=True, text=True, check=True,
                          timeout=10, user=user).stdout.strip()
    return text, f"MUNGE {made}"


def copy_for_others(folder):
    """The scripts and the build where every account may read them: a checkout may lie in root's home. Symbolic links into
    the checkout become copies. Returns the copy of scripts/cluster and the folder of the build."""
    for name in ("bin", "lib", "libexec", "share", "tests/mpi_check"):
        source, target = BUILD / name, folder / "build" / name
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            target.parent.mkdir()
            shutil.copy(source, target)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    return folder / "scripts" / "cluster", folder / "build"


def start_options(build=BUILD):
    options = ["--build", str(build)]
    if SLURM_PREFIX:
        options += ["--slurm-prefix", SLURM_PREFIX]
    if "WLB_TEST_WLBD" in os.environ:  # scripts/test: with sanitizers
        options += ["--wlbd", os.environ["WLB_TEST_WLBD"]]
    return options


# Tests lose the same nodes again and again, and have runs that fail at once.
WLBD_CONF = "avoid_nodes = no\nback_off_ms = 0\n"


class Cluster:
    def __init__(self, nodes=4, for_others=False, topology="", gpu_types=(), link_mbit=0, wlbd_conf=WLBD_CONF, cgroup=False):
        """for_others: other accounts will use it too; topology: the text of a topology.conf; gpu_types: one for each node;
        link_mbit: not 0: each node is a network namespace, with links of this rate; wlbd_conf: lines for wlbd.conf, by which
        no node is avoided, since the tests lose the same nodes again and again; cgroup: Slurm tracks processes by cgroups."""
        self.node_count, self.link_mbit, self.cgroup = nodes, link_mbit, cgroup
        self.topology, self.gpu_types, self.wlbd_conf = topology, gpu_types, wlbd_conf
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="wlb-test-"))
        self.home.chmod(0o755)
        self.script, self.build = copy_for_others(self.home) if for_others else (ROOT / "scripts" / "cluster", BUILD)
        self.dir = self.home / "c"
        self.work = self.home / "work"  # where jobs run and write
        self.work.mkdir(mode=0o755)
        self.env = {**os.environ, "XDG_STATE_HOME": str(self.home / "state")}
        self.scontrol = Scontrol(self.work)

    def start(self):
        began = time.monotonic()
        options = [*start_options(self.build), "--wlbd-conf", str(self.home / "wlbd.conf")]
        (self.home / "wlbd.conf").write_text(self.wlbd_conf, encoding="utf-8")
        if self.topology:
            (self.home / "topology.conf").write_text(self.topology, encoding="utf-8")
            options += ["--topology", str(self.home / "topology.conf")]
        if self.gpu_types:
            options += ["--gpu-types", ",".join(self.gpu_types)]
        if self.link_mbit:
            options += ["--netns", "--link-mbit", str(self.link_mbit)]
        if self.cgroup:
            options.append("--cgroup")
        self.verb("start", "--nodes", str(self.node_count), *options)
        self.start_s = time.monotonic() - began
        self.env.update(self.verb_env())
        return self

    def stop(self):
        """Ends also what a test that failed has left of the commands that it began. Safe to call twice."""
        try:
            if self.dir.exists():
                self.verb("stop")
        finally:
            self.scontrol.close()
            for pid in self.processes() if self.home.exists() else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.home, ignore_errors=True)

    def verb(self, *words):
        """scripts/cluster WORDS on this cluster; returns what it printed. An interrupted start ends what it has started."""
        self.scontrol.close()
        with subprocess.Popen([str(self.script), *words, "--dir", str(self.dir)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                output, errors = process.communicate(timeout=300)
            except BaseException:
                process.terminate()
                try:
                    process.communicate(timeout=30)
                finally:
                    process.kill()
                raise
        if process.returncode != 0:
            raise Failed(f"cluster {' '.join(words)} exited with {process.returncode}: {errors}")
        return output

    def verb_env(self):
        """The variables that `scripts/cluster env` sets."""
        text = subprocess.run(["bash", "-c", f'eval "$({self.script} env --dir {self.dir})"; env -0'],
                              capture_output=True, text=True, timeout=30, check=True).stdout
        return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)

    def run(self, *command, timeout_s=60, check=True, env=None, **options):
        """A command on the cluster, in its work folder; returns the CompletedProcess."""
        if command[0] == "scontrol":
            self.scontrol.close()
        result = subprocess.run([str(word) for word in command], cwd=options.pop("cwd", self.work),
                                env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, errors="surrogateescape", timeout=timeout_s, check=False, **options)
        if check and result.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))} exited with {result.returncode}:\n"
                         f"{result.stdout}{result.stderr}")
        return result

    def sbatch(self, script, *options, nodes=1, env=None, **more):
        """Submits `script` (the lines of a shell script); its output is in work/JOBID.out. Returns the job id. Ranks that wait
        for a message sleep, so that those of other tests have the processors. `more` are arguments of run()."""
        path = self.work / f"job-{time.monotonic_ns()}.sh"
        sleep = f'export LD_PRELOAD="{BUILD}/tests/yield.so${{LD_PRELOAD:+:$LD_PRELOAD}}"\n'
        # sbatch reads no option after the first command.
        own, commands = re.fullmatch(r"((?:#SBATCH.*\n)*)(.*)", script, re.DOTALL).groups()
        path.write_text(f"#!/bin/bash\n{own}{sleep}{commands}\n", encoding="utf-8")
        result = self.run("sbatch", "--parsable", f"-N{nodes}", "-o", "%j.out", *options, path, env=env, **more)
        return int(result.stdout.strip().split(";")[0])

    def number_jobs_apart(self):
        """From here on jobs have ids that no other cluster of this machine has: /dev/shm is that of all of them."""
        with open(self.dir / "etc/slurm.conf", "a", encoding="utf-8") as conf:
            conf.write(f"FirstJobId={random.randrange(1_000_000, 60_000_000)}\n")
        self.verb("kill-service", "slurmctld")
        self.verb("start-service", "slurmctld")

    def job(self, job_id):
        """Fields of `scontrol show job`."""
        text = self.scontrol.job(job_id, self.env) or self.run("scontrol", "-o", "show", "job", str(job_id)).stdout
        return dict(field.split("=", 1) for field in text.split() if "=" in field)

    def wait_job(self, job_id, timeout_s=120):
        """Waits for the job's end; returns its state, such as COMPLETED."""

        def ended():
            state = self.job(job_id)["JobState"]
            return state if state in JOB_ENDED else None

        try:
            return wait_for(f"end of job {job_id}", ended, timeout_s)
        except Failed as error:
            raise Failed(f"{error}; its output so far:\n{self.output(job_id)}") from None

    def output(self, job_id):
        path = self.work / f"{job_id}.out"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def sql(self, query):
        """Rows of a query, each a list of texts."""
        text = self.run("psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-c", query).stdout
        return [line.split("\x1f") for line in text.splitlines()]

    def show(self, run_id, *options):
        """`wlb show RUN --json`."""
        return json.loads(self.run("wlb", "show", str(run_id), "--json", *options).stdout)

    def kill_node(self, number):
        self.verb("kill-node", str(number))

    def restore_node(self, number):
        self.verb("restore-node", str(number))

    def wait_saved(self, job):
        """slurmctld saves a job some seconds after it has changed; killed before, it would start the job again, or lose it."""
        state, now = self.dir / "slurm" / "job_state", time.time()
        self.run("scontrol", "update", f"jobid={job}", "comment=to be saved", check=False)  # that it has ended is saved, too
        wait_for("slurmctld's saved state", lambda: state.exists() and state.stat().st_mtime > now, 20)

    def restart_wlbd(self, more_settings=""):
        """With these lines more in its wlbd.conf."""
        self.verb("kill-wlbd")
        with open(self.dir / "etc/wlbd.conf", "a", encoding="utf-8") as conf:
            conf.write(more_settings)
        self.verb("start-wlbd")

    def processes(self, *words):
        """Pids of processes of this cluster whose command line holds every word."""
        self.scontrol.close()  # it is the test's
        marks = (str(self.dir).encode(), str(self.work).encode())
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                environ = (folder / "environ").read_bytes()
            except OSError:
                continue
            if all(word.encode() in line for word in words) and any(mark in environ + line for mark in marks):
                found.append(int(folder.name))
        return found

    def show_logs(self, lines=20):
        """The end of the logs and of every job's output, for the reader of a failed test."""
        logs = [self.dir / "log" / name for name in ("wlbd.out", "postgres.out", "slurmctld.log")]
        for path in [*logs, *sorted(self.dir.glob("log/slurmd-*.log")), *sorted(self.work.glob("*.out"))]:
            text = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
            if text:
                print(f"---- {path.name}: last {min(lines, len(text))} of {len(text)} lines", file=sys.stderr)
                print("\n".join(text[-lines:]), file=sys.stderr)


class ClusterTest(unittest.TestCase):
    """A test case whose class has a cluster."""

    nodes = 4
    for_others = False
    topology = ""
    gpu_types = ()
    link_mbit = 0
    wlbd_conf = WLBD_CONF
    cgroup = False
    cluster = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.nodes, cls.for_others, cls.topology, cls.gpu_types, cls.link_mbit, cls.wlbd_conf, cls.cgroup)
        atexit.register(cls.cluster.stop)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def run(self, result=None):
        """Shows the logs when the test fails, while they are still there."""
        before = problem_count(result)
        super().run(result)
        if problem_count(result) > before and self.cluster:
            self.cluster.show_logs()
        return result


def problem_count(result):
    """Failures and errors of a unittest result so far."""
    return len(result.failures) + len(result.errors) if result else 0


def mpi_check():
    """The small MPI program that tests/cluster/CMakeLists.txt builds."""
    return BUILD / "tests" / "mpi_check"


def main(names=None):
    """Runs the tests of the calling script, or those named; SIGTERM and the deadline end it as Ctrl-C does: with everything
    cleared."""

    def interrupt(number, _frame):
        raise KeyboardInterrupt(f"deadline of {deadline_s} s" if number == signal.SIGALRM else "SIGTERM")

    wlbd = os.environ.get("WLB_TEST_WLBD")
    if wlbd and not os.path.isfile(wlbd):
        print(f"skipped: there is no {wlbd}; scripts/build --preset asan makes it", file=sys.stderr)
        sys.exit(77)
    deadline_s = int(os.environ.get("WLB_TEST_DEADLINE_S", "0"))
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(deadline_s)
    if names:
        unittest.main(module=None, argv=[sys.argv[0], *names], verbosity=2)
    else:
        unittest.main(verbosity=2)
