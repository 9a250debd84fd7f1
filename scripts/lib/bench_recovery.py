#!/usr/bin/env python3
"""Shows a run over several time limits, one that shrinks and grows, and checks of healthy and of faulty nodes; prints
docs/results/recovery.md. Usage: bench_recovery.py BUILD_DIR [--before BUILD_DIR]

With --before it measures one section, the load of checkpoints with the two builds, and keeps what the page has else; without it keeps
that section."""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import bench_load
from bench_host import compiler, machine, verdict
from bench_section import Section

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_MINUTES, NEEDED_S, STEP_S = 2, 300, 0.24
LIMIT_STEPS = int(NEEDED_S / STEP_S)
HEALTHY_RUNS, CHECK_S = 100, 2
CALIBRATION_S = 30
PLANTED = {  # cases of tests/unit/checks/check_node_test
    "wrong": "one core computes a wrong product, a wrong sum, reads back a wrong word of memory, or crashes",
    "hang": "one core does not come back",
    "slow": "products and copies that take longer than calibrated, on all cores and on one",
    "load": "three other processes on a core",
    "quota": "a cgroup with a fifth of a core",
    "disk": "a folder that is missing, that is written or read slowly, or whose fsync does not come back",
    "links": "a link below the limit, a peer that is not there, a peer with another secret"}

PAGE = """# Runs that come back, and checks of nodes

Made by `scripts/bench recovery`, on a private cluster on this machine: Slurm, PMIx, PostgreSQL, wlbd and `wlb-worker`, whose
ranks read each document slowly so that a step takes as long on every machine.

- Machine: {machine}; {compiler}.
- Date: {date}, commit {commit}.

| goal | measured | |
|---|---|---|
{goals}

## A job of {limit} minutes that needs {needed:.1f}
`sbatch --time={limit} --requeue`, {steps} steps, no other option. `wlb run` has the ranks save and stop before the limit, and Slurm
requeue the job.

| attempt | steps | it ended |
|---|---|---|
{limit_attempts}

## Four nodes, three, and four again
`sbatch -N4 --wlb-grow={least}`. A node dies and comes back. `--wlb-spares=1 --wlb-min-nodes=3`: a node dies, and later another.

| run | attempt | nodes | layout | steps | it ended |
|---|---|---|---|---|---|
{grow_attempts}

{load}
## Checks of nodes
`wlb check-node` on this machine, which was calibrated before ({calibration} s). Healthy: `--seconds {check} --machine FILE`,
{runs} times. Faults: the cases of tests/unit/checks/check_node_test, each of which fails unless the check names what was planted;
and two nodes of a cluster whose data links carry {mbit} Mbit/s, one of them then {slow_mbit}, with `--link-gbit-per-s {least_gbit}`.

| planted | found and named |
|---|---|
{planted}

{healthy}
"""
MBIT, SLOW_MBIT, LEAST_GBIT = 400, 25, 0.1
LOAD = Section(ROOT / "docs/results/recovery.md", bench_load.TITLE)


def rows(lines):
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def layout(attempt):
    return ",".join(f"{name}={attempt['layout'][name]}" for name in ("tp", "cp", "pp", "dp"))


def steps(attempt):
    return f"{attempt['first_step']}-{attempt['last_step']}"


def on_cluster(test_class, show):
    """Runs show(test) with the cluster of a class of tests."""
    test_class.setUpClass()
    try:
        return show(test_class())
    finally:
        test_class.tearDownClass()
        test_class.doClassCleanups()


def time_limit(test):
    job = test.submit_slow("", f"--time={LIMIT_MINUTES}", "--requeue", iterations=LIMIT_STEPS)
    state = test.cluster.wait_job(job, 6 * NEEDED_S)
    run = test.cluster.show(job)
    if state != "COMPLETED":
        sys.exit(f"bench_recovery.py: the job of {LIMIT_MINUTES} minutes is {state}: {test.cluster.output(job)}")
    test.check_stops(job, run, "the time limit is near")
    test.check_losses(run, LIMIT_STEPS)
    return run


def shrink_and_grow(test):
    job = test.submit_slow("", f"--wlb-grow={test.least_s}")
    test.wait_step(job, 4)
    test.cluster.kill_node(3)
    test.wait_attempt(job, 2)
    test.cluster.restore_node(3)
    run = test.finish(job)
    test.check_grown(job, run, "1 lost node can be replaced")
    return run


def found_by_case(build, case):
    tests = ROOT / "tests/unit/checks/check_node_test"
    done = subprocess.run([tests, case, build / "bin", build / "tests", ROOT / "libwlb/machines"], capture_output=True, text=True, check=False,
                          timeout=600)
    return {0: "yes", 77: "not measured: this account may not"}.get(done.returncode, f"**no**: {done.stderr.strip()}")


def healthy_runs(build, folder):
    from bench_train import calibrate
    file, _ = calibrate(build, folder, os.cpu_count(), CALIBRATION_S, 64)
    done = subprocess.run([ROOT / "tests/unit/checks/check_node_test", "healthy_runs", str(HEALTHY_RUNS), build / "bin", "--seconds",
                           str(CHECK_S), "--machine", file], capture_output=True, text=True, check=False, cwd=folder)
    lines = done.stdout.strip().splitlines()
    return done.returncode == 0, lines[-1], lines[:-1]


def whole(build):
    os.environ["WLB_BUILD_DIR"] = str(build)
    sys.path.insert(0, str(ROOT / "tests/cluster"))
    import links
    import test_grow
    import test_netns
    import test_time_limit
    with tempfile.TemporaryDirectory(prefix="wlb-bench-") as name:
        is_healthy, healthy, ill = healthy_runs(build, pathlib.Path(name))
    planted = [(words, found_by_case(build, case)) for case, words in PLANTED.items()]

    def slow_link(test):
        of_cluster = links.Links(test.cluster)
        fast = of_cluster.check_node(2, 1, LEAST_GBIT)
        with of_cluster.limited(2, SLOW_MBIT):
            return fast, of_cluster.check_node(2, 1, LEAST_GBIT)

    test_netns.Networks.link_mbit, test_netns.Networks.nodes = MBIT, 2
    (code, fast), (slow_code, slow) = on_cluster(test_netns.Networks, slow_link)
    planted.append((f"a data link of {SLOW_MBIT} Mbit/s", "yes" if (code, slow_code) == (0, 1) else f"**no**: {fast}; {slow}"))
    limited = on_cluster(test_time_limit.TimeLimit, time_limit)
    test_grow.LostNode.least_s = test_grow.LEAST_S
    grown = on_cluster(test_grow.LostNode, shrink_and_grow)
    spare = on_cluster(test_grow.Spares, lambda test: test.lose_two())
    all_found = all(found == "yes" for _, found in planted)
    took_s = sum(float(step["step_time_s"]) for step in limited["steps"])
    goals = [(f"a job of {LIMIT_MINUTES} minutes that needs {NEEDED_S // 60} ends complete",
              f"{limited['state']} after {len(limited['attempts'])} attempts; {limited['steps_repeated']} steps repeated",
              verdict(limited["state"] == "complete" and limited["steps_repeated"] == 0 and took_s >= NEEDED_S)),
             ("a lost node that returns is used again", " -> ".join(str(len(each["nodes"])) for each in grown["attempts"]) + " nodes",
              verdict([len(each["nodes"]) for each in grown["attempts"]] == [4, 3, 4])),
             ("never below --wlb-min-nodes", f"{spare['state']}: {spare['reason']}", verdict(spare["state"] == "out_of_nodes")),
             (f"a healthy node passes {HEALTHY_RUNS} times of {HEALTHY_RUNS}", healthy, verdict(is_healthy)),
             ("each planted fault is found", f"{sum(found == 'yes' for _, found in planted)} of {len(planted)} kinds", verdict(all_found))]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return PAGE.format(
        load=LOAD.kept().strip() + "\n", machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()), commit=commit, goals=rows(goals),
        limit=LIMIT_MINUTES, needed=took_s / 60, steps=LIMIT_STEPS, least=test_grow.LEAST_S, calibration=CALIBRATION_S, check=CHECK_S,
        runs=HEALTHY_RUNS, mbit=MBIT, slow_mbit=SLOW_MBIT, least_gbit=LEAST_GBIT, planted=rows(planted),
        limit_attempts=rows((each["attempt"], steps(each), each["reason"] or each["state"]) for each in limited["attempts"]),
        grow_attempts=rows((name, each["attempt"], " ".join(each["nodes"]), layout(each), steps(each), each["reason"] or each["state"])
                           for name, run in (("grow", grown), ("spare", spare)) for each in run["attempts"]),
        healthy="\n".join([f"Healthy: {healthy}.", *(f"- {line}" for line in ill)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.before:
        print(LOAD.replaced(bench_load.section(arguments.build, arguments.before) + "\n"), end="")
    else:
        print(whole(arguments.build), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_recovery.py: ended by a signal"))
    main()
