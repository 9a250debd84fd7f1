#!/usr/bin/env python3
"""Each file of examples/ that trains with PyTorch, submitted as it is there; torchrun.sbatch is submitted by `run`."""
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

import harness  # noqa: E402
import started  # noqa: E402

STEPS = 12


class Examples(harness.ClusterTest):
    nodes = 2

    def check(self, name):
        """All steps are trained, and a second job goes on from the checkpoint of step 10."""
        trainer, folder = started.TRAINERS[name], started.copy_examples(self.cluster, name)
        for steps in range(1, STEPS + 1), range(11, STEPS + 1):
            made = self.cluster.run("sbatch", "--parsable", f"--output={self.cluster.work}/%j.out", f"examples/{name}.sbatch", cwd=folder,
                                    env=started.environment(self.cluster, VENV, STEPS=str(STEPS)))
            job = int(made.stdout)
            self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
            printed = started.printed(trainer, self.cluster.output(job))
            self.assertEqual([step for step, _ in printed], list(steps), self.cluster.output(job))
            run = harness.wait_for("the end of its run", lambda: (lambda run: run["state"] == "complete" and run)(self.cluster.show(job)), 20)
            self.assertEqual(run["last_step"], STEPS)
            if name != "lightning":  # its bar is drawn at some steps
                self.assertAlmostEqual(run["last_loss"], printed[-1][1], 3)

    def test_pytorch(self):
        self.check("pytorch")

    def test_accelerate(self):
        self.check("accelerate")

    def test_lightning(self):
        self.check("lightning")

    def test_megatron(self):
        self.check("megatron")


if __name__ == "__main__":
    VENV = started.find_venv()
    harness.main()
