#include "coordinator/wlb/run/check/check_environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An attempt would have an agent and a layout. */
static void forget_attempt(void)
{
	static const char *const names[] = {"ATTEMPT_ID", "TP", "CP", "PP", "DP"};
	char name[64];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "SLURM_WLB_%s", names[i]);
		unsetenv(name);
		unsetenv(name + strlen("SLURM_"));
	}
	unsetenv("SLURM_JOB_NODELIST"); /* as for an attempt: launch.c */
	setenv("SLURM_PMIX_FENCE", "ring", 1);
}

/* srun reads most of these variables as options, and sbatch sets them from the options of the job. They say what each
 * of the job's tasks gets: with --cpus-per-task srun implies --exact, and the only task of a check would get the CPUs
 * of one task, not of the node. Not every release of Slurm has all of them. */
static void forget_shares(void)
{
	static const char *const names[] = {
		/* OpenMP: it would bind the check itself to the CPUs of one place, and no other would be checked. */
		"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_THREAD_LIMIT",
		/* CPUs */
		"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_GPU", "SLURM_EXACT", "SLURM_EXCLUSIVE",
		"SLURM_CORE_SPEC", "SLURM_THREAD_SPEC", "SLURM_THREADS_PER_CORE", "SLURM_HINT", "SLURM_NTASKS_PER_CORE",
		"SLURM_CPU_BIND",
		/* GPUs: an option of the command line gives the check all GPUs of the node. */
		"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET", "SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND",
		"SLURM_GRES", "SLURM_STEP_GRES", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND", "SLURM_NTASKS_PER_GPU",
		"SLURM_NTASKS_PER_TRES",
		/* Memory: a step that asks for none gets all of the job's. */
		"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE", "SLURM_MEM_BIND",
		/* Nodes, of which the command line names each. */
		"SLURM_DISTRIBUTION", "SLURM_HOSTFILE", "SLURM_CONSTRAINT"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* The output of the tasks is read: a label before each line, or a file that takes the lines, would hide it. srun takes
 * the modes as its options --output, --error and --input. */
static void forget_output(void)
{
	static const char *const names[] = {"SLURM_LABELIO", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

void wlb_check_environment_set(void)
{
	forget_attempt();
	forget_shares();
	forget_output();
	setenv("SLURM_WAIT", "0", 1); /* the tasks of a check end one after the other */
}
