"""A run of wlb-worker that saves after each step and is killed again and again, and what must hold of each start after a kill.

Without near checkpoints it saves after each step; with them it keeps one on its nodes as often as it can, and saves less often."""
import collections
import json
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from bench_documents import skewed_documents, write_dataset  # noqa: E402

MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 128}
FOREVER = 1000000000  # steps
TOLERANCE = 1e-9
DURABLE = re.compile(r"^step (\d+) \| (near )?checkpoint ")
RESUMED = re.compile(r"^resuming after step (\d+) from (the copies on the nodes)?")
BECOMES = re.compile(r"^the near checkpoint of step \d+ becomes ")
FAR_INTERVAL = 24  # steps between checkpoints beside near ones, which take some six steps each
SHM = pathlib.Path("/dev/shm")
SOURCES = ("near", "near, in another layout", "far")  # of what a start goes on from


def make_input(folder):
    (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")
    if not (folder / "corpus.idx").exists():
        write_dataset(folder / "corpus", skewed_documents(2000, 64))


def words(folder, metrics, steps=FOREVER, near=None):
    """Arguments of `wlb-worker train`. Its checkpoints are in folder/ck, and near ones in the folder `near` of each node."""
    local = ["--save-local", near, "--save-local-interval", "1"] if near else []
    return ["--model", folder / "model.json", "--data-path", folder / "corpus", "--seq-length", "96", "--global-batch-size", "8", "--lr",
            "1e-3", "--lr-decay-style", "constant", "--seed", "7", "--threads", "1", "--log-interval", "1", "--dtype", "float64",
            "--train-iters", str(steps), "--save", folder / "ck", "--load", folder / "ck", "--save-interval",
            str(FAR_INTERVAL if near else 1), "--keep", "3", "--metrics-file", metrics, *local]


def lines_of(file):
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []


def losses_in(metrics):
    """(step, loss) of each line, also of steps that were done again."""
    found = []
    for line in lines_of(metrics):
        try:
            step = json.loads(line)
        except ValueError:  # cut by the kill
            continue
        found.append((step["step"], step["loss"]))
    return found


def near_folders(job, node="*"):
    """What a job has in the memory of a node: its folder in /dev/shm or the link to it, and the folder that this leads to."""
    found = list(SHM.glob(f"wlb-{job}-{node}"))
    return found + [path.readlink() for path in found if path.is_symlink()]


def lose_near(job, node="*"):
    """What is in the memory of a node, as if the node were lost."""
    for path in near_folders(job, node):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def left_behind(folder, job=None):
    return sorted(name for name in os.listdir(folder / "ck") if not name.startswith("step_")) + (near_folders(job) if job else [])


class History:
    """What all starts so far have said to be durable, and the loss of each step. `state`: the file that keeps it, or None."""

    def __init__(self, state):
        self.file, self.done, self.durable, self.losses = state, 0, 0, {}
        self.near, self.near_nodes = 0, []  # the newest near checkpoint, and the nodes each of which has all of it
        self.pending = []  # kills since the last start that has said from what it goes on
        self.kills = collections.defaultdict(list)  # of each kind: steps done again, place in SOURCES, seconds until the next step or 0
        if state and state.exists():
            kept = json.loads(state.read_text(encoding="utf-8"))
            self.losses = {int(step): loss for step, loss in kept.pop("losses").items()}
            self.kills.update(kept.pop("kills"))
            vars(self).update(kept)

    def count(self, resumed, repeated, source, took_s=0.0):
        """Counts the kills before a start, if it has said from what it goes on."""
        for kind in self.pending if resumed else ():
            self.kills[kind].append((repeated, SOURCES.index(source), took_s))
        self.pending = [] if resumed else self.pending

    def keep(self):
        """Ends a trial."""
        self.done += 1
        if self.file:
            temporary = self.file.with_suffix(".new")
            recent = {step: loss for step, loss in self.losses.items() if step > self.durable - 100}
            kept = {name: value for name, value in vars(self).items() if name != "file"}
            temporary.write_text(json.dumps({**kept, "losses": recent}), encoding="utf-8")
            temporary.replace(self.file)

    def lose(self, nodes):
        """Of the memory of these nodes."""
        self.near_nodes = [node for node in self.near_nodes if node not in nodes]
        self.near = self.near if self.near_nodes else 0

    def expected(self, nodes):
        """The newest step that a start on these nodes must not do again."""
        return max(self.durable, self.near if set(nodes) & set(self.near_nodes) else 0)

    def add(self, output, losses, nodes=()):
        """Checks what one or several starts in turn on these nodes have printed and recorded, and adds it. Returns the steps after which
        they went on, how many steps they did again, and what the last went on from; raises ValueError where one is not as it must be."""
        resumed, source, first, becomes = [], "far", self.expected(nodes), False
        for line in output:
            if BECOMES.match(line):
                becomes = True
            elif match := RESUMED.match(line):
                resumed.append(int(match[1]))
                source, becomes = "near" if match[2] else "near, in another layout" if becomes else "far", False
                if resumed[-1] < self.expected(nodes):
                    raise ValueError(f"step {self.expected(nodes)} was durable, and it resumed after {resumed[-1]}")
                self.durable = max(self.durable, 0 if match[2] else resumed[-1])
            elif (match := DURABLE.match(line)) and match[2]:
                self.near, self.near_nodes = int(match[1]), list(nodes)
            elif match:
                self.durable = max(self.durable, int(match[1]))
        if first > 0 and losses and not resumed:
            raise ValueError(f"step {first} was durable, and it began anew")
        return resumed, self.add_losses(losses), source

    def add_losses(self, losses):
        """Returns how many of these steps were done again."""
        repeated = 0
        for step, loss in losses:
            repeated += step in self.losses
            before = self.losses.setdefault(step, loss)
            if abs(loss - before) > TOLERANCE * abs(before):
                raise ValueError(f"step {step} has the loss {loss}, and had {before}")
        return repeated

    def table(self):
        """Lines of Markdown: of each kind of kill what the starts after it went on from, and the most steps that one did again."""
        yield "| killed | kills | went on from a near checkpoint: same layout / another | from a checkpoint | steps again, at most |"
        yield "|---|---|---|---|---|"
        for kind, kills in sorted(self.kills.items()):
            repeated, sources, _ = zip(*kills)
            same, other, far = (sources.count(i) for i in range(len(SOURCES)))
            yield f"| {kind} | {len(kills)} | {same} / {other} | {far} | {max(repeated)} |"
