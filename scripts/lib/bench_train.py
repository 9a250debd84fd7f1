"""Runs wlb-worker and wlb-calibrate on this machine, and counts what other programs took of its processors meanwhile."""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")

# One rank a core and shared memory, as ranks of a job on one node have them.
ONE_NODE = {"WLB_TEST_BTL": "self,vader", "WLB_TEST_SINGLE_COPY": "cma", "OMPI_MCA_hwloc_base_binding_policy": "core"}


def launched(ranks, command):
    return [ROOT / "tests/unit/worker/mpirun", str(ranks), *command] if ranks > 1 else [*command]


def on_one_core(command):
    """The cores of a virtual machine may differ in speed, and a rank stays on one."""
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]


def busy_s():
    """Processor time of all programs, the kernel's and what the hypervisor took included."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def own_s():
    return sum(getattr(resource.getrusage(who), field) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
               for field in ("ru_utime", "ru_stime"))


class Run:
    """A program and its ranks, run to their end; ends the bench where they fail."""

    def __init__(self, command, folder, output=subprocess.DEVNULL, environment=None):
        began_s, busy, own = time.monotonic(), busy_s(), own_s()
        process = subprocess.Popen(command, cwd=folder, stdout=output,
                                   env={**os.environ, **(environment or {}), "OMP_WAIT_POLICY": "passive", "WLB_TEST_SPIN": "1"})
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except SystemExit:  # by a signal: mpirun ends its ranks
            process.terminate()
            process.wait()
            raise
        if status != 0:
            sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {' '.join(map(str, command))} ended with "
                     f"{os.waitstatus_to_exitcode(status)}: it says why above")
        self.peak_bytes = usage.ru_maxrss * 1024
        elapsed_s = time.monotonic() - began_s
        self.others = max(0.0, busy_s() - busy - (own_s() - own)) / (elapsed_s * os.cpu_count())


def train(build, folder, ranks, steps, words, environment=None, one_core=False, prefix=(), program="bin/wlb-worker"):
    """Metrics of the steps, and the run; `prefix` are the words of a program that starts the ranks."""
    metrics = folder / "metrics"
    metrics.unlink(missing_ok=True)
    command = [build / program, "train", "--train-iters", str(steps), "--lr", "1e-4", "--log-interval", "1000",
               *words, "--metrics-file", metrics]
    command = [*prefix, *launched(ranks, command)]
    run = Run(on_one_core(command) if one_core else command, folder, environment=environment)
    return [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()], run


class Load:
    """Repeats runs during which other programs took too much of the processors, and counts what they took."""

    DISTURBED = 0.03  # a run is repeated where other programs took a larger share of the processors,

    def __init__(self, repeated_most):
        self.shares, self.repeated, self.repeated_most = [], 0, repeated_most  # but no more than so many

    def measure(self, once):
        """Metrics of the steps of a run that counts; `once` is a function like train()."""
        steps, run = once()
        while run.others > self.DISTURBED and self.repeated < self.repeated_most:
            self.repeated += 1
            steps, run = once()
        self.shares.append(run.others)
        return steps

    def sentence(self):
        return (f"A run during which other programs took more than {self.DISTURBED:.0%} of the processors was repeated\n"
                f"({self.repeated} of {len(self.shares) + self.repeated}; at most {self.repeated_most}); in those that "
                f"count others took {statistics.mean(self.shares):.1%} in the mean and {max(self.shares):.1%} at worst.")


def calibrate(build, folder, ranks, seconds, head_dim):
    """Measures `ranks` ranks of one thread each; returns the path of the machine file, and what was printed."""
    machine, printed = folder / "machine.json", folder / "calibrate.txt"
    command = [build / "bin/wlb-calibrate", "--local", "--threads", "1", "--seconds", str(seconds), "--head-dim",
               str(head_dim), "--output", machine.name]
    with open(printed, "w", encoding="utf-8") as output:
        Run(launched(ranks, command), folder, output, ONE_NODE)
    return machine, printed.read_text(encoding="utf-8")
