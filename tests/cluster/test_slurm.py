#!/usr/bin/env python3
"""Real Slurm, PMIx and MPI on the private cluster, without any part of ours: what all other cluster tests stand on."""
import harness
from harness import ClusterTest


class Slurm(ClusterTest):
    def test_batch_job(self):
        job = self.cluster.sbatch("srun printenv SLURMD_NODENAME", nodes=4)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertEqual(sorted(self.cluster.output(job).split()), ["n1", "n2", "n3", "n4"])

    def test_failed_job(self):
        job = self.cluster.sbatch("exit 3")
        self.assertEqual(self.cluster.wait_job(job), "FAILED")
        self.assertEqual(self.cluster.job(job)["ExitCode"], "3:0")

    def test_mpi_over_pmix_starts_every_time(self):
        for _ in range(10):
            result = self.cluster.run("srun", "-N4", "--ntasks-per-node=2", "--mpi=pmix", harness.mpi_check())
            self.assertEqual(result.stdout, "ranks 8 on n1 n1 n2 n2 n3 n3 n4 n4\n")

    def test_mpi_in_a_batch_job(self):
        job = self.cluster.sbatch(f"srun --ntasks-per-node=1 --mpi=pmix {harness.mpi_check()}", nodes=4)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertEqual(self.cluster.output(job), "ranks 4 on n1 n2 n3 n4\n")


if __name__ == "__main__":
    harness.main()
