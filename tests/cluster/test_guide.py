#!/usr/bin/env python3
"""The commands of docs/guide.md, one after the other in one folder. What follows one of sbatch is run once its job has ended."""
import json
import re
import shutil

import harness
from harness import ClusterTest, main

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# 10 steps of the examples are their warm-up.
STEPS = 11


def commands():
    text = (harness.ROOT / "docs/guide.md").read_text(encoding="utf-8")
    return [line for block in BLOCK.findall(text) for line in block.splitlines()]


class Guide(ClusterTest):
    nodes = 2

    def test_the_commands(self):
        """On a host where the examples are those of the sources. Ranks that wait sleep, as in other tests."""
        examples = str(self.small_examples())
        lines = [line.replace("/usr/share/doc/wlb/examples", examples) for line in commands()]
        self.assertGreater(len(lines), 15)
        environment = {"ITERS": str(STEPS), "LD_PRELOAD": str(harness.BUILD / "tests/yield.so"), "OMP_NUM_THREADS": "1"}
        for line in lines:
            printed = self.cluster.run("bash", "-ec", line, env=environment)
            for job in re.findall(r"^Submitted batch job (\d+)$", printed.stdout, re.MULTILINE):
                self.cluster.wait_job(job)
        runs = [self.cluster.show(job) for job in range(1, 5)]
        complete = ("complete", STEPS)
        self.assertEqual([(run["state"], run["last_step"]) for run in runs], [complete, complete, ("failed", None), complete])
        self.assertIn("ValueError: 42", self.cluster.run("wlb", "show", "3").stdout)
        self.assertTrue((self.cluster.work / "own-published/model.safetensors").exists())

    def small_examples(self):
        """With a model that computes little, and one rank on a node."""
        folder = self.cluster.home / "examples"
        shutil.copytree(harness.ROOT / "examples", folder)
        model = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        model.update(hidden_size=16, intermediate_size=16, num_attention_heads=2, num_key_value_heads=1)
        (folder / "model.json").write_text(json.dumps(model, indent=2), encoding="utf-8")
        script = (folder / "train.sbatch").read_text(encoding="utf-8")
        (folder / "train.sbatch").write_text(script.replace("--ntasks-per-node=2", "--ntasks-per-node=1"), encoding="utf-8")
        return folder


if __name__ == "__main__":
    main()
