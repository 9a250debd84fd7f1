#!/usr/bin/env python3
"""`srun --wlb-layout=auto CMD` without `wlb run`: any program is recorded, and nothing is ended because one of its ranks is."""
import subprocess

from harness import ClusterTest, main, wait_for


class OwnStep(ClusterTest):
    nodes = 2

    def srun(self, *words, tasks=4):
        return subprocess.Popen(["srun", "--wlb-layout=auto", "-N2", f"-n{tasks}", *words], env=self.cluster.env, cwd=self.cluster.work,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_of(self, text):
        return next(line.split()[1] for line in text.splitlines() if line.startswith("job "))

    def ended(self, job):
        return wait_for("the end of the run", lambda: (run := self.cluster.show(job))["ended_at"] and run, 90)

    def test_a_program_that_ends_well(self):
        with self.srun("sh", "-c", "echo job $SLURM_JOB_ID $WLB_ATTEMPT_ID; sleep 3") as process:
            text, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, errors)
        run = self.ended(self.run_of(text))
        self.assertEqual((run["state"], run["policy"]["layout"]), ("complete", "auto"))
        self.assertEqual([(a["state"], a["exit_code"]) for a in run["attempts"]], [("complete", 0)])
        self.assertEqual(run["faults"], [])
        self.assertEqual({line.split()[2] for line in text.splitlines() if line.startswith("job ")}, {run["attempts"][0]["attempt_id"]})

    def test_a_rank_that_fails_ends_no_other(self):
        with self.srun("sh", "-c", "echo job $SLURM_JOB_ID; [ $SLURM_PROCID != 1 ] || exit 7; sleep 9; echo done $SLURM_PROCID") as process:
            text, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 7)
        self.assertEqual({line for line in text.splitlines() if line.startswith("done")}, {"done 0", "done 2", "done 3"})
        run = self.ended(self.run_of(text))
        self.assertEqual(run["state"], "failed")
        attempt, = run["attempts"]
        self.assertEqual((attempt["state"], attempt["exit_code"]), ("failed", 7))
        self.assertIn("rank 1 on n1 ended with exit code 7", attempt["reason"])
        self.assertIn(("rank_lost", 1, "n1"), {(fault["kind"], fault["rank"], fault["node"]) for fault in run["faults"]})

    def test_a_step_of_a_job_with_the_option_is_none(self):
        job = self.cluster.sbatch("srun sh -c 'echo own ${WLB_ATTEMPT_ID:-none}'", "--wlb-layout=auto")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertIn("own none", self.cluster.output(job))
        self.assertEqual(self.cluster.show(job)["attempts"], [])

    def test_what_a_rank_starts_is_not_recorded_again(self):
        with self.srun("sh", "-c", "echo job $SLURM_JOB_ID; srun --overlap -N1 -n1 sh -c 'echo page ${WLB_NODE_PAGE:-none}'",
                       tasks=2) as process:
            text, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(text.count("page none"), 2)
        self.assertEqual(len(self.ended(self.run_of(text))["attempts"]), 1)


if __name__ == "__main__":
    main()
