#!/usr/bin/env python3
"""Causes faults in runs on a private cluster and prints docs/results/real_verdicts.md. Usage: bench_real_verdicts.py BUILD_DIR
[--ranks N] [--cases KINDS] [--steps N] [--minutes N]"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import signal
import sys
import threading
import time

from bench_host import compiler, machine, verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]

LAYOUTS = {8: ("dp=8", "tp=2,cp=1,pp=2,dp=2", "tp=1,cp=2,pp=2,dp=2"), 16: ("tp=2,cp=2,pp=2,dp=2", "tp=1,cp=1,pp=4,dp=4")}
STOPPED = {8: "tp=2,cp=1,pp=2,dp=2", 16: "tp=2,cp=2,pp=2,dp=2"}
FACTORS = (1.1, 1.5)
KINDS = ("slow", "stopped", "half")
PLACES = ("in_computation", "in_call", "in_loader", "in_checkpoint")
SCALE, STEP_S, SAVE_INTERVAL = 1, 0.18, 20
HEALTHY_STEPS, LEARN_STEPS, BETWEEN_STEPS = 2000, 24, 4
SLOW_STEPS, HALF_STEPS, STOPPED_S = 50, 30, 10  # within which a fault is to be named
LONGER = 2  # times as long a case is watched
SIDE_BY_SIDE = 4
POLL_S = 0.5
STILL_S = 120  # a run of which no step ends for longer has broken
NODES = 8


@dataclasses.dataclass
class Case:
    """What was told of a fault; `seconds` and `steps` are from its beginning to the confirmed verdict."""
    layout: str
    rank: int
    fault: str
    steps: int = 0
    seconds: float = 0.0
    suspected_s: float = 0.0
    found_in: str = ""
    named: bool = False
    met: bool = False
    wrong: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Healthy:
    layout: str
    steps: int
    wrong: list


class Watch:
    """The verdicts of a run: those that are expected, and the others, of which each counts once."""

    def __init__(self, run):
        self.run, self.known = run, set()

    def new(self, expected=None):
        """Returns the verdict that is expected, None: there is none; and descriptions of new ones that are not."""
        found, wrong = None, []
        for told in self.run.verdicts():
            is_expected = (told["kind"], told["ranks"]) == expected and not told["over"]
            if is_expected:
                found = told
            elif told["id"] not in self.known:
                wrong.append(f"{told['kind']} of {told['ranks']}: {told['evidence']}")
            self.known.add(told["id"])
        return found, wrong

    def until(self, expected, confirmed, ended, wrong):
        """Polls until the verdict is there, or is over where `confirmed` is None, or ended() is true. Returns it."""
        step, since = self.run.step(), time.monotonic()
        while True:
            if self.run.step() != step:
                step, since = self.run.step(), time.monotonic()
            if time.monotonic() - since > STILL_S:
                raise AssertionError(f"no step for {STILL_S} s after step {step}: {self.run.cluster.output(self.run.job)[-500:]}")
            found, others = self.new(expected)
            wrong += others
            is_there = found is None if confirmed is None else found is not None and found[confirmed]
            if is_there or ended():
                return found
            time.sleep(POLL_S)


def wait_over(watch, expected, case):
    """Until the verdict has ended, and some steps more."""
    last = watch.run.step() + LONGER * SLOW_STEPS
    watch.until(expected, None, lambda: watch.run.step() > last, case.wrong)
    watch.run.wait_steps(BETWEEN_STEPS)


def healthy(watch, layout, steps, last_s):
    end, wrong, began = watch.run.step() + steps, [], watch.run.step()
    watch.until(None, "found", lambda: watch.run.step() >= end or time.monotonic() > last_s, wrong)
    return Healthy(layout, watch.run.step() - began, wrong)


def watch_steps(watch, case, most):
    """Sets what is told of a rank that has just become slow, within twice as many steps as it is to be named in."""
    expected, before, began = ("slow_compute", [case.rank]), watch.run.step(), time.time()
    found = watch.until(expected, "confirmed", lambda: watch.run.step() > before + LONGER * most, case.wrong)
    case.steps = watch.run.step() - before
    case.named = found is not None and found["confirmed"] is not None
    case.seconds = found["confirmed"] - began if case.named else 0.0
    case.met = case.named and case.steps <= most
    return expected


def slow(watch, layout, rank, factor):
    case = Case(layout, rank, f"{100 * (factor - 1):.0f} % slower")
    watch.run.slow(rank, factor)
    expected = watch_steps(watch, case, SLOW_STEPS)
    watch.run.slow(rank, 1.0)
    wait_over(watch, expected, case)
    return case


def half(watch, layout, rank):
    case = Case(layout, rank, "half speed")
    with watch.run.half_speed(rank):
        expected = watch_steps(watch, case, HALF_STEPS)
    wait_over(watch, expected, case)
    return case


def stopped(watch, layout, rank, place, pattern):
    case, expected = Case(layout, rank, f"stopped {place.replace('_', ' ')}"), ("hang", [rank])
    with getattr(watch.run, place)(rank):
        began = watch.run.stop(rank)
        found = watch.until(expected, "confirmed", lambda: time.time() > began + LONGER * STOPPED_S, case.wrong)
    watch.run.go_on(rank)
    case.named = found is not None and found["confirmed"] is not None
    if case.named:
        case.seconds, case.suspected_s = found["confirmed"] - began, found["found"] - began
        case.found_in = pattern.search(found["evidence"]).group(1)
    case.met = case.named and case.seconds <= STOPPED_S
    wait_over(watch, expected, case)
    return case


def load():
    return f"{os.getloadavg()[0]:.1f}"


class Campaign:
    def __init__(self, live_run, cluster, arguments):
        self.live_run, self.cluster, self.steps = live_run, cluster, arguments.steps
        self.cases, self.healthy, self.broken, self.lock = [], [], [], threading.Lock()
        self.load_before = load()
        self.end, self.left_out = time.monotonic() + 60 * arguments.minutes, 0
        self.ranks = (arguments.ranks,) if arguments.ranks else tuple(LAYOUTS)
        self.kinds = arguments.cases.split(",")

    def case(self, function, *arguments):
        """Runs a case, where there is time left for it."""
        if time.monotonic() > self.end:
            self.left_out += 1
            return
        case = function(*arguments)
        with self.lock:
            self.cases.append(case)
            print(time.strftime("%H:%M:%S"), case, file=sys.stderr, flush=True)

    def timed(self, layout, ranks, **more):
        """A run on the timed device that has learnt what is usual."""
        run = self.live_run.TimedRun(self.cluster, layout, ranks, SCALE, "--wlb-on-fault=report", **more)
        run.wait_step(6)
        run.make_ranks_compute(STEP_S)
        run.wait_steps(LEARN_STEPS)
        return run

    def slow(self, layout, ranks):
        run = self.timed(layout, ranks)
        watch = Watch(run)
        for factor in FACTORS:
            for rank in range(ranks):
                self.case(slow, watch, layout, rank, factor)
        self.healthy.append(healthy(watch, layout, self.steps, self.end))
        print(self.healthy[-1], file=sys.stderr, flush=True)
        run.cancel()

    def stopped(self, layout, ranks):
        run = self.timed(layout, ranks, save_interval=SAVE_INTERVAL)
        watch = Watch(run)
        for place in PLACES:
            for rank in range(ranks):
                self.case(stopped, watch, layout, rank, place, self.live_run.STOPPED_IN)
        run.cancel()

    def half(self):
        """A run for each rank, alone on the machine, since its ranks compute."""
        for rank in range(self.live_run.CoreRun.ranks):
            run = self.live_run.CoreRun(self.cluster, "--wlb-on-fault=report")
            run.wait_step(2 * LEARN_STEPS)
            self.case(half, Watch(run), "dp=2", rank)
            run.cancel()

    def run(self):
        if "half" in self.kinds:
            self.half()
        ranks_of_most = sorted(self.ranks, reverse=True)  # the longest runs first
        work = [(self.slow, layout, ranks) for ranks in ranks_of_most for layout in LAYOUTS[ranks] if "slow" in self.kinds]
        work += [(self.stopped, STOPPED[ranks], ranks) for ranks in ranks_of_most if "stopped" in self.kinds]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            runs = {pool.submit(*each): each for each in work}
        for run, (function, layout, _) in runs.items():
            if run.exception() is not None:
                self.broken.append(f"{function.__name__}, {layout}: {run.exception()}")


PAGE = """# Verdicts on real runs

Made by `{command}`{part}. {left_out}

- Machine: {machine}; {compiler}.
- Date: {date}. Load average of the machine: {before} before, {now} at the end.

Faults in runs of `wlb-worker` on a private cluster on this machine: Slurm, PMIx, PostgreSQL and wlbd, which finds the verdicts from
what wlb-agent reports each second. Many ranks share the cores: they run on the timed device ([tests/timed](../../tests/timed/device.h)),
which waits for the time of each operation instead of computing; processes, messages and reports are the real ones. In a step
a rank computes for {step_s:g} s at most, up to {side} runs go on side by side, and a run goes on after each fault, which is reported.

- *slower*: all operations of the rank take that much longer, from a step on until it is named. To be named within {slow_steps} steps.
- *stopped*: SIGSTOP while the rank is in computation, waits in a call, waits for its loader (its reads of the dataset are held), or all
  ranks wait for a checkpoint (the writes of rank 0 are held). Local rank 0 of each node is one of the ranks. To be named within
  {stopped_s} s.
- *half speed*: two ranks on the CPU device, each on a core of its own; one is stopped and continued in turns of {cycle_ms:.0f} ms. To be
  named within {half_steps} steps.
- *named*: a confirmed verdict of that rank alone. Steps and seconds are from the fault until the verdict was seen, which is looked for
  each {poll_s:g} s; they include the times of the reports. *wrong*: any other verdict, suspicions too, from the fault until the run was
  healthy again.

| goal | measured | |
|---|---|---|
{goals}

## Healthy steps
After the faults of the same run.

| layout | steps | verdicts |
|---|---|---|
{healthy}

## Summary
| layout | fault | ranks in turn | named | until named, median / longest | wrong |
|---|---|---|---|---|---|
{summary}

## Cases
| layout | rank | fault | seen as | named | after | wrong |
|---|---|---|---|---|---|---|
{cases}
{wrong}{broken}"""


def table(rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def after(case):
    if not case.named:
        return f"not in {case.steps} steps" if case.steps else f"not in {LONGER * STOPPED_S} s"
    if case.steps:
        return f"{case.steps} steps, {case.seconds:.1f} s" + ("" if case.met else " (too late)")
    return f"{case.suspected_s:.1f} s suspected, {case.seconds:.1f} s"


def middle(values, unit):
    values = sorted(values)
    return f"{values[len(values) // 2]:.3g} / {values[-1]:.3g} {unit}" if values else "-"


def summary(cases):
    groups = {}
    for case in cases:
        groups.setdefault((case.layout, case.fault), []).append(case)
    for (layout, fault), group in groups.items():
        named = [case for case in group if case.named]
        times = [case.steps for case in named] if group[0].steps else [case.seconds for case in named]
        yield (layout, fault, len(group), f"{sum(case.met for case in group)}", middle(times, "steps" if group[0].steps else "s"),
               sum(len(case.wrong) for case in group))


def goals(campaign):
    for words, mark in ((f"a rank 10 % slower named within {SLOW_STEPS} steps", "10 %"),
                        (f"a rank 50 % slower named within {SLOW_STEPS} steps", "50 %"),
                        (f"a rank at half speed, of two, named within {HALF_STEPS} steps", "half speed"),
                        (f"a stopped rank named within {STOPPED_S} s", "stopped")):
        of_kind = [case for case in campaign.cases if mark in case.fault]
        met = sum(case.met for case in of_kind)
        yield (words, f"{met} of {len(of_kind)}", verdict(met == len(of_kind)) if of_kind else "not measured")
    steps, wrong = sum(each.steps for each in campaign.healthy), sum(len(each.wrong) for each in campaign.healthy)
    yield ("no verdict in healthy steps", f"{wrong} in {steps:,} steps", verdict(wrong == 0) if steps else "not measured")
    wrong = sum(len(case.wrong) for case in campaign.cases)
    if campaign.broken:
        yield ("no run ends before its cases", f"{len(campaign.broken)} did", verdict(False))
    yield ("no wrong verdict beside faults", f"{wrong} in {len(campaign.cases)} cases", verdict(wrong == 0))


def section(title, lines):
    text = "\n".join(f"- {line}" for line in lines)
    return f"\n## {title}\n{text}\n" if text else ""


def page(build, words, campaign, live_run):
    order = sorted(campaign.cases, key=lambda case: (case.layout.count(","), case.layout, case.fault, case.rank))
    wrong = [(each.layout, text) for each in campaign.healthy for text in each.wrong]
    wrong += [(f"{case.layout}, rank {case.rank} {case.fault}", text) for case in order for text in case.wrong]
    return PAGE.format(
        command=" ".join(["scripts/bench real_verdicts", *words]), part=": a part of the whole campaign" if words else ": the whole campaign",
        left_out=f"Its time was over before {campaign.left_out} more cases." if campaign.left_out else "",
        before=campaign.load_before, now=load(), machine=machine(), compiler=compiler(build), date=time.strftime("%Y-%m-%d", time.gmtime()), step_s=STEP_S, side=SIDE_BY_SIDE,
        slow_steps=SLOW_STEPS, stopped_s=STOPPED_S, half_steps=HALF_STEPS, cycle_ms=500 * live_run.CYCLE_S, poll_s=POLL_S,
        goals=table(goals(campaign)), healthy=table((each.layout, each.steps, len(each.wrong)) for each in campaign.healthy),
        summary=table(summary(order)),
        cases=table((case.layout, case.rank, case.fault, case.found_in or "-", f"rank {case.rank}" if case.named else "**nobody**",
                     after(case), len(case.wrong)) for case in order),
        wrong=section("Wrong verdicts", (f"{where}: {text}" for where, text in wrong)),
        broken=section("Runs that ended before their cases", campaign.broken))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, choices=tuple(LAYOUTS))
    parser.add_argument("--cases", default=",".join(KINDS))
    parser.add_argument("--steps", type=int, default=HEALTHY_STEPS)
    parser.add_argument("--minutes", type=int, default=600)
    arguments = parser.parse_args()
    os.environ["WLB_BUILD_DIR"] = str(arguments.build.resolve())
    sys.path.insert(0, str(ROOT / "tests/cluster"))
    import harness  # pylint: disable=import-outside-toplevel  # reads the folder of the build from the environment
    import live_run  # pylint: disable=import-outside-toplevel
    cluster = harness.Cluster(NODES)
    try:
        cluster.start()
        live_run.make_input(cluster)
        campaign = Campaign(live_run, cluster, arguments)
        campaign.run()
    finally:
        cluster.stop()
    print(page(arguments.build, sys.argv[2:], campaign, live_run), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("bench_real_verdicts.py: ended by a signal"))
    main()
