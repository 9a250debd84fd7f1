"""Compares a run that goes on from a checkpoint, in each of some layouts, with the one that saved it and trained on."""
import concurrent.futures
import filecmp
import itertools
import shutil

LAYOUTS = ((2, 2, 2, 1), (1, 1, 1, 8), (4, 1, 2, 1), (1, 3, 1, 2), (1, 1, 1, 1))  # tp, cp, pp, dp
SAMPLE = LAYOUTS[3:]
SAVED_STEP, NEXT_STEPS = 10, 20
TOLERANCE = 1e-9
ENDED = f"step_{SAVED_STEP + NEXT_STEPS:08}"


class Resumed:
    def __init__(self, trainer, cases):
        self.trainer, self.cases, self.whole = trainer, cases, {}

    def folder(self, *layouts):
        return self.trainer.folder / "-".join("".join(map(str, layout)) for layout in layouts)

    def train(self, case, *words):
        words = *case.words(), "--train-iters", str(SAVED_STEP + NEXT_STEPS), *words
        return self.trainer.run(case.ranks, case.layers, case.model, case.family, words)

    def train_whole(self, case):
        """Saves after SAVED_STEP, and trains on."""
        saved = self.folder(case.layout)
        steps = self.train(case, "--save", saved, "--save-interval", str(SAVED_STEP))
        self.whole[case] = steps[SAVED_STEP:]
        (saved / "cut").mkdir()
        shutil.move(saved / f"step_{SAVED_STEP:08}", saved / "cut")

    def compare(self, pair):
        """Whether what follows is right, and the line that says so."""
        first, then = pair
        end = self.folder(first.layout, then.layout)
        steps = self.train(then, "--load", self.folder(first.layout) / "cut", "--save", end)
        expected = self.whole[first]
        differences = [abs(step["loss"] / other["loss"] - 1) for step, other in zip(steps, expected, strict=True)]
        if first == then:
            shards = [f"shard_{rank:05}.safetensors" for rank in range(then.ranks)]
            same = filecmp.cmpfiles(self.folder(first.layout) / ENDED, end / ENDED, shards, shallow=False)[0] == shards
            good, told = same and max(differences) == 0, "every loss and each byte of the last checkpoint" if same else "other bytes"
        else:
            good, told = max(differences) <= TOLERANCE, f"{max(differences):.1e}"
        shutil.rmtree(end)
        return good, f"{'ok    ' if good else 'FAILED'} {first.words()[1]} to {then.words()[1]}: {told}"

    def check(self, jobs):
        """Prints a line for each pair of layouts; returns how many passed, and of how many."""
        pairs = list(itertools.product(self.cases, repeat=2))
        passed = 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.train_whole, self.cases))
            for good, line in pool.map(self.compare, pairs):
                print(line, flush=True)
                passed += good
        return passed, len(pairs)
