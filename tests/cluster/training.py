"""Runs training jobs for tests: a small corpus and model, the job, and the losses of a run without faults.

Losses are compared in float64: a run on other ranks, or one that was broken and brought back, differs from a single
process by the order of sums only.
"""
import contextlib
import functools
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from harness import BUILD, ClusterTest, wait_for

ITERATIONS = 72
SAVE_INTERVAL = 12
REPEATED_MOST = 2 * SAVE_INTERVAL  # by an attempt: one save may be in flight, and the next one waits for it
SEQ_LENGTH = 128
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}  # relative

MODEL = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 256,
         "tie_word_embeddings": True}
LARGER = {**MODEL, "hidden_size": 64, "intermediate_size": 160}  # whose gradients take a slow link longer than the rest of a step


def arguments(dtype="float64", iterations=ITERATIONS, seq_length=SEQ_LENGTH):
    """Returns the arguments of `wlb-worker train`, except for its folders. The learning rate is one at which training is
    stable: at 3e-3 this model multiplies the last bit of a sum by 10 every few steps."""
    return ["train", "--model", "model.json", "--data-path", "corpus", "--seq-length", str(seq_length),
            "--global-batch-size", "16", "--train-iters", str(iterations), "--lr", "1e-3", "--min-lr", "1e-4",
            "--lr-warmup-iters", str(iterations // 12), "--seed", "1", "--dtype", dtype]


def make_input(folder, model=None):
    """Makes a dataset from the licences that every Debian system has, and a model's config."""
    subprocess.run([BUILD / "bin/wlb-data", "build", "--input", "/usr/share/common-licenses", "--output-prefix",
                    folder / "corpus"], check=True, capture_output=True, timeout=60)
    (folder / "model.json").write_text(json.dumps(model or MODEL), encoding="utf-8")


@functools.cache
def single_process_losses(dtype="float64", iterations=ITERATIONS, seq_length=SEQ_LENGTH, is_larger=False):
    """step -> loss of the same training on one process, without Slurm; made once for all tests that share the folder WLB_TEST_SHARED."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wlb-test-"))
    try:
        made = folder / "m.jsonl"
        shared = pathlib.Path(os.environ.get("WLB_TEST_SHARED", folder)) / f"losses-{dtype}-{iterations}-{seq_length}-{is_larger}.jsonl"
        if not shared.exists():
            make_input(folder, LARGER if is_larger else MODEL)
            subprocess.run([BUILD / "bin/wlb-worker", *arguments(dtype, iterations, seq_length), "--threads", "1",
                            "--metrics-file", made.name], cwd=folder, check=True,
                           capture_output=True, timeout=240)
            shutil.copy(made, f"{shared}.{os.getpid()}")
            os.replace(f"{shared}.{os.getpid()}", shared)  # whole at once
        lines = shared.read_text(encoding="utf-8").splitlines()
        return {record["step"]: record["loss"] for record in map(json.loads, lines)}
    finally:
        shutil.rmtree(folder)


def stat_of(pid):
    """The fields of proc(5) from the state on."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()


def state_of(pid):
    return stat_of(pid)[0]


def lost_saves(run):
    """Returns a sentence for each attempt that trained and did not go on from the newest checkpoint, or a newer one, that was recorded as
    durable before."""
    found = []
    for attempt in run["attempts"]:
        durable = max((save["step"] for save in run["checkpoints"] if save["attempt"] < attempt["attempt"]), default=0)
        begun = attempt["resumed_step"] or 0
        if attempt["last_step"] and begun < durable:
            found.append(f"attempt {attempt['attempt']} went on from step {begun}, and step {durable} was saved")
    return found


class TrainingTest(ClusterTest):
    program = "wlb-worker"  # a word of the command lines of the ranks
    seq_length = SEQ_LENGTH
    model_config = MODEL

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_input(cls.cluster.work, cls.model_config)

    def submit(self, *options, nodes=4, tasks_per_node=2, layout="auto", dtype="float64", iterations=ITERATIONS, before=""):
        """Submits a training job as a user would; returns its id, which is its run's too."""
        words = " ".join(arguments(dtype, iterations, self.seq_length))
        return self.cluster.sbatch(
            f"{before}\nwlb run -- wlb-worker {words} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID "
            f"--save-interval {SAVE_INTERVAL} --metrics-file m-$SLURM_JOB_ID.jsonl --log-interval 1",
            f"--wlb-layout={layout}", f"--ntasks-per-node={tasks_per_node}", "--no-kill", "--requeue", "--open-mode=append",
            *options, nodes=nodes)

    def step_done(self, job):
        """Returns the last step in the metrics file, 0 before the first; asks no server."""
        path = self.cluster.work / f"m-{job}.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return json.loads(lines[-1])["step"] if lines else 0

    def wait_step(self, job, step, timeout_s=90):
        looks = itertools.count(1)

        def reached():
            if self.step_done(job) >= step:
                return True
            state = self.cluster.job(job)["JobState"] if next(looks) % 10 == 0 else "RUNNING"  # each half second
            if state not in ("PENDING", "CONFIGURING", "RUNNING"):
                self.fail(f"job {job} is {state} before step {step}:\n{self.cluster.output(job)}")
            return False

        wait_for(f"step {step} of job {job}", reached, timeout_s, 0.05)

    def rank_pid(self, rank):
        """Returns the pid of the worker that is this rank of the job's step, and not of a child that it has just forked."""
        found = set()
        for pid in self.cluster.processes(self.program):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/environ", "rb") as file:
                if f"\0PMIX_RANK={rank}\0".encode() in b"\0" + file.read():
                    found.add(pid)
        for pid in found:
            if int(stat_of(pid)[1]) not in found:
                return pid
        self.fail(f"no process of rank {rank}")

    def stop_in_computation(self, rank):
        """Stops the rank at a moment when it waits for no other; returns its pid."""
        program = self.cluster.build / "libexec/wlb/wlb-stacks"
        pid = self.rank_pid(rank)

        def stopped():
            os.kill(pid, signal.SIGSTOP)
            wait_for("the stop", lambda: state_of(pid) == "T", 5, 0.01)
            line = subprocess.run([program, str(pid)], capture_output=True, text=True, timeout=20, check=True).stdout
            frames = json.loads(line)["threads"][0]["frames"]
            self.assertEqual(state_of(pid), "T")
            self.assertTrue(frames, line)
            if not any("(libmpi" in frame or "(libopen-pal" in frame or "pthread_cond" in frame for frame in frames):
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        wait_for(f"rank {rank} in computation", stopped, 60, 0.05)
        return pid

    def finish(self, job, timeout_s=240):
        """Waits until the job has completed; returns `wlb show --json` with every step."""
        self.assertEqual(self.cluster.wait_job(job, timeout_s), "COMPLETED", self.cluster.output(job))
        return self.cluster.show(job)

    def check_complete(self, run, dtype="float64", iterations=ITERATIONS):
        """Checks that the run is complete, and that every step is recorded once, with the loss that it has without faults."""
        self.assertEqual(run["state"], "complete")
        steps = self.cluster.sql("SELECT step, loss FROM steps JOIN runs ON runs.id = run_id "
                                 f"WHERE runs.name = '{run['run_id']}' ORDER BY step")
        self.assertEqual([int(step) for step, _ in steps], list(range(1, iterations + 1)))
        expected = single_process_losses(dtype, iterations, self.seq_length, self.model_config == LARGER)
        worst = max(abs(float(loss) - expected[int(step)]) / expected[int(step)] for step, loss in steps)
        self.say(f"losses differ by {worst:.1e} at most")
        self.assertLess(worst, TOLERANCE[dtype])
        self.assertEqual([step["step"] for step in run["steps"]], list(range(1, iterations + 1)))
        self.assertLess(run["last_loss"], run["first_loss"])

    def say(self, text):
        print(text, end=" ")

    def check_repeats(self, run, attempts):
        """Checks the number of attempts, and that only steps after the last checkpoint were repeated."""
        self.assertEqual([a["attempt"] for a in run["attempts"]], list(range(1, attempts + 1)))
        for attempt in run["attempts"][1:]:
            self.assertEqual(attempt["resumed_step"] % SAVE_INTERVAL, 0)
        self.assertEqual(lost_saves(run), [])
        self.assertLess(run["steps_repeated"], REPEATED_MOST * (attempts - 1) + 1)
