"""Runs training whose ranks are made slow, are stopped, or wait for their files while it runs: on the timed device
(tests/timed), which many ranks share, or on the CPU with a core for each rank."""
import contextlib
import json
import os
import re
import signal
import threading
import time

from harness import BUILD, ROOT, wait_for

DATASET = "even"
PARTIAL = ".partial/"  # of the path of a checkpoint that is being written
RANKS_PER_NODE = 4
LONG = 15  # times: a rank that takes so much longer is in computation, and the others wait for it
CYCLE_S = 0.1
STOPPED_IN = re.compile(r"which is (.*?), has been stopped by a signal")

MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 512, "max_position_embeddings": 256}

CORE_MODEL = MODEL | {"hidden_size": 256, "intermediate_size": 704}

# The control folder of a job has the files by which its ranks are controlled.
TIMED_WORKER = f"""#!/bin/bash
control=control-$SLURM_JOB_ID
export WLB_TIMED_MACHINE=machine.json WLB_TIMED_FACTOR=$control/factor-$PMIX_RANK SLOW_DISK_HOLD=$control/hold-$PMIX_RANK
exec {BUILD}/tests/wlb-worker-timed "$@"
"""
CORE_WORKER = """#!/bin/bash
exec taskset -c $((PMIX_RANK % $(nproc))) wlb-worker "$@"
"""


def write_program(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def make_input(cluster):
    """Makes what the runs of this file read in the cluster's work folder."""
    machine = json.loads((ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))
    (cluster.work / "machine.json").write_text(json.dumps(machine | {"peak_flops": 1e10}), encoding="utf-8")
    lines = [json.dumps({"text": "a" * 255})] * 40  # with its end a window each, so that all ranks have equal work
    (cluster.work / "even.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    cluster.run("wlb-data", "build", "--input", "even.jsonl", "--output-prefix", DATASET)
    for name, model in (("timed", MODEL), ("core", CORE_MODEL)):
        (cluster.work / f"{name}.json").write_text(json.dumps(model), encoding="utf-8")
    write_program(cluster.work / "timed-worker", TIMED_WORKER)
    write_program(cluster.work / "core-worker", CORE_WORKER)


class Run:
    """A job that trains, its steps and its verdicts. `command` is what `wlb run` starts; it writes its metrics to
    m-JOB.jsonl."""

    def __init__(self, cluster, command, *options, nodes, before=""):
        self.cluster = cluster
        self.job = cluster.sbatch(f"{before}\nwlb run -- {command} --metrics-file m-$SLURM_JOB_ID.jsonl", "--no-kill", *options,
                                  nodes=nodes)
        self.pids = {}

    def steps(self, count):
        """The metrics of the newest steps, at most `count`."""
        path = self.cluster.work / f"m-{self.job}.jsonl"
        if not path.exists():
            return []
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096 * (count + 1)))
            lines = file.read().split(b"\n")
        whole = lines[:-1] if len(lines) <= count + 1 else lines[-count - 1:-1]
        return [json.loads(line) for line in whole if line.startswith(b"{")]

    def step(self):
        """The last step that has ended, 0 before the first."""
        newest = self.steps(1)
        return newest[-1]["step"] if newest else 0

    def wait_step(self, step, timeout_s=120):
        def reached():
            if self.step() >= step:
                return True
            state = self.cluster.job(self.job)["JobState"]
            if state not in ("PENDING", "CONFIGURING", "RUNNING"):
                raise AssertionError(f"job {self.job} is {state} before step {step}:\n{self.cluster.output(self.job)}")
            return False

        wait_for(f"step {step} of job {self.job}", reached, timeout_s)

    def wait_steps(self, count):
        """Waits until so many more steps have ended."""
        self.wait_step(self.step() + count)

    def wait_still(self, seconds=0.8, timeout_s=30):
        """Waits until no step has ended for so long; returns the last one."""
        end = time.monotonic() + timeout_s
        step, since = self.step(), time.monotonic()
        while time.monotonic() - since < seconds:
            if time.monotonic() > end:
                raise AssertionError(f"steps of job {self.job} go on")
            time.sleep(0.05)
            if self.step() != step:
                step, since = self.step(), time.monotonic()
        return step

    def verdicts(self):
        """Those that were told so far, the oldest first; times are seconds since 1970, None: not yet."""
        rows = self.cluster.sql(
            "SELECT id, kind, state, array_to_json(ranks), extract(epoch FROM found_at), extract(epoch FROM confirmed_at), "
            "extract(epoch FROM over_at), evidence FROM verdicts WHERE run_id = "
            f"(SELECT id FROM runs WHERE name = '{self.job}') ORDER BY id")
        return [{"id": int(row[0]), "kind": row[1], "state": row[2], "ranks": json.loads(row[3]), "evidence": row[7]} |
                {name: float(text) if text else None for name, text in zip(("found", "confirmed", "over"), row[4:7])}
                for row in rows]

    def pid(self, rank):
        """The process of the rank."""
        if rank not in self.pids:
            marks = (f"\0SLURM_JOB_ID={self.job}\0".encode(), f"\0PMIX_RANK={rank}\0".encode())
            for pid in self.cluster.processes("wlb-worker"):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    environ = b"\0" + file.read()
                if all(mark in environ for mark in marks):
                    self.pids[rank] = pid
        return self.pids[rank]

    def stop(self, rank):
        """Stops it by a signal; returns when, in seconds since 1970."""
        os.kill(self.pid(rank), signal.SIGSTOP)
        return time.time()

    def go_on(self, rank):
        os.kill(self.pid(rank), signal.SIGCONT)

    @contextlib.contextmanager
    def half_speed(self, rank):
        """The rank is stopped and continued in turns, for equal times."""
        pid, end = self.pid(rank), threading.Event()

        def cycle():
            while not end.wait(CYCLE_S / 2):
                os.kill(pid, signal.SIGSTOP)
                end.wait(CYCLE_S / 2)
                os.kill(pid, signal.SIGCONT)

        thread = threading.Thread(target=cycle)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def cancel(self):
        self.cluster.run("scancel", str(self.job), check=False)
        self.cluster.wait_job(self.job, 60)


class TimedRun(Run):
    """Where it is not given otherwise a rank takes `scale` times as long for each operation as on the machine."""

    def __init__(self, cluster, layout, ranks, scale, *options, iterations=100000, save_interval=0):
        replicas = int(layout.rsplit("dp=", 1)[1])  # with two micro-batches each
        save = f"--save ck-$SLURM_JOB_ID --save-interval {save_interval}" if save_interval else ""
        super().__init__(
            cluster, "./timed-worker train --model timed.json --data-path even --seq-length 256 "
            f"--global-batch-size {2 * replicas} --lr 1e-3 --threads 1 --log-interval 100 --train-iters {iterations} --machine machine.json {save}",
            f"--wlb-layout={layout}", f"--ntasks-per-node={RANKS_PER_NODE}", *options, nodes=ranks // RANKS_PER_NODE,
            before=f"mkdir control-$SLURM_JOB_ID; export WLB_TIMED_SCALE={scale}")
        self.ranks, self.base = ranks, 1.0

    def write(self, name, text):
        """Writes a file of the control folder, which ranks read whole or not at all."""
        folder = self.cluster.work / f"control-{self.job}"
        (folder / f"{name}.new").write_text(text + "\n", encoding="utf-8")
        os.replace(folder / f"{name}.new", folder / name)

    def slow(self, rank, factor):
        """From the next step on the rank takes that much longer; 1: as long as the others."""
        self.write(f"factor-{rank}", f"{self.base * factor:.6g}")

    def make_ranks_compute(self, seconds):
        """Changes the speed of all ranks alike, so that the rank with most to compute in a step computes for so long."""
        self.base *= seconds / max(self.steps(1)[-1]["rank_compute_s"])
        for rank in range(self.ranks):
            self.slow(rank, 1.0)

    def hold(self, rank, path):
        """Calls of the rank on files whose path holds the text wait until they are released."""
        self.write(f"hold-{rank}", path)

    def release(self, rank):
        (self.cluster.work / f"control-{self.job}" / f"hold-{rank}").unlink()

    @contextlib.contextmanager
    def in_computation(self, rank):
        """A step of the rank takes long."""
        self.slow(rank, LONG)
        self.wait_still(0.5)
        yield
        self.slow(rank, 1.0)

    @contextlib.contextmanager
    def in_call(self, rank):
        """The rank waits for another, whose step takes long."""
        with self.in_computation((rank + 1) % self.ranks):
            yield

    @contextlib.contextmanager
    def in_loader(self, *ranks):
        for rank in ranks:
            self.hold(rank, f"{DATASET}.bin")
        self.wait_still()
        yield
        for rank in ranks:
            self.release(rank)

    @contextlib.contextmanager
    def in_checkpoint(self, *_):
        """All ranks wait until rank 0 has written its part, and it waits for its files."""
        self.hold(0, PARTIAL)
        self.wait_still()
        yield
        self.release(0)


class CoreRun(Run):
    """wlb-worker on two nodes with a rank each, and a core for each rank. A step takes about a quarter of a second."""

    ranks = 2

    def __init__(self, cluster, *options):
        super().__init__(
            cluster, "./core-worker train --model core.json --data-path even --seq-length 256 --global-batch-size 12 --lr 1e-4 "
            "--threads 1 --log-interval 100 --train-iters 100000", "--wlb-layout=dp=2", "--ntasks-per-node=1", *options, nodes=2)
