#!/usr/bin/env python3
"""Near checkpoints (--save-local): a run goes on from the memory of the nodes that are left, and nothing stays in it."""
import os
import pathlib
import shutil
import signal
import stat
import unittest

import harness
import training
from harness import wait_for
from test_delivery import NOBODY
from test_topology import TOPOLOGY

ITERATIONS = 48
FAR, NEAR = 18, 6  # steps between checkpoints
LAYOUT = "tp=2"    # ranks then hold tensors that others own
SHM = pathlib.Path("/dev/shm")


class NearCheckpoints(training.TrainingTest):
    nodes = 5
    topology = TOPOLOGY  # n1 and n3 are under one switch, n2 and n4 under another

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.number_jobs_apart()

    def submit_near(self, folder, *options):
        words = " ".join(training.arguments(iterations=ITERATIONS))
        job = self.cluster.sbatch(
            f"wlb run -- wlb-worker {words} --save ck-$SLURM_JOB_ID --load ck-$SLURM_JOB_ID --save-interval {FAR} --save-local {folder} "
            f"--save-local-interval {NEAR} --metrics-file m-$SLURM_JOB_ID.jsonl --log-interval 1",
            f"--wlb-layout={LAYOUT}", "--ntasks-per-node=2", "--no-kill", "-x", "n5",
            *options, nodes=4)
        self.addCleanup(self.remove_left, job)
        return job

    def remove_left(self, job):
        """What a node that a test has killed would have lost."""
        for path in (SHM / name for name in self.left(job)):
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)

    def left(self, job, folder=SHM):
        return sorted(path.name for path in folder.glob(f"wlb-{job}-*"))

    def wait_near(self, job, step):
        self.wait_text(job, f"\nstep {step} | near checkpoint in ")

    def kept(self, job, node, number):
        """The names of the files of a near checkpoint on a node; checks that nobody else may read them."""
        step, = (SHM / f"wlb-{job}-{node}").glob(f"*/step_{number:08}.*")
        for path in (step, step.parent, step.parent.parent):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700, path)
        for path in step.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        return {path.name for path in step.iterdir()}

    def kill(self, *numbers):
        for number in numbers:
            self.addCleanup(self.cluster.restore_node, number)
            self.cluster.kill_node(number)

    def remove_kept(self, job, node, pattern="*"):
        """What a node has lost that comes back without its memory."""
        for path in (SHM / f"wlb-{job}-{node}").glob(f"*/step_*/{pattern}"):
            path.unlink()

    def wait_text(self, job, text, after="wlb: "):
        wait_for(f"{text} after '{after}'", lambda: text in self.cluster.output(job).partition(after)[2], 90, 0.05)

    def test_ranks_and_nodes_lost(self):
        job = self.submit_near(SHM)
        self.wait_near(job, 6)
        stopped = self.rank_pid(0)
        os.kill(stopped, signal.SIGSTOP)
        # Ranks fill the nodes of a switch first: n1, n3, n2, n4. Each node's copies are under the other switch.
        for node, own, other in (("n1", (0, 1), (4, 5)), ("n2", (4, 5), (0, 1)), ("n3", (2, 3), (6, 7)), ("n4", (6, 7), (2, 3))):
            files = {f"shard_{rank:05}.safetensors" for rank in own + other} | {"manifest.json", "packer.bin"}
            copies = {f"copies_{rank:05}.safetensors" for rank in own + other if rank % 2}
            self.assertEqual(self.kept(job, node, 6), files | copies)
        # A rank ends, on a node that comes back without its memory: all go on from memory.
        self.remove_kept(job, "n2")
        os.kill(self.rank_pid(5), signal.SIGKILL)
        os.kill(stopped, signal.SIGCONT)
        self.wait_text(job, f"from the copies on the nodes in {SHM}\n")
        # All nodes of a switch: the others have another layout.
        self.wait_near(job, 24)
        self.kill(2, 4)
        self.wait_text(job, f"becomes ck-{job}/step_000000")
        # A node and its copies.
        self.wait_text(job, " | near checkpoint in ", "becomes ck-")
        self.kill(3)
        self.remove_kept(job, "n1", "shard_0000[23].*")
        run = self.finish(job)
        resumed = [attempt["resumed_step"] for attempt in run["attempts"]]
        self.assertEqual([attempt["nodes"] for attempt in run["attempts"]],
                         [["n1", "n3", "n2", "n4"]] * 2 + [["n1", "n3"], ["n1"]], resumed)
        self.assertIn(resumed[1], range(6, ITERATIONS, NEAR))
        self.assertIn(resumed[2], range(24, ITERATIONS, NEAR))
        self.assertIn(resumed[3], (resumed[2], FAR * 2))
        self.assertIn("is not whole: 2 of its 4 shards are on no node of this attempt", self.cluster.output(job))
        self.check_complete(run, iterations=ITERATIONS)
        self.assertEqual(self.left(job), [f"wlb-{job}-n2", f"wlb-{job}-n3", f"wlb-{job}-n4"])

    def test_a_requeued_job_goes_on_from_its_checkpoint(self):
        """Until Slurm starts it again its nodes are those of other jobs, and so is their memory."""
        job = self.submit_near(SHM, "--requeue", "--open-mode=append")
        self.wait_near(job, 24)
        os.kill(self.rank_pid(0), signal.SIGSTOP)
        self.cluster.run("scontrol", "requeue", job)
        wait_for("the epilogs", lambda: not self.left(job), 30)
        self.assertNotIn("from ", self.cluster.output(job))
        run = self.finish(job)
        self.assertIn(run["attempts"][1]["resumed_step"], (FAR, 2 * FAR))
        self.check_complete(run, iterations=ITERATIONS)
        self.assertEqual(self.left(job), [])

    @unittest.skipIf(os.geteuid() != 0, "needs root: another user makes the folder")
    def test_a_folder_of_another_user(self):
        """Who foresees its name can keep the run from having near checkpoints, which it says, and not from training."""
        job = self.submit_near(SHM, "--hold")
        foreign = SHM / f"wlb-{job}-n2"
        self.cluster.run(*NOBODY, "mkdir", "--mode=777", foreign)
        self.cluster.run("scontrol", "release", job)
        run = self.finish(job)
        self.check_complete(run, iterations=ITERATIONS)
        output = self.cluster.output(job)
        self.assertEqual(output.count("has no near checkpoints, training goes on: "), 1, output)
        self.assertIn(f"training goes on: {foreign}: it must be a folder of this user", output)
        self.assertNotIn("near checkpoint in", output)
        self.assertEqual([event["kind"] for event in run["events"] if "near" in event["kind"]], ["near_checkpoint_failed"])
        wait_for("the epilogs", lambda: self.left(job) == [foreign.name], 30)
        self.assertEqual(list(foreign.iterdir()), [])

    def test_a_cancelled_job_leaves_nothing(self):
        """The epilog removes the job's folder, also where it is elsewhere; nothing that another link leads to."""
        folder = self.cluster.home / "ram"
        name = "wlb-$SLURM_JOB_ID-$SLURMD_NODENAME"
        job = self.cluster.sbatch(
            f"mkdir -p {folder}/{name}/KEY/step_1 {folder}/kept\necho x >{folder}/{name}/KEY/step_1/shard\n"
            f"ln -s {folder}/kept {folder}/{name}/link\nln -s {folder}/{name} {SHM}/{name}\nsleep 100",
            "-w", "n5")
        self.addCleanup(self.remove_left, job)
        other = self.cluster.sbatch(f"mkdir -p {folder}/kept/in\nln -s {folder}/kept {SHM}/{name}\nsleep 100", "-w", "n1")
        self.addCleanup(self.remove_left, other)
        wait_for("the folders", lambda: self.left(job) and self.left(other), 30)
        self.assertEqual(self.left(job, folder), [f"wlb-{job}-n5"])
        self.cluster.run("scancel", job, other)
        wait_for("the epilogs", lambda: not self.left(job) and not self.left(other), 30)
        self.assertEqual([path.name for path in folder.iterdir()], ["kept"])
        self.assertTrue((folder / "kept/in").is_dir())


if __name__ == "__main__":
    harness.main()
