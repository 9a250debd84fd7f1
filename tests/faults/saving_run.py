"""A run of wlb-worker that saves after each step and is killed again and again, and what must hold of each start after a kill."""
import collections
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from bench_documents import skewed_documents, write_dataset  # noqa: E402

MODEL = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 128}
FOREVER = 1000000000  # steps
TOLERANCE = 1e-9
DURABLE = re.compile(r"^step (\d+) \| checkpoint ")
RESUMED = re.compile(r"^resuming after step (\d+) from ")


def make_input(folder):
    (folder / "model.json").write_text(json.dumps(MODEL), encoding="utf-8")
    if not (folder / "corpus.idx").exists():
        write_dataset(folder / "corpus", skewed_documents(2000, 64))


def words(folder, metrics, steps=FOREVER):
    """Arguments of `wlb-worker train`. Its checkpoints are in folder/ck."""
    return ["--model", folder / "model.json", "--data-path", folder / "corpus", "--seq-length", "96", "--global-batch-size", "8", "--lr",
            "1e-3", "--lr-decay-style", "constant", "--seed", "7", "--threads", "1", "--log-interval", "1", "--dtype", "float64",
            "--train-iters", str(steps), "--save", folder / "ck", "--load", folder / "ck", "--save-interval", "1", "--keep", "3",
            "--metrics-file", metrics]


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


def left_behind(folder):
    return sorted(name for name in os.listdir(folder / "ck") if not name.startswith("step_"))


class History:
    """What all starts so far have said to be durable, and the loss of each step. `state`: the file that keeps it, or None."""

    def __init__(self, state):
        self.file, self.done, self.durable, self.losses = state, 0, 0, {}
        self.kills = collections.defaultdict(list)  # of each kind: steps done again, and seconds until the next step or 0
        if state and state.exists():
            kept = json.loads(state.read_text(encoding="utf-8"))
            self.done, self.durable = kept["done"], kept["durable"]
            self.losses = {int(step): loss for step, loss in kept["losses"].items()}
            self.kills.update(kept["kills"])

    def keep(self, kind, repeated, took_s=0.0):
        """Counts a kill."""
        self.done += 1
        self.kills[kind].append((repeated, took_s))
        if self.file:
            temporary = self.file.with_suffix(".new")
            recent = {step: loss for step, loss in self.losses.items() if step > self.durable - 100}
            temporary.write_text(json.dumps({"done": self.done, "durable": self.durable, "losses": recent, "kills": self.kills}),
                                 encoding="utf-8")
            temporary.replace(self.file)

    def add(self, output, losses):
        """Checks what one or several starts in turn have printed and recorded, and adds it. Returns the steps after which they went on,
        and how many steps they did again; raises ValueError where one is not as it must be."""
        resumed, durable = [], self.durable
        for line in output:
            if match := RESUMED.match(line):
                resumed.append(int(match[1]))
                if resumed[-1] < self.durable:
                    raise ValueError(f"step {self.durable} was durable, and it resumed after {resumed[-1]}")
            elif match := DURABLE.match(line):
                self.durable = max(self.durable, int(match[1]))
        if durable > 0 and not resumed:
            raise ValueError(f"step {durable} was durable, and it began anew")
        repeated = 0
        for step, loss in losses:
            repeated += step in self.losses
            before = self.losses.setdefault(step, loss)
            if abs(loss - before) > TOLERANCE * abs(before):
                raise ValueError(f"step {step} has the loss {loss}, and had {before}")
        self.durable = max([self.durable, *resumed])
        return resumed, repeated

    def text(self):
        counts = {kind: len(kills) for kind, kills in self.kills.items()}
        most = max((repeated for kills in self.kills.values() for repeated, _ in kills), default=0)
        return f"{self.done} kills: {counts}; {self.durable} steps are durable; after a kill at most {most} were done again"
