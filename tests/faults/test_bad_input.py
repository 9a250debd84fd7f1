#!/usr/bin/env python3
"""Wrong input in a real job, seen by every rank: one clear line, exit code 2, no second attempt, nothing left behind."""
import json
import shutil

import harness
import training


class BadInput(training.TrainingTest):
    nodes = 2

    def refused(self, arguments, *names, exit_code=2):
        """Runs a job with those arguments; its one line of error must hold every name."""
        save = self.cluster.work / "ck-refused"
        job = self.cluster.sbatch("wlb run -- wlb-worker " + " ".join([*arguments, "--save", str(save)]),
                                  "--wlb-layout=auto", "--ntasks-per-node=2", nodes=2)
        self.assertEqual(self.cluster.wait_job(job, 60), "FAILED", self.cluster.output(job))
        self.assertEqual(self.cluster.job(job)["ExitCode"], f"{exit_code}:0", self.cluster.output(job))
        run = self.cluster.show(job)
        lines = [line for line in self.cluster.output(job).splitlines() if all(name in line for name in names)]
        self.assertEqual(len(lines), len(run["attempts"]), f"{names} in:\n{self.cluster.output(job)}")
        self.assertEqual(list(save.glob("*")), [])
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")
        self.assertEqual(run["state"], "failed")
        self.assertLessEqual(len(run["attempts"]), 1 if exit_code == 2 else 4)

    def changed(self, option, value):
        words = training.arguments()
        words[words.index(option) + 1] = value
        return words

    def model(self, **fields):
        """A config.json with fields changed, or left out where None; returns the arguments to use it."""
        path = self.cluster.work / "changed.json"
        path.write_text(json.dumps({k: v for k, v in {**training.MODEL, **fields}.items() if v is not None}),
                        encoding="utf-8")
        return self.changed("--model", path.name)

    def corpus(self, suffix, size_bytes):
        """A copy of the dataset with one of its files cut; returns the arguments to use it."""
        for end in (".bin", ".idx"):
            shutil.copy(self.cluster.work / f"corpus{end}", self.cluster.work / f"cut{end}")
        with open(self.cluster.work / f"cut{suffix}", "r+b") as file:
            file.truncate(size_bytes)
        return self.changed("--data-path", "cut")

    def test_options(self):
        self.refused([*training.arguments(), "--bogus", "1"], "--bogus")
        self.refused(self.changed("--seq-length", "-5"), "--seq-length", "-5")
        self.refused(self.changed("--dtype", "float8"), "--dtype", "float8")

    def test_model(self):
        self.refused(self.model(hidden_size=None), "changed.json", "hidden_size")
        self.refused(self.model(num_attention_heads=0), "changed.json", "num_attention_heads")
        self.refused(self.model(num_hidden_layers=10**9), "changed.json", "num_hidden_layers")
        self.refused(self.changed("--model", "nowhere.json"), "nowhere.json")

    def test_data(self):
        self.refused(self.corpus(".bin", 1001), "cut.bin")
        self.refused(self.corpus(".idx", 40), "cut.idx")
        self.refused(self.changed("--data-path", "nowhere"), "nowhere")

    def test_full_disk(self):
        self.refused([*training.arguments(), "--metrics-file", "/dev/full"], "/dev/full", "No space left", exit_code=1)


if __name__ == "__main__":
    harness.main()
