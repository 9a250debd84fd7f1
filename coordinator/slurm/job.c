/* Jobs and their steps: query, end, requeue, resize. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/gres.h"
#include "coordinator/slurm/slurm_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static const char *base_state_name(uint32_t base)
{
	static const char *const names[] = {
		[JOB_PENDING] = "PENDING",     [JOB_RUNNING] = "RUNNING",     [JOB_SUSPENDED] = "SUSPENDED",
		[JOB_COMPLETE] = "COMPLETED",  [JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
		[JOB_TIMEOUT] = "TIMEOUT",     [JOB_NODE_FAIL] = "NODE_FAIL", [JOB_PREEMPTED] = "PREEMPTED",
		[JOB_BOOT_FAIL] = "BOOT_FAIL", [JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
	};
	return base < sizeof(names) / sizeof(names[0]) ? names[base] : "UNKNOWN";
}

static bool has_text(const char *text)
{
	return text != NULL && *text != '\0';
}

/* Counted features: "[rack1*2&rack2*2]". */
static bool is_restricted(const slurm_job_info_t *job)
{
	return has_text(job->req_nodes) || has_text(job->exc_nodes) || has_text(job->resv_name) ||
	       (has_text(job->features) && strpbrk(job->features, "[*") != NULL);
}

/* The list of a job whose nodes lie apart may be long: 15,280 characters of every second of 8,192. */
static int keep_nodes(struct wlb_slurm_job *job, const char *nodes, struct wlb_error *error)
{
	job->nodes = strdup(nodes);
	return job->nodes != NULL ? 0
	                          : wlb_fail(error, "job %u: out of memory for a node list of %zu characters",
	                                     job->job_id, strlen(nodes));
}

static void put_alias(const slurm_job_info_t *from, char *alias, size_t size)
{
	alias[0] = '\0';
	if (from->array_job_id != 0 && from->array_task_id != NO_VAL)
		snprintf(alias, size, "%u_%u", from->array_job_id, from->array_task_id);
	else if (from->het_job_id != 0 && from->het_job_offset != NO_VAL)
		snprintf(alias, size, "%u+%u", from->het_job_id, from->het_job_offset);
}

/* Slurm gives a job without a time limit, in a partition without one, this limit. INFINITE and NO_VAL are larger. */
enum { UNLIMITED_MIN = 365 * 24 * 60 };

static int fill_job(const slurm_job_info_t *from, struct wlb_slurm_job *job, struct wlb_error *error)
{
	uint32_t base = from->job_state & JOB_STATE_BASE;
	bool is_counted = base == JOB_PENDING && (from->job_state & JOB_COMPLETING) == 0;
	*job = (struct wlb_slurm_job){
		.job_id = wlb_compat_job_id(from),
		.uid = from->user_id,
		.gpus = wlb_gres_gpus(from->gres_total ?: ""),
		.running = base == JOB_RUNNING,
		.configuring = (from->job_state & JOB_CONFIGURING) != 0,
		.suspended = base == JOB_SUSPENDED,
		.finished = base > JOB_SUSPENDED,
		.submit_time = from->submit_time,
		.restart_count = from->restart_cnt,
		.requeue = from->requeue != 0,
		.batch = from->batch_flag != 0,
		.is_restricted = is_restricted(from),
		.node_count = is_counted && from->num_nodes != NO_VAL ? from->num_nodes : 0,
		.is_limited = from->time_limit < UNLIMITED_MIN,
		.end_time = from->end_time,
		.suspend_time = from->suspend_time,
		.preempt_time = from->preempt_time,
		.exit_code = WIFEXITED(from->exit_code) ? WEXITSTATUS(from->exit_code) : 0,
		.exit_signal = WIFSIGNALED(from->exit_code) ? WTERMSIG(from->exit_code) : 0,
	};
	put_alias(from, job->alias, sizeof(job->alias));
	wlb_text_store(job->name, sizeof(job->name), from->name ?: "");
	wlb_text_store(job->account, sizeof(job->account), from->account ?: "");
	snprintf(job->state, sizeof(job->state), "%s", base_state_name(base));
	snprintf(job->partition, sizeof(job->partition), "%s", from->partition ?: "");
	snprintf(job->batch_host, sizeof(job->batch_host), "%s", from->batch_host ?: "");
	return keep_nodes(job, from->nodes ?: "", error);
}

/* The record of this job in a reply that holds the whole array for an array's first id; NULL when absent. */
static const slurm_job_info_t *find_job(const job_info_msg_t *reply, uint32_t job_id)
{
	for (uint32_t i = 0; i < reply->record_count; i++)
		if (wlb_compat_job_id(&reply->job_array[i]) == job_id)
			return &reply->job_array[i];
	return NULL;
}

/* slurmctld answers with its own time, in all releases. This host's is that from before the question: a slow answer
 * then makes the end of a job seem nearer, and not farther, than it is. */
static double clock_ahead_s(time_t asked, const job_info_msg_t *reply)
{
	return reply->last_update > 0 ? difftime(asked, reply->last_update) : 0;
}

int wlb_slurm_job(uint32_t job_id, struct wlb_slurm_job *job, struct wlb_error *error)
{
	job_info_msg_t *reply = NULL;
	*job = (struct wlb_slurm_job){0};
	time_t asked = time(NULL);
	if (wlb_compat_load_job(&reply, job_id, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS) {
		if (errno == ESLURM_INVALID_JOB_ID)
			return 0;
		return wlb_fail(error, "job %u: Slurm gives no information: %s", job_id, slurm_strerror(errno));
	}
	const slurm_job_info_t *found = find_job(reply, job_id);
	int result = 0;
	if (found)
		result = fill_job(found, job, error) == 0 ? 1 : -1;
	if (result == 1)
		job->clock_ahead_s = clock_ahead_s(asked, reply);
	slurm_free_job_info_msg(reply);
	return result;
}

/* libslurm replaces what is in the names, such as %j, and takes a job that it may change. */
void wlb_slurm_job_output(uint32_t job_id, char *out, char *error, size_t size)
{
	job_info_msg_t *reply = NULL;
	out[0] = error[0] = '\0';
	if (wlb_compat_load_job(&reply, job_id, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
		return;
	slurm_job_info_t *found = (slurm_job_info_t *)find_job(reply, job_id);
	if (found != NULL && found->batch_flag != 0) {
		slurm_get_job_stdout(out, (int)size, found);
		slurm_get_job_stderr(error, (int)size, found);
	}
	slurm_free_job_info_msg(reply);
}

int wlb_slurm_job_copy(struct wlb_slurm_job *copy, const struct wlb_slurm_job *job, struct wlb_error *error)
{
	*copy = *job;
	return keep_nodes(copy, job->nodes, error);
}

void wlb_slurm_job_free(struct wlb_slurm_job *job)
{
	free(job->nodes);
	job->nodes = NULL;
}

int wlb_slurm_step_kill(uint32_t job_id, uint32_t step_id, int signal, struct wlb_error *error)
{
	/* A step that is gone is not known by its id any more. */
	if (wlb_compat_kill_step(job_id, step_id, (uint16_t)signal) == SLURM_SUCCESS || errno == ESLURM_ALREADY_DONE ||
	    errno == ESLURM_INVALID_JOB_ID)
		return 0;
	return wlb_fail(error, "step %u.%u: Slurm refuses signal %d: %s", job_id, step_id, signal,
	                slurm_strerror(errno));
}

int wlb_slurm_requeue(uint32_t job_id, struct wlb_error *error)
{
	if (wlb_compat_requeue(job_id) == SLURM_SUCCESS)
		return 0;
	if (errno == ESLURM_DISABLED)
		return wlb_fail(error,
		                "job %u: it was not submitted with --requeue, so Slurm does not requeue it; "
		                "submit it with --requeue",
		                job_id);
	return wlb_fail(error, "job %u: Slurm does not requeue it: %s", job_id, slurm_strerror(errno));
}

enum { KILL_NAME_SIZE = 32 };

/* slurmctld takes the number of a job for that of its whole array: the last task of an array has the array's number,
 * and before 23.11 a task with a number of its own is not found by it. So a task is named as scancel does: "12_3".
 * Returns 1, 0 if Slurm does not know the job (any more), -1 with the error. */
static int name_to_kill(uint32_t job_id, char name[KILL_NAME_SIZE], struct wlb_error *error)
{
	job_info_msg_t *reply = NULL;
	if (wlb_compat_load_job(&reply, job_id, SHOW_ALL) != SLURM_SUCCESS) {
		if (errno == ESLURM_INVALID_JOB_ID)
			return 0;
		return wlb_fail(error, "job %u: Slurm gives no information: %s", job_id, slurm_strerror(errno));
	}
	const slurm_job_info_t *job = find_job(reply, job_id);
	int found = job != NULL;
	if (found && job->array_task_id != NO_VAL)
		snprintf(name, KILL_NAME_SIZE, "%u_%u", job->array_job_id, job->array_task_id);
	else
		snprintf(name, KILL_NAME_SIZE, "%u", job_id);
	slurm_free_job_info_msg(reply);
	return found;
}

int wlb_slurm_job_kill(uint32_t job_id, struct wlb_error *error)
{
	char name[KILL_NAME_SIZE];
	int found = name_to_kill(job_id, name, error);
	if (found <= 0)
		return found;
	if (slurm_kill_job2(name, SIGKILL, 0, NULL) == SLURM_SUCCESS || errno == ESLURM_ALREADY_DONE ||
	    errno == ESLURM_INVALID_JOB_ID)
		return 0;
	return wlb_fail(error, "job %u: Slurm does not end it: %s", job_id, slurm_strerror(errno));
}

/* A job keeps the task count of its submission, which is too high for fewer nodes. */
static int fit_tasks(job_desc_msg_t *update, uint32_t job_id, uint32_t min_nodes, struct wlb_error *error)
{
	job_info_msg_t *reply = NULL;
	if (wlb_compat_load_job(&reply, job_id, SHOW_ALL) != SLURM_SUCCESS)
		return wlb_fail(error, "job %u: Slurm gives no information: %s", job_id, slurm_strerror(errno));
	const slurm_job_info_t *job = find_job(reply, job_id);
	if (job && job->ntasks_per_node != 0 && job->ntasks_per_node != NO_VAL16) {
		uint32_t cpus_per_task = job->cpus_per_task != NO_VAL16 && job->cpus_per_task ? job->cpus_per_task : 1;
		update->num_tasks = min_nodes * job->ntasks_per_node;
		update->min_cpus = update->num_tasks * cpus_per_task;
	}
	slurm_free_job_info_msg(reply);
	return 0;
}

int wlb_slurm_job_resize_pending(uint32_t job_id, uint32_t min_nodes, uint32_t max_nodes, struct wlb_error *error)
{
	job_desc_msg_t update;
	slurm_init_job_desc_msg(&update);
	wlb_compat_set_job_id(&update, job_id);
	update.min_nodes = min_nodes;
	if (max_nodes > 0)
		update.max_nodes = max_nodes;
	if (fit_tasks(&update, job_id, min_nodes, error) != 0)
		return -1;
	if (slurm_update_job(&update) == SLURM_SUCCESS)
		return 0;
	return wlb_fail(error, "job %u: Slurm does not let it start on %u nodes: %s", job_id, min_nodes,
	                slurm_strerror(errno));
}
