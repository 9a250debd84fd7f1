"""Compares a run that goes on from a checkpoint, in each of some layouts, with the one that saved it and trained on; and
one that is fine-tuned from it, with another length of windows and evaluated before and after, with the same in one process."""
import concurrent.futures
import dataclasses
import filecmp
import itertools
import shutil

import records

LAYOUTS = ((2, 2, 2, 1), (1, 1, 1, 8), (4, 1, 2, 1), (1, 3, 1, 2), (1, 1, 1, 1))  # tp, cp, pp, dp
SAMPLE = LAYOUTS[3:]
SAVED_STEP, NEXT_STEPS, TUNED_STEPS = 10, 20, 10
TOLERANCE = 1e-9
ENDED = f"step_{SAVED_STEP + NEXT_STEPS:08}"


class Resumed:
    def __init__(self, trainer, cases):
        self.trainer, self.cases, self.whole, self.tuned = trainer, cases, {}, {}

    def folder(self, *layouts):
        return self.trainer.folder / "-".join("".join(map(str, layout)) for layout in layouts)

    def train(self, case, *words):
        return self.trainer.run(case.ranks, case.reference().config, (*case.words(), *words))

    def train_whole(self, case):
        """Saves after SAVED_STEP, and trains on; and fine-tunes from there in one process."""
        saved = self.folder(case.layout)
        found = self.train(case, "--train-iters", str(SAVED_STEP + NEXT_STEPS), "--save", saved, "--save-interval", str(SAVED_STEP))
        self.whole[case] = [record for record in found if record["step"] > SAVED_STEP]
        (saved / "cut").mkdir()
        shutil.move(saved / f"step_{SAVED_STEP:08}", saved / "cut")
        self.tuned[case] = self.tune(case, dataclasses.replace(case, layout=(1, 1, 1, 1)))

    def tune(self, first, then):
        """Trains on from the weights that `first` has saved, as a new run of windows twice as long."""
        then = dataclasses.replace(then, sharding="per-document")
        return self.train(then, "--finetune", "--load", self.folder(first.layout) / "cut", "--train-iters", str(TUNED_STEPS),
                          "--seq-length", "64", "--eval-interval", "5", "--eval-at-start")

    def compare(self, pair):
        """Whether what follows is right, and the line that says so."""
        first, then = pair
        end = self.folder(first.layout, then.layout)
        found = self.train(then, "--train-iters", str(SAVED_STEP + NEXT_STEPS), "--load", self.folder(first.layout) / "cut",
                           "--save", end)
        worst, _ = records.difference(found, self.whole[first])
        if first == then:
            shards = [f"shard_{rank:05}.safetensors" for rank in range(then.ranks)]
            same = filecmp.cmpfiles(self.folder(first.layout) / ENDED, end / ENDED, shards, shallow=False)[0] == shards
            good, found = same and worst == 0, "every loss and each byte of the last checkpoint" if same else "other bytes"
        else:
            good, found = worst <= TOLERANCE, f"{worst:.1e}"
        shutil.rmtree(end)
        return good, f"{'ok    ' if good else 'FAILED'} {first.words()[1]} to {then.words()[1]}: {found}"

    def compare_tuned(self, pair):
        """The same of fine-tuning."""
        first, then = pair
        found, expected = self.tune(first, then), self.tuned[first]
        worst, where = records.difference(found, expected)
        good = records.same_inputs(found, expected) and worst <= TOLERANCE
        return good, f"{'ok    ' if good else 'FAILED'} {first.words()[1]}, fine-tuned in {then.words()[1]}: {worst:.1e} {where}"

    def check(self, jobs):
        """Prints a line for each pair of layouts; returns how many passed, and of how many."""
        pairs = list(itertools.product(self.cases, repeat=2))
        passed = 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.train_whole, self.cases))
            for good, line in itertools.chain(pool.map(self.compare, pairs), pool.map(self.compare_tuned, pairs)):
                print(line, flush=True)
                passed += good
        return passed, 2 * len(pairs)
