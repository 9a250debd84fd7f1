"""Runs one case: injects one kind of fault into one run, waits for the run's end and checks it."""
import dataclasses
import datetime
import json
import re
import time

import leftovers
from harness import BUILD, JOB_ENDED, Failed, wait_for
from inject import Injector
from kinds import NODES, RANKS_PER_NODE, fill

DEADLINE_S = 180  # of every wait; for the end of the run, from the last step or state of its job
END_MOST_S = 600  # for the end of the run, however slowly it goes on beside other tests
CLEAN_S = 30
RETURN_S = 120  # until Slurm uses a node again that has thawed, and the last slurmstepd is gone
GONE_S = 60  # how long a job that failed has to be requeued


@dataclasses.dataclass
class Result:
    kind: str
    trainer: str
    found_s: float | None = None  # from the fault until wlbd knew of it
    resumed_s: float | None = None  # from the fault to the first step of the next attempt, where that is recorded
    cause: str = "-"
    reason: str = ""
    attempts: int = 0
    requeues: int = 0
    took_s: float = 0
    missed: bool = False  # the second of two faults found nothing that it could be done to
    time_lost: dict = dataclasses.field(default_factory=dict)  # of `wlb show --json`: the ETTR, and what was lost by which cause
    is_untrue: bool = False  # cause, reason or a name is not what was done: some of the problems
    problems: list = dataclasses.field(default_factory=list)

    @property
    def passed(self):
        return not self.problems


class Case:
    def __init__(self, cluster, kind, trainer, places, layout="auto", options=()):
        """options: more of sbatch."""
        self.cluster, self.kind, self.trainer, self.places = cluster, fill(kind, places), trainer, places
        self.layout, self.options = layout, options
        self.result = Result(kind.name, trainer.name)
        self.job, self.injector, self.run = None, None, None

    def execute(self):
        """Returns the result. Errors of the run are in its problems and are not raised."""
        began = time.monotonic()
        try:
            self.run_with_fault()
            self.judge()
        except (Failed, OSError, KeyError, ValueError) as error:
            self.problem(f"{type(error).__name__}: {error}")
        finally:
            self.result.took_s = time.monotonic() - began
            self.restore()
        return self.result

    def problem(self, *texts):
        """Pages of results tell no folder of the machine on which they were made."""
        for text in texts:
            self.result.problems.append(text.replace(f"{BUILD}/bin/", "").replace(f"{self.cluster.dir}/", ""))

    # ---- what happens ---------------------------------------------------------------------------------------------

    def run_with_fault(self):
        self.job = self.trainer.submit(self.kind.long, self.layout, *self.options)
        self.injector = Injector(self.cluster, self.job, self.wait, lambda: self.job_state() in JOB_ENDED)
        self.wait("step", self.places.step)
        self.injector.inject(self.kind.script)
        self.result.missed = self.injector.has_missed
        self.wait_end()

    def wait(self, what, number=0):
        """What the command `wait` of inject.py waits for."""
        if what == "end":
            self.wait("step", self.trainer.steps(self.kind.long))
        elif what == "step":
            wait_for(f"step {number}", lambda: self.trainer.step_done(self.job) >= int(number), DEADLINE_S, 0.02)
        elif what == "ranks":
            last = (NODES - self.kind.spares) * RANKS_PER_NODE - 1
            wait_for("the last rank", lambda: self.injector.has_rank(last), DEADLINE_S, 0.05)
        elif what == "trained":
            wait_for(f"{number} steps of the newest attempt", lambda: self.steps_of_newest() >= int(number), DEADLINE_S)
        else:  # a fault at the last step may find the run complete
            pattern = re.compile(rf"^wlb: attempt {number} on ", re.MULTILINE)
            wait_for(f"attempt {number}", lambda: pattern.search(self.cluster.output(self.job)) or self.is_complete(), DEADLINE_S, 0.05)

    def wait_end(self):
        """Waits until the run is complete, or until its job has ended and is not requeued."""
        began, moved, ended, last = time.monotonic(), time.monotonic(), None, None
        while not self.is_complete():
            now, state = time.monotonic(), self.job_state()
            if (state, self.trainer.step_done(self.job)) != last:
                last, moved = (state, self.trainer.step_done(self.job)), now
            ended = (ended or now) if state in JOB_ENDED else None
            if now - moved > DEADLINE_S or now - began > END_MOST_S or (ended and now - ended > GONE_S):
                run = self.run if self.load_run() else {"state": "unknown", "reason": ""}
                self.problem(f"the run did not complete: job {state}, run {run['state']} ({run['reason']}), last step {last[1]}, "
                             f"{now - began:.0f} s after the faults")
                return
            time.sleep(0.2)

    def is_complete(self):
        """A script that is killed when its run is over makes Slurm call the job failed."""
        ends = ("COMPLETED", "FAILED") if "kill script" in self.kind.script else ("COMPLETED",)
        return self.job_state() in ends and self.load_run() and self.run["state"] == "complete"

    def job_state(self):
        try:
            return self.cluster.job(self.job)["JobState"]
        except (Failed, KeyError):
            return "UNKNOWN"

    def load_run(self):
        """Reads the run from `wlb show --json`; returns false where that fails."""
        result = self.cluster.run("wlb", "show", self.job, "--json", check=False)
        if result.returncode == 0:
            self.run = json.loads(result.stdout)
        return result.returncode == 0

    def steps_of_newest(self):
        """How many steps of the newest attempt are recorded."""
        attempt = self.run["attempts"][-1] if self.load_run() else {"last_step": None}
        return attempt["last_step"] - attempt["first_step"] + 1 if attempt["last_step"] else 0

    def restore(self):
        frozen = self.has_frozen_node()
        try:
            if self.injector:
                self.injector.undo()
            if self.job and self.job_state() not in JOB_ENDED:
                self.cluster.run("scancel", self.job, check=False)
            self.clean("when all was well again", RETURN_S,
                       lambda: self.left_running() + leftovers.ill_nodes(self.cluster))
            if frozen and self.load_run():
                self.judge_training()
        except (Failed, KeyError, ValueError) as error:
            self.problem(f"the cluster was not restored: {error}")

    # ---- what is right --------------------------------------------------------------------------------------------

    def judge(self):
        if not self.load_run():
            self.problem("wlb show does not know the run")
            return
        self.judge_left()
        self.load_run()
        before = len(self.result.problems)
        self.judge_cause()
        self.result.is_untrue = len(self.result.problems) > before
        self.judge_count()
        self.measure_resumption()
        self.result.time_lost = self.run["time_lost"]
        self.judge_nodes()
        if not self.has_frozen_node():
            self.judge_training()
        self.problem(*leftovers.disagreements(self.cluster.run("wlb", "show", self.job).stdout, self.run))

    def has_frozen_node(self):
        return self.injector is not None and any(words[0] == "thaw-node" for words in self.injector.to_undo.values())

    def judge_training(self):
        """Not while a node is frozen: it may have records of steps on its disk that it sends when it has thawed."""
        if self.run["state"] == "complete":
            self.problem(*self.trainer.problems(self.job, self.run, self.kind.long))

    def judge_left(self):
        """A frozen node's processes, and the records that they lock, are checked when the node has thawed."""
        frozen = self.has_frozen_node()
        self.clean("after the run", CLEAN_S, lambda: (
            ([] if frozen else self.left_running(of_slurm=False)) + leftovers.of_slurm(self.cluster)
            + leftovers.of_database(self.cluster, self.job)
            + leftovers.ill_nodes(self.cluster, self.kind.dead.split())))

    def left_running(self, **options):
        return leftovers.processes(self.cluster, **options) + leftovers.of_spool(self.cluster)

    def clean(self, when, within_s, look):
        """Adds a problem for each thing that look() still finds after within_s."""
        left = []
        try:
            wait_for("clean", lambda: not left_into(left, look()), within_s, 0.3)
        except Failed:
            self.problem(*(f"{when}: {text}" for text in left))

    def judge_cause(self):
        faults = [fault for fault in self.run["faults"] if fault["attempt"] == 1]
        causes = [describe(fault) for fault in faults if fault["cause"]]
        self.result.cause = ", ".join(causes) or "-"
        self.result.reason = self.run["attempts"][0]["reason"] if self.run["attempts"] else ""
        if faults:
            self.result.found_s = max(0, min(map(time_of, faults)) - self.injector.began)
        if (causes not in [[cause] for cause in self.kind.causes if cause]
                and not (causes == [] and (not self.kind.causes or "" in self.kind.causes))):
            self.problem(f"cause {causes}, not {' or '.join(self.kind.causes) or 'none'}")
        if not re.search(self.kind.reason, self.result.reason):
            self.problem(f"reason '{self.result.reason}' does not match '{self.kind.reason}'")
        self.judge_ends()
        self.judge_names()

    def judge_ends(self):
        """Each attempt that did not complete has one cause, and a reason; one that was stopped or requeued has a reason alone."""
        for attempt in self.run["attempts"]:
            number, reason = attempt["attempt"], attempt["reason"]
            causes = sum(fault["cause"] for fault in self.run["faults"] if fault["attempt"] == number)
            stopped = attempt["state"] == "ended" and self.kind.stopped and re.search(self.kind.stopped, reason)
            if attempt["state"] != "complete" and (causes != (0 if stopped else 1) or not reason):
                self.problem(f"attempt {number} is {attempt['state']} with {causes} causes, reason '{reason}'")

    def judge_names(self):
        """No reason and no lost node may name a node or rank that no fault was injected into."""
        kind = self.kind
        allowed = set(" ".join([*kind.causes, kind.dead, kind.evicted, kind.beside]).split()) | self.injector.hit_ranks
        for attempt in self.run["attempts"]:
            named = re.findall(r"\bn\d+\b", attempt["reason"]) + re.findall(r"\brank (\d+)\b", attempt["reason"])
            if set(named) - allowed:
                self.problem(f"the reason of attempt {attempt['attempt']} names "
                             f"{', '.join(set(named) - allowed)}: '{attempt['reason']}'")
        for fault in self.run["faults"]:
            if fault["kind"] == "node_lost" and fault["node"] not in self.kind.dead.split():
                self.problem(f"{describe(fault)} is recorded: {fault['detail']}")

    def judge_count(self):
        self.result.attempts = len(self.run["attempts"])
        self.result.requeues = int(self.cluster.job(self.job).get("Restarts", 0))
        for what, value, (least, most) in (("attempts", self.result.attempts, self.kind.attempts),
                                           ("requeues", self.result.requeues, self.kind.requeues)):
            if not least <= value <= most:
                self.problem(f"{value} {what}, not {least}" + (f" to {most}" if most > least else ""))

    def measure_resumption(self):
        times = self.cluster.sql(
            "SELECT extract(epoch FROM min(s.recorded_at)) FROM (SELECT attempt_id, recorded_at FROM steps UNION ALL "
            "SELECT attempt_id, recorded_at FROM steps_superseded) s JOIN attempts a ON a.id = s.attempt_id "
            f"JOIN runs r ON r.id = a.run_id WHERE r.name = '{self.job}' AND a.number = 2")
        if times and times[0][0]:
            self.result.resumed_s = float(times[0][0]) - self.injector.began

    def judge_nodes(self):
        """The run ended on all nodes that were left but the spares, with all their ranks. A job that was requeued may have started
        with a node that came back before Slurm had freed another one."""
        kind, every = self.kind, {f"n{i}" for i in range(1, NODES + 1)}
        returned = set(kind.returned.split())
        left = every - (set(kind.dead.split()) - returned)
        sure = left - returned - set(kind.evicted.split())
        usable = left if kind.attempts[0] > 1 else every  # where it may have ended before its nodes were lost
        most = NODES - kind.spares
        may_replace = kind.spares > 0 or (returned and self.result.requeues > 0)
        ways, used = self.run["layout"], set(self.run["nodes"])
        ranks = ways["tp"] * ways["cp"] * ways["pp"] * ways["dp"]
        if (not used <= usable or not min(len(sure), most) <= len(used) <= most or (not may_replace and not sure <= used)
                or ranks != RANKS_PER_NODE * len(used)):
            self.problem(f"the run ended on {' '.join(sorted(used))} as {ways}, not on {most} of {' '.join(sorted(left))}")


def left_into(left, found):
    left[:] = found
    return found


def describe(fault):
    return f"{fault['kind']} {fault['node'] or '-'} {'-' if fault['rank'] is None else fault['rank']}"


def time_of(fault):
    return datetime.datetime.fromisoformat(fault["time"].replace("Z", "+00:00")).timestamp()
