"""The trainers of tests/trainers/run, and a run of one of them on a private cluster: as its users start it, by its file of examples/."""
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys

import harness
from harness import wait_for
from inject import program, read_environment, read_parent

HERE = pathlib.Path(__file__).resolve().parent
NODES = 3
WAIT_S = 120  # for a step, beside other tests
POLL_S = 0.05


@dataclasses.dataclass(frozen=True)
class Trainer:
    name: str
    title: str
    step: str  # matches what it prints of a step: the number, and the loss where it prints that
    tasks_per_node: int
    ranks_per_task: int = 1
    losses: str = "none"  # that `wlb run` reads in what it prints: "none", "each", or "some", of lines without the number of a step

    def ranks(self, nodes):
        return nodes * self.tasks_per_node * self.ranks_per_task

    @property
    def has_launcher(self):
        return self.ranks_per_task > 1


PRINTED = r"^step (\d+) loss ([\d.]+)$"
MPI_STEP = r"^\d+ (?P<step>\d+) \d+$"
TRAINERS = {trainer.name: trainer for trainer in (
    Trainer("pytorch", "PyTorch DDP", PRINTED, 1),
    Trainer("torchrun", "torchrun", PRINTED, 1, 2),
    Trainer("accelerate", "Accelerate", PRINTED, 1, 2),
    # An epoch in which it goes on from a checkpoint is called "Training", and its length "?".
    Trainer("lightning", "Lightning", r"(?:Epoch 0|Training):[^\r\n|]*\|[^\r\n|]*\| (\d+)/[\d?]+ \[[^\]\r\n]*\bloss=([\d.]+)", 1, losses="some"),
    Trainer("megatron", "megatron-core 0.16.1", r" iteration +(\d+)/ .* lm loss: ([\dE.+-]+) ", 1, losses="each"),
    Trainer("mpi", "MPI program", MPI_STEP, 2))}


def find_venv():
    """Its folder; ends the program with 77 where there is none."""
    made = subprocess.run([HERE / "venv"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        sys.exit(made.returncode)
    return pathlib.Path(made.stdout.strip())


def environment(cluster, venv, **more):
    """Of a job. A rank has one thread, since all nodes share the processors."""
    return {"PATH": f"{venv}/bin:{cluster.env['PATH']}", "OMP_NUM_THREADS": "1", "HF_HOME": f"{cluster.work}/hugging-face", **more}


def copy_examples(cluster, name):
    """A new folder for a run, with examples/ in it; returns it."""
    folder = cluster.work / f"{name}-{len(list(cluster.work.iterdir()))}"
    shutil.copytree(harness.ROOT / "examples", folder / "examples")
    return folder


def printed(trainer, text):
    """(step, loss) of what it has printed; the loss is nan where it prints none."""
    found = []
    for match in re.finditer(trainer.step, text, re.MULTILINE):
        values = [*match.groups(), "nan"]
        if found and found[-1][0] == int(values[0]):  # a progress bar is printed again
            found.pop()
        found.append((int(values[0]), float(values[1])))
    return found


class Run:
    """A job of NODES nodes. fault: "", "loop" or "error", in rank `rank` at step `step` of the first attempt."""

    pace_ms = 100

    def __init__(self, cluster, venv, trainer, steps, fault="", rank=0, step=0):
        self.cluster, self.trainer, self.steps = cluster, trainer, steps
        self.folder = copy_examples(cluster, trainer.name)
        if trainer.name == "mpi":
            program_path = harness.BUILD / "tests" / "foreign_trainer"
            words = f" {fault} {rank} {step}" if fault else ""
            command = f"wlb run --step-pattern='{MPI_STEP}' -- {program_path} {steps} {self.pace_ms} 10 checkpoint /dev/stdout{words}"
            self.job = cluster.sbatch(command, *self.options(), "--wlb-layout=auto", "--no-kill", "--requeue", "--open-mode=append",
                                      nodes=NODES, cwd=self.folder)
            return
        path = self.folder / "examples" / f"{trainer.name}.sbatch"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(" examples/train_", f" {HERE}/faulty.py examples/train_"), encoding="utf-8")
        more = {"STEPS": str(steps), "TEST_PACE_S": str(self.pace_ms / 1000), "TEST_FAULT": fault, "TEST_FAULT_RANK": str(rank),
                "TEST_FAULT_STEP": str(step)}
        self.job = int(cluster.run("sbatch", "--parsable", f"--nodes={NODES}", *self.options(), path, cwd=self.folder,
                                   env=environment(cluster, venv, **more)).stdout)

    def options(self):
        return f"--ntasks-per-node={self.trainer.tasks_per_node}", f"--output={self.cluster.work}/%j.out"

    def printed(self, attempt):
        """(step, loss) of what the trainer has printed in that attempt."""
        parts = re.split(r"^wlb: attempt (\d+) on .*$", self.cluster.output(self.job), flags=re.MULTILINE)
        texts = [text for number, text in zip(parts[1::2], parts[2::2]) if int(number) == attempt]
        return printed(self.trainer, "".join(texts))

    def wait_recorded(self, step):
        """Waits until that step is in the record: srun passes whole lines on, and of a progress bar some KiB at a time."""
        wait_for(f"step {step} of job {self.job} in the record", lambda: (self.show().get("last_step") or 0) >= step, WAIT_S)

    def wait_step(self, step, attempt=1):
        """Waits until that step of the attempt, or a later one, is printed."""

        def is_printed():
            printed = self.printed(attempt)
            if not printed and re.search(r"^wlb: run .*(failed|abandoned)", self.cluster.output(self.job), re.MULTILINE):
                raise harness.Failed(f"job {self.job} failed:\n{self.cluster.output(self.job)[-2000:]}")
            return printed and printed[-1][0] >= step

        wait_for(f"step {step} in attempt {attempt} of job {self.job}", is_printed, WAIT_S, POLL_S)

    def wait_end(self):
        state = self.cluster.wait_job(self.job, WAIT_S)
        if state != "COMPLETED":
            raise harness.Failed(f"job {self.job} is {state}:\n{self.cluster.output(self.job)[-2000:]}")

    def cancel(self):
        self.cluster.run("scancel", self.job, check=False)
        self.cluster.wait_job(self.job, WAIT_S)

    def show(self, *options):
        """`wlb show RUN --json`; {} where that fails, as before wlbd knows the run."""
        shown = self.cluster.run("wlb", "show", self.job, "--json", *options, check=False)
        return json.loads(shown.stdout) if shown.returncode == 0 else {}

    def show_text(self):
        return self.cluster.run("wlb", "show", self.job, check=False).stdout

    def processes(self, attempt):
        """pid -> environment of the job's processes in that attempt."""
        found = {pid: read_environment(pid) for pid in self.cluster.processes()}
        wanted = {"SLURM_JOB_ID": str(self.job), "WLB_ATTEMPT": str(attempt)}
        return {pid: environ for pid, environ in found.items() if environ.items() >= wanted.items()}

    def tasks(self, attempt):
        """RANK -> pid of what Slurm has started: the ranks, or their launchers, each with the number of its node."""
        return {int(environ["RANK"]): pid for pid, environ in self.processes(attempt).items()
                if "PMIX_RANK" in environ and "RANK" in environ and is_task(pid)}

    def ranks(self, attempt):
        """RANK -> pid."""
        if not self.trainer.has_launcher:
            return self.tasks(attempt)
        found = {}  # what a rank starts has the same variables, and a higher pid
        for pid, environ in sorted(self.processes(attempt).items()):
            if "TORCHELASTIC_RUN_ID" in environ and not is_task(pid):
                found.setdefault(int(environ["RANK"]), pid)
        return found


def is_task(pid):
    try:
        return program(read_parent(pid)) == "slurmstepd"
    except OSError:
        return False
