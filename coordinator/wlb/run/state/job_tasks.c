#include "coordinator/wlb/run/state/job_tasks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/print.h"

static const char list_name[] = "SLURM_TASKS_PER_NODE";

/* The number at the beginning of a variable ("2(x4)"; "gpu:4": after the last colon), or 0. */
static int leading_number(const char *name)
{
	const char *value = getenv(name);
	if (value == NULL)
		return 0;
	const char *colon = strrchr(value, ':');
	long number = strtol(colon != NULL ? colon + 1 : value, NULL, 10);
	return number > 0 && number <= INT_MAX ? (int)number : 0;
}

static int first_number(const char *name, const char *otherwise)
{
	int number = leading_number(name);
	return number > 0 ? number : leading_number(otherwise);
}

/* The number of each node that the user named, or 0. */
static int named_per_node(const struct wlb_run *run)
{
	if (run->options.tasks_per_node > 0)
		return run->options.tasks_per_node;
	int per_node = leading_number("SLURM_NTASKS_PER_NODE");
	if (per_node > 0)
		return per_node;
	int64_t tasks = (int64_t)run->job.gpus_per_node * first_number("SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES");
	return tasks <= INT_MAX ? (int)tasks : 0;
}

static int refuse_unequal(struct wlb_error *error)
{
	return wlb_fail(error,
	                "%s is %.200s: `wlb run` starts as many tasks on each node; submit with --ntasks-per-node and "
	                "without --ntasks, or add --tasks-per-node to `wlb run`",
	                list_name, getenv(list_name));
}

static bool is_unequal(void)
{
	const char *list = getenv(list_name);
	return list != NULL && strchr(list, ',') != NULL;
}

/* Slurm fills the CPUs of one node after the other. Where the job has GPUs, whose tasks need few CPUs, tasks that can
 * be divided equally are. */
static int divide(const struct wlb_run_job *job, int tasks, int *per_node, struct wlb_error *error)
{
	*per_node = leading_number(list_name);
	if (!is_unequal())
		return 0;
	if (job->gpus_per_node == 0 || job->first_node_count < 1 || tasks % job->first_node_count != 0)
		return refuse_unequal(error);
	*per_node = tasks / job->first_node_count;
	return 0;
}

/* Returns the number on each node that an earlier start of the job had, or 0. */
static int read_before(struct wlb_run *run, int tasks)
{
	int before = run->job.restart_count > 0 ? wlb_run_journal_read_tasks(run) : 0;
	return before <= tasks ? before : 0;
}

/* A job that is requeued may start on fewer nodes, and SLURM_NTASKS is then still the number of its submission. So each
 * node gets as many tasks as in the first start of the job. */
static int divide_as_before(struct wlb_run *run, int tasks, int *per_node, struct wlb_error *error)
{
	*per_node = read_before(run, tasks);
	if (*per_node > 0)
		return 0;
	if (divide(&run->job, tasks, per_node, error) != 0)
		return -1;
	if (run->job.restart_count == 0 && run->job.first_node_count > 1 && *per_node > 0)
		wlb_run_journal_write_tasks(run, *per_node);
	return 0;
}

/* The CPUs of the node that has the fewest, of "8(x2),4"; 0: not known. */
static int fewest_cpus(void)
{
	const char *at = getenv("SLURM_JOB_CPUS_PER_NODE");
	long fewest = 0;
	for (; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
		long cpus = strtol(at, NULL, 10);
		fewest = cpus > 0 && (fewest == 0 || cpus < fewest) ? cpus : fewest;
	}
	return fewest <= INT_MAX ? (int)fewest : INT_MAX;
}

/* A job that asks for GPUs and for no tasks gets the CPUs of one task on each node, unless the partition gives some
 * with each GPU (DefCpuPerGPU). srun refuses more tasks there unless they may share CPUs. */
static void share_cpus(struct wlb_run_job *job)
{
	int cpus = fewest_cpus(), each = leading_number("SLURM_CPUS_PER_TASK");
	if (cpus == 0 || cpus / (each > 0 ? each : 1) >= job->gpus_per_node)
		return;
	job->shares_cpus = true;
	wlb_run_print("the job has %d CPU%s on a node, which the tasks of %d GPUs share; to give each its own, submit "
	              "it with "
	              "--ntasks-per-node=%d, or with --cpus-per-gpu",
	              cpus, cpus == 1 ? "" : "s", job->gpus_per_node, job->gpus_per_node);
}

/* Where the user named no number. */
static int choose(struct wlb_run_job *job, int *per_node, struct wlb_error *error)
{
	*per_node = job->gpus_per_node;
	if (*per_node > 0) {
		share_cpus(job);
		return 0;
	}
	if (is_unequal() && !job->off)
		return refuse_unequal(error);
	*per_node = leading_number(list_name);
	return 0;
}

int wlb_run_job_tasks(struct wlb_run *run, struct wlb_error *error)
{
	struct wlb_run_job *job = &run->job;
	int tasks = leading_number("SLURM_NTASKS"), rc = 0;
	job->gpus_per_node = first_number("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE");
	job->tasks_per_node = named_per_node(run);
	if (job->tasks_per_node > 0)
		return 0;
	if (tasks > 0 && job->off)
		job->tasks = tasks;
	else if (tasks > 0)
		rc = divide_as_before(run, tasks, &job->tasks_per_node, error);
	else
		rc = choose(job, &job->tasks_per_node, error);
	if (job->tasks_per_node < 1)
		job->tasks_per_node = 1;
	return rc;
}
