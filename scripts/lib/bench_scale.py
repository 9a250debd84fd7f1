#!/usr/bin/env python3
"""The agents of 2,048 nodes report each second what the 16,384 ranks of one run do, to a coordinator on a private cluster;
ranks hang, and the coordinator is killed and started again meanwhile. Prints docs/results/scale.md. Usage: bench_scale.py
BUILD_DIR"""
import datetime
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

from bench_coordinator import ROOT, Cluster, cpu_s, peak_mib, say, version
from bench_host import machine, verdict
from training_load import RUN, TrainingRun

LAYOUT, RANKS_ON_NODE = (8, 2, 8, 128), 8  # tp, cp, pp, dp
STEP_S, TRAIN_STEPS = 7.5, 24
PRIORITY = -15  # of the sessions of the daemons and the load, where the kernel groups processes by them
GOAL_CORES, GOAL_MIB, GOAL_VERDICT_S = 0.5, 1024, 5
# Kind, rank, step and seconds of each fault, and whether the coordinator is killed meanwhile.
FAULTS = [
    (("hang", 4321, 12, 50), False),
    (("hang", 12345, 15, 70), True),
    (("stop", 777, 18, 25), False),
    (("stop", 16000, 21, 40), True),
]


# ---- what is measured ------------------------------------------------------------------------------------------------

def machine_cpu_s():
    """Of all processes of this machine."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    busy = sum(map(int, fields[:8])) - int(fields[3]) - int(fields[4])
    return busy / os.sysconf("SC_CLK_TCK")


def prefer(pids):
    """So that other work of the machine delays them less, as far as root may say so."""
    for pid in pids:
        try:
            pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(PRIORITY), encoding="utf-8")
        except OSError:
            continue


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
    (kind, rank, _, seconds), is_killed = FAULTS[number]
    began = run.wait_event("fault", number, 600)["at"]
    result = {"kind": kind, "rank": rank, "since": began}
    if is_killed:
        time.sleep(1)
        result["peak_mib"] = peak_mib(cluster.pids("wlbd")[0])
        cluster.verb("kill-wlbd")
        killed = time.time()
        time.sleep(2)
        cluster.verb("start-wlbd")
        prefer(cluster.pids("wlbd"))
        result["since"] = killed
    for state in ("suspected", "confirmed"):
        row, seen = run.wait_row(rank, state, result["since"], seconds)
        if is_killed:  # when the coordinator that found it was started
            result.update(since=row["watcher"] / 1000, away=row["watcher"] / 1000 - killed)
        result[state] = seen - result["since"]
    result["bound"] = float(re.search(r"bound ([0-9.]+) s", row["evidence"])[1])
    result["shown"] = any(v["state"] == "confirmed" for v in run.shown(rank))
    run.wait_event("fault_over", number, 600)
    say(f"{kind} of rank {rank}: suspected after {result['suspected']:.1f} s, confirmed after {result['confirmed']:.1f} s; "
        f"{row['evidence']}")
    return result


def train(cluster):
    """The large run: what it costs, and when its faults are named."""
    run = TrainingRun(cluster.env, cluster.build / "tests/wlb-training-load", LAYOUT, RANKS_ON_NODE, "hang=report")
    try:
        for name in ("wlbd", "munged", "postgres"):
            prefer(cluster.pids(name))
        run.start(STEP_S, TRAIN_STEPS, [fault for fault, _ in FAULTS])
        prefer([run.load.pid])
        time.sleep(30)  # the ranks are known, and the first steps are over
        result = {"quiet": window(cluster, run.load, 30), "load_average": os.getloadavg()[0]}
        result["asked"] = window(cluster, run.load, 15, lambda: run.get(f"/v1/runs/{RUN}/ranks"))
        result["healthy_verdicts"] = len(run.verdicts())
        result["faults"] = [follow_fault(cluster, run, number) for number in range(len(FAULTS))]
        last = run.wait_event("end", 0, 600)
        run.reader.join()
        result.update(last)
        result["peak_mib"] = max([peak_mib(cluster.pids("wlbd")[0])] + [f.get("peak_mib", 0) for f in result["faults"]])
        result["others"] = run.others([fault[1] for fault, _ in FAULTS])
        for row in result["others"]:
            say(f"a verdict on no fault: {row['kind']}: {row['evidence']}")
        return result
    finally:
        run.stop()


# ---- the page --------------------------------------------------------------------------------------------------------

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
    print(f"Of {r['requests']:,} reports, {r['requests'] / trained['seconds']:,.0f} a second, {r['refused']} were refused, and "
          f"{r['unanswered']} not answered, those among them while wlbd was down. They took "
          f"{r['p50_ms']:.1f} ms in the median, {r['p99_ms']:.1f} ms in 99 of 100.\n")


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


def hang_after_s():
    """The default of hang-after, which the coordinator of this cluster has."""
    return re.search(r"\.hang_after_s = (\d+),", (ROOT / "common/on_fault.c").read_text(encoding="utf-8")).group(1)


def page(cluster, trained):
    tp, cp, pp, dp = LAYOUT
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    print("# The coordinator with 16,384 ranks\n")
    print(f"`scripts/bench scale` on {datetime.date.today()}, commit {commit}: {machine()}; PostgreSQL "
          f"{cluster.sql('show server_version').split()[0]}, {version(cluster, 'sinfo', '--version')}. All of it, the load "
          f"included, ran on this one machine, at a raised priority, beside other work: the load average was "
          f"{trained['load_average']:.0f}.\n")
    print(f"The agents of {tp * cp * pp * dp // RANKS_ON_NODE:,} nodes report once a second, each on its own connection and with "
          f"a MUNGE credential for each report: for the ranks of one run, tp={tp}, cp={cp}, pp={pp}, dp={dp}, with steps of "
          f"{STEP_S} s. Reports are made by the code of wlb-agent from what the ranks write into their node's page: the step and "
          "its work, the call that blocks each rank, how far it has come in eight communicators, and each step that it has ended. "
          "Their ranks follow a program of 1F1B call by call (tests/bench/verdicts), with noise, and a rank that hangs "
          "blocks those that depend on it. Agents gather no stacks. Other work ran on the machine at the same time: the last "
          "column.\n")
    cost_table(trained)
    print("Then ranks hang. Times count from the fault, or, where wlbd is killed meanwhile, from when it has been started "
          "again; until the row is in table `verdicts`, as a client of PostgreSQL sees it. *Bound*: how long the fault had to "
          "last, since it was first seen, until it was confirmed, as the verdict's evidence says "
          f"([verdicts.md](../verdicts.md)): {hang_after_s()} s for a rank that begins nothing, or three times the longest healthy wait that "
          "was seen, or, since a restart, the usual step; 5 s for a process that a signal has stopped. Goal: confirmed in the "
          f"table and in `GET /v1/runs/RUN/ranks` within {GOAL_VERDICT_S} s after the bound.\n")
    fault_table(trained)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Cluster(pathlib.Path(sys.argv[1]).resolve()) as cluster:
        say("one run of 16,384 ranks, for eight minutes")
        page(cluster, train(cluster))


if __name__ == "__main__":
    main()
