#!/usr/bin/env python3
"""Puts 100 runs of 300,000 steps into a private cluster's database, lets 2,048 nodes report and every run deliver a
record each second, and asks meanwhile as users do. Prints docs/results/coordinator.md. Usage: bench_coordinator.py
BUILD_DIR"""
import datetime
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bench_host import machine, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS, STEPS, NODES, RANKS_ON_NODE = 100, 300000, 2048, 8
LOAD_S = 60
FIRST_JOB = 1000001
GOAL_S = 0.3


class Cluster:
    """A private cluster; ended whatever happens."""

    def __init__(self, build):
        self.build = build
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="wlb-bench-"))
        self.home.chmod(0o755)
        self.dir = self.home / "c"

    def __enter__(self):
        self.verb("start", "--nodes", "1", "--build", self.build)
        text = subprocess.run(["bash", "-c", f'eval "$({ROOT}/scripts/cluster env --dir {self.dir})"; env -0'],
                              capture_output=True, text=True, check=True).stdout
        self.env = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        return self

    def __exit__(self, *_):
        if self.dir.exists():
            subprocess.run([ROOT / "scripts/cluster", "stop", "--dir", self.dir], check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(self.home, ignore_errors=True)

    def verb(self, *words):
        subprocess.run([ROOT / "scripts/cluster", *words, "--dir", self.dir], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, timeout=120)

    def sql(self, text):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text], env=self.env,
                              capture_output=True, text=True, check=True).stdout.strip()

    def pids(self, name):
        """Of this cluster's daemon and, for PostgreSQL, of its children."""
        first = int((self.dir / "run" / f"{name}.pid").read_text(encoding="utf-8").split()[0])
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True,
                                  check=False).stdout.split()
        return [first, *map(int, children)]


def say(text):
    print(f"bench: {text}", file=sys.stderr)


# ---- the database ----------------------------------------------------------------------------------------------------

def fill(cluster):
    """Rows as wlbd would have written them; the indexes of `steps` are made afterwards, which takes a fifth of the time."""
    share = f"(n * {NODES} / {RUNS})"  # the nodes of run n are those before share(n), from share(n - 1) on
    before = share.replace("n *", "(n - 1) *")
    cluster.sql(f"""
        set maintenance_work_mem = '256MB';
        set session_replication_role = replica; -- the rows are right: foreign keys need no check, row by row
        insert into runs (name, job_id, uid, user_name, job_name, state, train_iters, submitted_at, started_at, steps,
            first_step, last_step, first_loss, last_loss, tokens, step_seconds)
        select ({FIRST_JOB} + n)::text, {FIRST_JOB} + n, 0, 'root', 'bench', 'running', 1000000, now(), now(), {STEPS}, 1,
            {STEPS}, 11, 2.5, {STEPS} * 4194304::numeric, {STEPS} * 0.98
        from generate_series(1, {RUNS}) n;
        insert into attempts (run_id, number, uuid, state, launched, nodes, world_size, tp, cp, pp, dp, new_steps, started_at)
        select r.id, 1, gen_random_uuid(), 'running', true, array(
                select 'node' || k from generate_series({before} + 1, {share}) k), {RANKS_ON_NODE} * ({share} - {before}),
            1, 1, 1, {RANKS_ON_NODE} * ({share} - {before}), {STEPS}, now()
        from runs r, lateral (select r.job_id - {FIRST_JOB} as n) x;
        insert into rank_map (attempt_id, rank, node, local_rank)
        select a.id, (place - 1) * {RANKS_ON_NODE} + k, name, k
        from attempts a, unnest(a.nodes) with ordinality as u (name, place), generate_series(0, {RANKS_ON_NODE} - 1) k;
        alter table steps drop constraint steps_pkey;
        drop index steps_attempt_id_step_idx;
        insert into steps (run_id, step, attempt_id, loss, grad_norm, learning_rate, tokens, documents, step_time_s,
            tokens_per_s, recorded_at)
        select a.run_id, s, a.id, 2.5 + 8.5 / s, 0.8, 0.001, 4194304, 900, 0.98, 4279902, now()
        from attempts a, generate_series(1, {STEPS}) s;
        alter table steps add primary key (run_id, step);
        create index on steps (attempt_id, step)""")
    cluster.sql("vacuum analyze")


def write_nodes(cluster, path, first_step):
    rows = cluster.sql("select r.name, a.uuid, m.node, m.rank from rank_map m join attempts a on a.id = m.attempt_id "
                       "join runs r on r.id = a.run_id where m.local_rank = 0 order by m.rank, r.id").splitlines()
    path.write_text("".join(f"{row.replace('|', ' ')} {first_step}\n" for row in rows), encoding="utf-8")
    return len(rows)


# ---- what is measured ------------------------------------------------------------------------------------------------

def cpu_s(pids):
    ticks = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    """The most memory that the process has held."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


class Asker(threading.Thread):
    """Times the commands of users, one after the other, until it is ended."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.over = cluster, threading.Event()
        self.took = {"wlb runs": [], "wlb runs --limit 100": [], "wlb show RUN": []}
        self.failed = 0

    def run(self):
        turn = 0
        while not self.over.wait(0.5):
            turn += 1
            for command, took in self.took.items():
                words = command.replace("RUN", str(FIRST_JOB + 1 + turn % RUNS)).split()
                began = time.monotonic()
                done = subprocess.run(words, env=self.cluster.env, capture_output=True, check=False)
                took.append(time.monotonic() - began)
                if done.returncode != 0:
                    self.failed += 1
                    say(f"{' '.join(words)}: {done.stderr.decode().strip()}")


def measure(cluster, nodes_file):
    daemons = {name: cluster.pids(name) for name in ("wlbd", "munged", "postgres")}
    load = subprocess.Popen([cluster.build / "tests/wlb-load-bench", nodes_file, str(LOAD_S)], env=cluster.env,
                            stdout=subprocess.PIPE, text=True)
    asker = Asker(cluster)
    time.sleep(3)  # every node has its connection
    daemons["postgres"] = cluster.pids("postgres")
    before = {name: cpu_s(pids) for name, pids in daemons.items()}
    began = time.monotonic()
    asker.start()
    while load.poll() is None:
        peak = peak_mib(daemons["wlbd"][0])
        elapsed, used = time.monotonic() - began, {name: cpu_s(pids) - before[name] for name, pids in daemons.items()}
        time.sleep(1)
    asker.over.set()
    asker.join()
    result = json.loads(load.stdout.read())
    result.update(asker=asker, peak_mib=peak, cpu={name: used[name] / elapsed for name in used})
    return result


# ---- the page --------------------------------------------------------------------------------------------------------

def version(cluster, *words):
    return subprocess.run(words, env=cluster.env, capture_output=True, text=True, check=True).stdout.split("\n")[0]


def count_failed(requests):
    return requests["refused"] + requests["unanswered"]


def page(cluster, result, size):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    print("# The coordinator under load\n")
    print(f"`scripts/bench coordinator` on {datetime.date.today()}, commit {commit}: {machine()}; PostgreSQL "
          f"{cluster.sql('show server_version').split()[0]}, {version(cluster, 'sinfo', '--version')}. All of it, the load "
          "included, ran on this one machine.\n")
    print(f"The database has {RUNS} runs of {STEPS:,} steps ({size}). For {LOAD_S} s, {NODES:,} nodes report once a second, "
          "each on its own connection and with a MUNGE credential for each report, and every run delivers a step once a second. Reports do not say what ranks do. Meanwhile the commands "
          "below run one after the other; their time is that of the whole process.\n")
    print("| at the client | times | median | highest | goal | |\n|---|---|---|---|---|---|")
    asker = result["asker"]
    for command, took in asker.took.items():
        print(f"| `{command}` | {len(took)} | {statistics.median(took):.3f} s | {max(took):.3f} s | < {GOAL_S} s | "
              f"{verdict(max(took) < GOAL_S)} |")
    print("\n| request | in all | a second | refused or unanswered | median | 99th of 100 | highest |\n|---|---|---|---|---|---|---|")
    for kind in ("reports", "records"):
        r = result[kind]
        print(f"| {kind} | {r['requests']:,} | {r['requests'] / result['seconds']:,.0f} | {count_failed(r)} | "
              f"{r['p50_ms']:.1f} ms | {r['p99_ms']:.1f} ms | {r['max_ms']:.0f} ms |")
    refused = count_failed(result["reports"]) + count_failed(result["records"]) + asker.failed
    print(f"\nNone refused: {verdict(refused == 0)}.\n")
    print("| process | cores used |\n|---|---|")
    for name, used in result["cpu"].items():
        print(f"| {name} | {used:.2f} |")
    print(f"\nwlbd held at most {result['peak_mib']:.0f} MiB of memory.\n")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Cluster(pathlib.Path(sys.argv[1]).resolve()) as cluster:
        cluster.verb("kill-wlbd")
        say(f"{RUNS} runs of {STEPS:,} steps go into the database")
        fill(cluster)
        cluster.verb("start-wlbd")
        nodes_file = cluster.home / "nodes"
        write_nodes(cluster, nodes_file, STEPS + 1)
        say(f"load for {LOAD_S} s")
        result = measure(cluster, nodes_file)
        page(cluster, result, cluster.sql("select pg_size_pretty(pg_database_size(current_database()))"))


if __name__ == "__main__":
    main()
