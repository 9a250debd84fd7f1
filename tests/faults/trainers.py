"""The two training programs that faults are injected into: wlb-worker, and an MPI program that uses nothing of WLB."""
import threading

import harness
import training
from kinds import NODES, RANKS_PER_NODE

MASK = 2**64 - 1
EXIT_SAVED = 85  # of a command that was asked to save and stop, and has
REFERENCE = threading.Lock()  # so that the run without faults, with which others are compared, is made once


class Checks(training.TrainingTest):
    def say(self, text):
        """The table has lines of its own."""


class Ours:
    """wlb-worker. Each step is recorded exactly once, and its loss is that of a run without faults."""

    name = "ours"
    save_interval = training.SAVE_INTERVAL

    def __init__(self, cluster):
        self.test = Checks()
        self.test.cluster = cluster

    def prepare(self):
        training.make_input(self.test.cluster.work)

    def steps(self, long):
        return 160 if long else training.ITERATIONS

    def submit(self, long, layout, *options):
        return self.test.submit(*options, iterations=self.steps(long), layout=layout)

    def step_done(self, job):
        return self.test.step_done(job)

    def problems(self, _job, run, long):
        """Returns the errors in the steps that were trained."""
        try:
            with REFERENCE:
                self.test.check_complete(run, iterations=self.steps(long))
        except AssertionError as error:
            return [f"training: {error}"]
        stops = {attempt["last_step"] for attempt in run["attempts"] if attempt["exit_code"] in (0, EXIT_SAVED)}
        found = [f"attempt {attempt['attempt']} went on from step {attempt['resumed_step']}" for attempt in run["attempts"]
                 if (attempt["resumed_step"] or 0) % self.save_interval and attempt["resumed_step"] not in stops]
        repeated = run["steps_repeated"]
        if repeated > training.REPEATED_MOST * (len(run["attempts"]) - 1):
            found.append(f"{repeated} steps were trained again")
        return found + training.lost_saves(run)


class Foreign:
    """foreign_trainer.c, with its own checkpoint and log. Its state after each step is known beforehand."""

    name = "foreign"
    save_interval = 10
    step_ms = 50

    def __init__(self, cluster):
        self.cluster = cluster

    def prepare(self):
        pass

    def steps(self, long):
        return 180 if long else 100

    def submit(self, long, layout, *options):
        program = harness.BUILD / "tests" / "foreign_trainer"
        return self.cluster.sbatch(
            f"wlb run -- {program} {self.steps(long)} {self.step_ms} {self.save_interval} checkpoint-$SLURM_JOB_ID "
            "log-$SLURM_JOB_ID", f"--wlb-layout={layout}", f"--ntasks-per-node={RANKS_PER_NODE}", "--no-kill", "--requeue",
            "--open-mode=append", *options, nodes=NODES)

    def log(self, job):
        """(process, step, state) of each line, those of all attempts one after another."""
        path = self.cluster.work / f"log-{job}"
        lines = path.read_text(encoding="ascii").split("\n")[:-1] if path.exists() else []
        return [tuple(map(int, line.split())) for line in lines]

    def step_done(self, job):
        log = self.log(job)
        return log[-1][1] if log else 0

    def problems(self, job, run, long):
        found, log, states = [], self.log(job), expected_states(self.steps(long))
        if (self.cluster.work / f"checkpoint-{job}").read_text(encoding="ascii") != f"{len(states) - 1} {states[-1]}\n":
            found.append("training: the last checkpoint is not that of a run without faults")
        if any(states[step] != state for _, step, state in log):
            found.append("training: a step did not enter the state exactly once")
        starts = [line for before, line in zip([(0, 0, 0), *log], log) if line[0] != before[0]]
        if any(after[1] != before[1] + 1 for before, after in zip(log, log[1:]) if after[0] == before[0]):
            found.append("training: an attempt left a step out")
        if any((start[1] - 1) % self.save_interval for start in starts):
            found.append("training: an attempt did not go on from a checkpoint")
        if len({start[0] for start in starts}) != len(starts):
            found.append("training: two attempts trained at the same time")
        if len(starts) > len(run["attempts"]):
            found.append(f"{len(starts)} attempts trained, {len(run['attempts'])} are recorded")
        return found


def expected_states(steps):
    """foreign_trainer.c's state after each step."""
    states = [0]
    for step in range(1, steps + 1):
        total = sum(mix(step * 64 + item) for item in range(64)) & MASK
        states.append(mix(states[-1] ^ total))
    return states


def mix(x):
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


TRAINERS = {trainer.name: trainer for trainer in (Ours, Foreign)}
