"""The cells of the table of tests/trainers/run: what is done to a run of a trainer, and what must follow."""
import dataclasses
import math
import os
import pathlib
import re
import signal
import time

import dashboard_queries
import harness
from harness import Failed, wait_for
from started import HERE, NODES, POLL_S, Run

STEPS = 40
FAULT_STEP = 15  # behind the checkpoint of step 10
LOOP_STEP = 40  # some seconds of steps must have been seen
VICTIM_NODE = 2
LOSS_TOLERANCE = 1e-3  # relative; what is printed is rounded


@dataclasses.dataclass
class Limits:
    start_s: float = 5
    cold_starts: float = 1.5
    named_s: float = 15
    loop_s: float = 60
    shown_s: float = 15

    def multiply(self, factor):
        for field in dataclasses.fields(self):
            setattr(self, field.name, factor * getattr(self, field.name))


LIMITS = Limits()


@dataclasses.dataclass
class Result:
    trainer: str
    fault: str
    measured: str = ""
    problems: list = dataclasses.field(default_factory=list)

    @property
    def passed(self):
        return not self.problems

    def check(self, is_right, problem):
        if not is_right:
            self.problems.append(problem)


def started_at(pid):
    """time.time() of the start of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


def victim_rank(trainer):
    """The last rank of VICTIM_NODE."""
    return trainer.ranks(VICTIM_NODE) - 1


@dataclasses.dataclass
class Start:
    """Of an attempt: when the last task and the last rank started, and the seconds from the task to the first step."""
    task: float
    rank: float
    training_s: float


def last_start(run, attempt, found, count):
    """When the last of `count` processes started, which found(attempt) returns by RANK."""
    pids = wait_for(f"{count} processes of attempt {attempt}", lambda: len(pids := found(attempt)) == count and pids, 60, POLL_S)
    return max(map(started_at, pids.values()))


def wait_start(run, attempt, nodes):
    task = last_start(run, attempt, run.tasks, nodes * run.trainer.tasks_per_node)
    rank = last_start(run, attempt, run.ranks, run.trainer.ranks(nodes))
    run.wait_step(1, attempt)
    return Start(task, rank, time.time() - task)


def no_fault(venv, cluster, trainer, result):
    """Its steps are in the record, each once, with the loss that it prints where its lines are known."""
    run = Run(cluster, venv, trainer, STEPS)
    run.wait_end()
    printed = dict(run.printed(1))
    wait_for("the end of the run", lambda: run.show().get("state") == "complete", 30)
    recorded = [(step["step"], step.get("loss")) for step in run.show("--steps")["steps"]]
    with_loss = sum(loss is not None for _, loss in recorded)
    result.measured = f"{len(recorded)} of {STEPS} steps recorded, {with_loss} with their loss"
    result.check([step for step, _ in recorded] == list(range(1, STEPS + 1)),
                 f"{len(recorded)} steps are recorded, not 1 to {STEPS}, each once")
    result.check(with_loss in {"none": [0], "some": range(1, STEPS + 1), "each": [STEPS]}[trainer.losses],
                 f"{with_loss} steps are recorded with a loss")
    wrong = [step for step, loss in recorded if loss is not None
             and not any(math.isclose(loss, other, rel_tol=LOSS_TOLERANCE, abs_tol=LOSS_TOLERANCE)
                         for other in ([printed.get(step, math.nan)] if trainer.losses == "each" else printed.values()))]
    result.check(not wrong, f"the recorded loss of {len(wrong)} steps is not the printed one")


def node_killed(venv, cluster, trainer, result):
    """New ranks start soon, and train nearly as soon as at the cold start; each step is trained once."""
    run = Run(cluster, venv, trainer, STEPS)
    cold = wait_start(run, 1, NODES)
    run.wait_step(FAULT_STEP)
    lost = time.time()
    cluster.kill_node(VICTIM_NODE)
    try:
        again = wait_start(run, 2, NODES - 1)
        run.wait_end()
    finally:
        cluster.restore_node(VICTIM_NODE)
    launchers = f"launchers after {again.task - lost:.1f} s, " if trainer.has_launcher else ""
    result.measured = (f"{launchers}ranks after {again.rank - lost:.1f} s; training {again.training_s:.1f} s after the "
                       f"{'launchers' if trainer.has_launcher else 'ranks'}, cold start {cold.training_s:.1f} s")
    result.check(again.rank - lost <= LIMITS.start_s,
                 f"new ranks started {again.rank - lost:.1f} s after the loss, not within {LIMITS.start_s} s")
    result.check(again.training_s <= LIMITS.cold_starts * cold.training_s,
                 f"training took {again.training_s / cold.training_s:.2f} times the cold start, not at most {LIMITS.cold_starts}")
    check_steps(run, result)


def check_steps(run, result):
    """Of a run of two attempts: what it printed, and what is recorded where steps are."""
    first, second = ([step for step, _ in run.printed(attempt)] for attempt in (1, 2))
    for number, steps in ((1, first), (2, second)):
        result.check(steps == list(range(steps[0], steps[-1] + 1)), f"attempt {number} printed the steps {steps}")
    result.check(1 < second[0] <= first[-1] + 1, f"attempt 1 trained to step {first[-1]}, and attempt 2 went on from {second[0]}")
    result.check(second[-1] == run.steps, f"the last step is {second[-1]}, not {run.steps}")
    recorded = [step["step"] for step in run.show("--steps").get("steps", [])]
    result.check(not recorded or recorded == list(range(1, run.steps + 1)),
                 f"the recorded steps are not 1 to {run.steps}, each once: {recorded}")
    result.measured += "; each step once" if recorded else "; no step recorded"


def ranks_named(run):
    """In faults and verdicts of `wlb show --json`."""
    shown = run.show()
    entries = shown.get("faults", []) + shown.get("verdicts", [])
    return {entry["rank"] for entry in entries if entry.get("rank") is not None} | {rank for entry in entries
                                                                                    for rank in entry.get("ranks", [])}


def rank_stopped(venv, cluster, trainer, result):
    """That rank, and no other, is named."""
    run, rank = Run(cluster, venv, trainer, STEPS * 100), victim_rank(trainer)
    run.wait_step(FAULT_STEP)
    pid, at = run.ranks(1)[rank], time.time()
    os.kill(pid, signal.SIGSTOP)
    try:
        named = wait_until(lambda: ranks_named(run), at + LIMITS.named_s)
    finally:
        end_stopped(run, pid)
    result.measured = f"named after {time.time() - at:.1f} s" if named else ""
    result.check(named == {rank}, f"ranks named within {LIMITS.named_s} s: {sorted(named) if named else 'none'}, not {rank}")
    check_dashboards(run, result)


def check_dashboards(run, result):
    """Every query of the dashboards is answered, and the steps that the trainer did are in their curves."""
    problems, asked = dashboard_queries.check(run.cluster, run.show()["id"])
    result.problems += problems
    for board, title in (("run", "Tokens per second"), ("run", "Step"), ("compare", "Time of a step"), ("fleet", "Runs")):
        result.check(asked[board, title].rows, f"the dashboard {board} has nothing in '{title}'")


def end_stopped(run, pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:  # WLB has ended the attempt
        pass
    run.cancel()


def wait_until(condition, until):
    """What condition() returns once that is true; else its last value, at the time `until`."""
    while True:
        value = condition()
        if value or time.time() > until:
            return value
        time.sleep(0.2)


def rank_loops(venv, cluster, trainer, result):
    """`wlb show` has that rank, with file and line."""
    rank = victim_rank(trainer)
    run = Run(cluster, venv, trainer, STEPS * 100, "loop", rank, LOOP_STEP)
    run.wait_recorded(LOOP_STEP - 1)
    at = time.time()
    try:
        wait_until(lambda: loop_lines(run.show_text()) and ranks_named(run), at + LIMITS.loop_s)
        took_s, lines, named = time.time() - at, loop_lines(run.show_text()), ranks_named(run)
    finally:
        run.cancel()
    result.measured = f"reported after {took_s:.1f} s" if lines else ""
    result.check(lines, f"wlb show has no file and line of the loop within {LIMITS.loop_s} s")
    result.check(named == {rank}, f"ranks named: {sorted(named) or 'none'}, not {rank}")


def loop_lines(text):
    """Lines of the sources of endless_loop() that the text names."""
    found = []
    for path in (HERE / "faulty.py", harness.ROOT / "tests/faults/foreign_trainer.c"):
        source = path.read_text(encoding="utf-8").splitlines()
        first = next(number for number, line in enumerate(source, 1) if re.search(r"(def|void) endless_loop\(", line))
        numbers = map(int, re.findall(rf"{re.escape(path.name)}\D{{1,10}}(\d+)", text))
        found += [(path.name, number) for number in numbers if first <= number <= first + 5]
    return found


def error_in_rank(venv, cluster, trainer, result):
    """`wlb show` has the error's own line."""
    rank = victim_rank(trainer)
    run = Run(cluster, venv, trainer, STEPS, "error", rank, FAULT_STEP)
    text = f"planted error of rank {rank}"
    wait_for("the error", lambda: text in run.cluster.output(run.job), 60, POLL_S)
    at = time.time()
    try:
        is_shown = wait_until(lambda: text in run.show_text(), at + LIMITS.shown_s)
    finally:
        run.cancel()
    result.measured = f"shown after {time.time() - at:.1f} s" if is_shown else ""
    result.check(is_shown, f"wlb show has no '{text}' within {LIMITS.shown_s} s")


FAULTS = {"node": node_killed, "stopped": rank_stopped, "loop": rank_loops, "error": error_in_rank, "none": no_fault}


def run_cell(venv, cluster, trainer, fault):
    """Returns the Result; what fails is in its problems."""
    result = Result(trainer.name, fault)
    try:
        FAULTS[fault](venv, cluster, trainer, result)
    except (Failed, OSError, KeyError, IndexError, ValueError, StopIteration) as error:
        result.problems.append(f"{type(error).__name__}: {error}".replace(f"{cluster.dir}/", ""))
    return result
