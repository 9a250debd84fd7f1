#!/usr/bin/env python3
"""Puts 100 runs of 300,000 steps into a private cluster's database, lets 2,048 nodes report and every run deliver a
record each second, and asks meanwhile as users do. Then the 2,048 nodes are those of one run of 16,384 ranks, whose
agents say what each rank does, and in which ranks hang. Prints docs/results/coordinator.md.
Usage: bench_coordinator.py BUILD_DIR"""
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
from training_load import RUN, TrainingRun

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS, STEPS, NODES, RANKS_ON_NODE = 100, 300000, 2048, 8
LOAD_S = 60
FIRST_JOB = 1000001
GOAL_S = 0.3
LAYOUT = (8, 2, 8, 128)  # tp, cp, pp, dp of the large run
STEP_S, TRAIN_STEPS = 7.5, 36
GOAL_CORES, GOAL_MIB, GOAL_VERDICT_S = 0.5, 1024, 5
# Of the large run: kind, rank, step and seconds of each fault, the bound of the verdict in seconds after it began (None:
# of a run that was first watched while it stood still), and whether the coordinator is killed meanwhile.
FAULTS = [
    (("hang", 4321, 16, 30), 10, False),
    (("hang", 12345, 20, 75), None, True),
    (("stop", 777, 24, 20), 5, False),
    (("stop", 16000, 28, 30), 5, True),
]


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


def machine_cpu_s():
    """Of all processes of this machine."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    busy = sum(map(int, fields[:8])) - int(fields[3]) - int(fields[4])
    return busy / os.sysconf("SC_CLK_TCK")


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


# ---- one large run ---------------------------------------------------------------------------------------------------

def window(cluster, load, seconds, each_second=None):
    """Cores that the daemons, the load and all other processes of the machine use; each_second() is called meanwhile."""
    pids = {name: cluster.pids(name) for name in ("wlbd", "munged", "postgres")} | {"load": [load.pid]}
    before, all_before, began = {name: cpu_s(p) for name, p in pids.items()}, machine_cpu_s(), time.monotonic()
    took = []
    while time.monotonic() - began < seconds:
        asked = time.monotonic()
        if each_second:
            each_second()
            took.append(time.monotonic() - asked)
        time.sleep(max(0, asked + 1 - time.monotonic()))
    elapsed = time.monotonic() - began
    used = {name: (cpu_s(p) - before[name]) / elapsed for name, p in pids.items()}
    used["others"] = (machine_cpu_s() - all_before) / elapsed - sum(used.values())
    return {"cores": used, "took": took}


def follow_fault(cluster, run, number):
    """Waits for a fault, kills and starts the coordinator where that is asked, and returns when it was named."""
    (kind, rank, _, seconds), bound, is_killed = FAULTS[number]
    began = run.wait_event("fault", number, 600)["at"]
    result = {"kind": kind, "rank": rank, "bound": bound, "since": began}
    if is_killed:
        time.sleep(1)
        result["peak_mib"] = peak_mib(cluster.pids("wlbd")[0])
        cluster.verb("kill-wlbd")
        killed = time.time()
        time.sleep(2)
        cluster.verb("start-wlbd")
        result.update(since=time.time(), away=time.time() - killed)
    if bound is None:  # three times the length of nine in ten steps that are recorded
        result["bound"] = 3 * float(run.sql("select percentile_disc(0.9) within group (order by step_time_s) from steps s "
                                            f"join runs r on r.id = s.run_id where r.name = '{RUN}'"))
    for state in ("suspected", "confirmed"):
        row, seen = run.wait_row(rank, state, result["since"], seconds)
        result[state], result["evidence"] = seen - result["since"], row["evidence"]
    result["shown"] = any(v["state"] == "confirmed" for v in run.shown(rank))
    result["shown_after"] = time.time() - result["since"]
    run.wait_event("fault_over", number, 600)
    say(f"{kind} of rank {rank}: suspected after {result['suspected']:.1f} s, confirmed after {result['confirmed']:.1f} s")
    return result


def train(cluster):
    """The large run: what it costs, and when its faults are named."""
    run = TrainingRun(cluster.env, cluster.build / "tests/wlb-training-load", LAYOUT, RANKS_ON_NODE, "hang=report")
    try:
        run.start(STEP_S, TRAIN_STEPS, [fault for fault, _, _ in FAULTS])
        time.sleep(30)  # the ranks are known, and the first steps are over
        result = {"quiet": window(cluster, run.load, 45)}
        result["asked"] = window(cluster, run.load, 20, lambda: run.get(f"/v1/runs/{RUN}/ranks"))
        result["healthy_verdicts"] = len(run.verdicts())
        result["faults"] = [follow_fault(cluster, run, number) for number in range(len(FAULTS))]
        last = run.wait_event("end", 0, 600)
        run.reader.join()
        result.update(last)
        result["peak_mib"] = max([peak_mib(cluster.pids("wlbd")[0])] + [f.get("peak_mib", 0) for f in result["faults"]])
        result["others"] = run.others([fault[1] for fault, _, _ in FAULTS])
        for row in result["others"]:
            say(f"a verdict on no fault: {row['kind']}: {row['evidence']}")
        return result
    finally:
        run.stop()


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
    print(f"The database has {RUNS} runs of {STEPS:,} steps ({size}).\n")
    print("## Many runs\n")
    print(f"For {LOAD_S} s, {NODES:,} nodes report once a second, each on its own connection and with a MUNGE credential for "
          "each report, and every run delivers a step once a second. Reports do not say what ranks do. Meanwhile the commands "
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


def cost_table(trained):
    rows = {"quiet": "reports of all ranks, each second",
            "asked": "and `GET /v1/runs/RUN/ranks` once a second, as `wlb top` asks"}
    print("| | wlbd | PostgreSQL | munged | the load | other processes |\n|---|---|---|---|---|---|")
    for key, text in rows.items():
        cores = trained[key]["cores"]
        print(f"| {text} | {cores['wlbd']:.2f} | {cores['postgres']:.2f} | {cores['munged']:.2f} | {cores['load']:.2f} | "
              f"{cores['others']:.2f} |")
    cores = trained["quiet"]["cores"]
    both = cores["wlbd"] + cores["postgres"]
    print(f"\nIn cores. wlbd and PostgreSQL: {both:.2f}, goal < {GOAL_CORES}: {verdict(both < GOAL_CORES)}. The list of ranks "
          f"arrived in {statistics.median(trained['asked']['took']):.2f} s in the median. wlbd held at most "
          f"{trained['peak_mib']:.0f} MiB, goal < {GOAL_MIB}: {verdict(trained['peak_mib'] < GOAL_MIB)}.\n")
    r = trained["reports"]
    print(f"Of {r['requests']:,} reports {r['refused']} were refused, and {r['unanswered']} not answered, while wlbd was away "
          f"among them. They took {r['p50_ms']:.1f} ms in the median, {r['p99_ms']:.1f} ms in 99 of 100.\n")


def fault_table(trained):
    names = {"hang": "stays in computation", "stop": "is stopped by a signal"}
    print("| what happens to a rank | wlbd | bound | suspected | confirmed | after the bound | |\n|---|---|---|---|---|---|---|")
    for fault in trained["faults"]:
        late = fault["confirmed"] - fault["bound"]
        away = f"killed 1 s later, started after {fault['away']:.1f} s" if "away" in fault else "runs"
        print(f"| rank {fault['rank']:,} {names[fault['kind']]} | {away} | {fault['bound']:.1f} s | {fault['suspected']:.1f} s | "
              f"{fault['confirmed']:.1f} s | {late:.1f} s | {verdict(late < GOAL_VERDICT_S and fault['shown'])} |")
    print(f"\nVerdicts on anything else, in {trained['seconds']:.0f} s: {len(trained['others'])}, goal 0: "
          f"{verdict(len(trained['others']) == 0 and trained['healthy_verdicts'] == 0)}.")


def training_page(trained):
    tp, cp, pp, dp = LAYOUT
    print("## One run of 16,384 ranks\n")
    print(f"The {NODES:,} nodes are those of one run, tp={tp}, cp={cp}, pp={pp}, dp={dp}, with steps of {STEP_S} s. Each agent's "
          "reports are made by the code of wlb-agent from what the ranks write into their node's page: the step and its work, "
          "the call that blocks each rank, how far it has come in eight communicators, and each step that it has ended. "
          "Their ranks follow a program of 1F1B call by call (tests/bench/verdicts), with noise, and a rank that stands still "
          "blocks those that depend on it. Agents gather no stacks. Ranks take part of the machine's memory, and the load a "
          "part of its processors:\n")
    cost_table(trained)
    print("Then ranks stand still. Times count from the fault, or, where wlbd is killed meanwhile, from when it has been started "
          "again; until the row is in table `verdicts`, as a client of PostgreSQL sees it. *Bound*: how long the fault has to "
          "last until it is confirmed ([verdicts.md](../verdicts.md)): 10 s for a rank that begins nothing, 5 s for one that a "
          "signal has stopped, both since it was first seen; where a run stands still when wlbd begins to watch it, three times the length of "
          f"steps. Goal: confirmed in the table and in `GET /v1/runs/RUN/ranks` within {GOAL_VERDICT_S} s after the bound.\n")
    fault_table(trained)


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
        cluster.verb("kill-wlbd")
        cluster.sql("update runs set state = 'complete', ended_at = now(); "
                    "update attempts set state = 'complete', ended_at = now()")
        cluster.verb("start-wlbd")
        say("one run of 16,384 ranks, for some minutes")
        trained = train(cluster)
        page(cluster, result, cluster.sql("select pg_size_pretty(pg_database_size(current_database()))"))
        training_page(trained)


if __name__ == "__main__":
    main()
