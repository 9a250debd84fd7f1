#!/usr/bin/env python3
"""The Slurm plugin through real sbatch, srun and salloc: its options, what it refuses, and the environment of a job."""
import time

import harness
from harness import ClusterTest

LAYOUT = "--wlb-layout=auto"
ENVIRONMENT = "/usr/bin/env | /bin/grep -o '^WLB_.*' | /usr/bin/sort"


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("WLB_"))


class Options(ClusterTest):
    nodes = 2

    def test_help_lists_them(self):
        for command in ("sbatch", "srun", "salloc"):
            text = self.cluster.run(command, "--help").stdout
            for option in ("--wlb-layout=auto|off|tp=T", "--wlb-model=FILE", "--wlb-seq-length=N", "--wlb-min-nodes=N",
                           "--wlb-spares=N"):
                self.assertIn(option, text, command)

    def test_wrong_values_are_refused_where_they_are_typed(self):
        wrong = (("--wlb-layout=bogus", "tp="), ("--wlb-layout=tp=0,cp=1,pp=1", "tp"),
                 ("--wlb-layout=tp=2,cp=x,pp=1", "x"), ("--wlb-seq-length=0", "4096"), ("--wlb-seq-length=many", "4096"),
                 ("--wlb-min-nodes=-1", "--wlb-min-nodes=2"), ("--wlb-spares=1.5", "--wlb-spares=1"),
                 ("--wlb-model=/nowhere/config.json", "/nowhere/config.json"))
        for option, remedy in wrong:
            for command in (["sbatch", "--wrap", "true"], ["srun", "true"], ["salloc", "true"]):
                with self.subTest(command=command[0], option=option):
                    result = self.cluster.run(command[0], option, *command[1:], check=False)
                    self.assertNotEqual(result.returncode, 0)
                    first = result.stderr.splitlines()[0]
                    self.assertIn(option.split("=", 1)[1], first)
                    self.assertIn(remedy, first)
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")

    def test_a_wrong_line_in_the_script_is_refused(self):
        path = self.cluster.work / "wrong.sh"
        path.write_text("#!/bin/bash\n#SBATCH --wlb-layout=sideways\ntrue\n", encoding="utf-8")
        result = self.cluster.run("sbatch", path, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("sideways", result.stderr)


class Environment(ClusterTest):
    nodes = 2

    def job_environments(self, *options, script_lines=""):
        """Submits a job; returns its id, the variables of its script, and those of each of its two tasks."""
        job = self.cluster.sbatch(f"{script_lines}\n{{ {ENVIRONMENT}; }} > script.$SLURM_JOB_ID\n"
                                  f"srun /bin/sh -c \"{{ {ENVIRONMENT}; }} > task.\\$SLURM_JOB_ID.\\$SLURM_PROCID\"",
                                  *options, nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        return job, self.read(f"script.{job}"), [self.read(f"task.{job}.{rank}") for rank in (0, 1)]

    def read(self, name):
        return variables((self.cluster.work / name).read_text(encoding="utf-8"))

    def check_policy(self, job, found):
        self.assertEqual(found["WLB_RUN_ID"], str(job))
        self.assertEqual(found["WLB_LAYOUT"], "auto")
        self.assertEqual(found["WLB_SEQ_LENGTH"], "512")
        self.assertEqual(found["WLB_MIN_NODES"], "1")
        self.assertEqual(found["WLB_SPARES"], "1")
        self.assertEqual(found["WLB_COORDINATOR"], self.cluster.env["WLB_COORDINATOR"])
        self.assertEqual(found["WLB_MUNGE_SOCKET"], self.cluster.env["WLB_MUNGE_SOCKET"])

    def test_script_and_tasks_know_their_run(self):
        options = [LAYOUT, "--wlb-seq-length=512", "--wlb-min-nodes=1", "--wlb-spares=1"]
        for export in ([], ["--export=NONE"], ["--export=HOME"]):
            with self.subTest(export=export):
                job, script, tasks = self.job_environments(*options, *export)
                for found in [script, *tasks]:
                    self.check_policy(job, found)

    def test_lines_of_the_script(self):
        job = self.cluster.sbatch(f"#SBATCH {LAYOUT}\n#SBATCH --wlb-seq-length=512\n#SBATCH --wlb-min-nodes=1\n"
                                  f"#SBATCH --wlb-spares=1\n{ENVIRONMENT}")
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.check_policy(job, variables(self.cluster.output(job)))

    def test_srun_without_environment(self):
        job = self.cluster.sbatch(f"srun --export=NONE /bin/sh -c \"{ENVIRONMENT}\"", LAYOUT)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        found = variables(self.cluster.output(job))
        self.assertEqual((found["WLB_RUN_ID"], found["WLB_LAYOUT"]), (str(job), "auto"))

    def test_srun_alone(self):
        result = self.cluster.run("srun", LAYOUT, "-N2", "/bin/sh", "-c", f"echo JOB=$SLURM_JOB_ID; {ENVIRONMENT}")
        found = variables(result.stdout)
        self.assertIn(f"JOB={found['WLB_RUN_ID']}\n", result.stdout)

    def test_salloc(self):
        result = self.cluster.run("salloc", LAYOUT, "-N2", "srun", "/bin/sh", "-c",
                                  f"echo JOB=$SLURM_JOB_ID; {ENVIRONMENT}")
        found = variables(result.stdout)
        self.assertEqual(found["WLB_LAYOUT"], "auto")
        self.assertIn(f"JOB={found['WLB_RUN_ID']}\n", result.stdout)

    def test_each_task_of_an_array_is_a_run(self):
        job = self.cluster.sbatch("echo $SLURM_JOB_ID $WLB_RUN_ID > array.$SLURM_ARRAY_TASK_ID", LAYOUT, "--array=1-3",
                                  "--wait")
        runs = set()
        for task in (1, 2, 3):
            slurm_id, run_id = (self.cluster.work / f"array.{task}").read_text(encoding="utf-8").split()
            self.assertEqual(slurm_id, run_id)
            runs.add(run_id)
        self.assertEqual(len(runs), 3)
        self.assertIn(str(job), runs)

    def test_the_layout_places_each_task(self):
        show = 'echo AT $SLURM_PROCID $WLB_RANK_TP $WLB_RANK_CP $WLB_RANK_PP $WLB_RANK_DP'
        job = self.cluster.sbatch(f"export WLB_TP=2 WLB_CP=1 WLB_PP=1 WLB_DP=2\nsrun -n4 /bin/sh -c '{show}'", LAYOUT,
                                  "--ntasks-per-node=2", nodes=2)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED", self.cluster.output(job))
        self.assertEqual(sorted(line for line in self.cluster.output(job).splitlines() if line.startswith("AT")),
                         ["AT 0 0 0 0 0", "AT 1 1 0 0 0", "AT 2 0 0 0 1", "AT 3 1 0 0 1"])

    def test_other_jobs_are_left_alone(self):
        for options in ([], ["--wlb-layout=off"]):
            _, script, tasks = self.job_environments(*options)
            for found in [script, *tasks]:
                self.assertNotIn("WLB_RUN_ID", found)


class CoordinatorAway(ClusterTest):
    nodes = 1

    def test_the_job_starts_all_the_same(self):
        self.cluster.verb("kill-wlbd")
        began = time.monotonic()
        job = self.cluster.sbatch("echo started with $WLB_RUN_ID", LAYOUT)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertIn(f"started with {job}\n", self.cluster.output(job))
        self.assertIn("is not announced", self.cluster.output(job))
        print(f"submitted and done in {time.monotonic() - began:.1f} s", end=" ")
        self.cluster.verb("start-wlbd")
        job = self.cluster.sbatch("true", LAYOUT)
        self.assertEqual(self.cluster.wait_job(job), "COMPLETED")
        self.assertNotIn("is not announced", self.cluster.output(job))


if __name__ == "__main__":
    harness.main()
