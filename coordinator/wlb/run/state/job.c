#include "coordinator/wlb/run/state/job.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/job_options.h"
#include "common/json_text.h"
#include "coordinator/client/spool_dir.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/started_by_srun.h"

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

/* Returns what the plugin has set: under salloc only the SLURM_ variable is set. */
static const char *plugin_setting(const struct wlb_job_option *option)
{
	const char *value = setting(wlb_job_option_variable(option));
	return value != NULL ? value : setting(option->variable);
}

static int put_number(json_t *policy, const struct wlb_job_option *option, const char *value, struct wlb_error *error)
{
	char *end;
	long long number = strtoll(value, &end, 10);
	if (*end != '\0' || number < 0 || number > option->max)
		return wlb_fail(error, "%s '%.40s': must be a whole number from 0 to %ld",
		                wlb_job_option_variable(option), value, option->max);
	return json_object_set_new(policy, option->key, json_integer(number));
}

static int put_option(json_t *policy, const struct wlb_job_option *option, struct wlb_error *error)
{
	char text[PATH_MAX];
	const char *value = plugin_setting(option);
	if (value == NULL)
		return 0;
	if (option->kind == WLB_JOB_NUMBER)
		return put_number(policy, option, value, error);
	if (wlb_job_option_text(option, value, text, sizeof(text), error) != 0)
		return wlb_fail_in(error, "%s", wlb_job_option_variable(option));
	return json_object_set_new(policy, option->key, wlb_json_text(text));
}

static int load_policy(struct wlb_run_job *job, struct wlb_error *error)
{
	const char *layout_key = wlb_job_options[WLB_JOB_LAYOUT].key;
	job->policy = json_pack("{s:s}", layout_key, "off"); /* for which the plugin exports no value either */
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++)
		if (put_option(job->policy, &wlb_job_options[i], error) != 0)
			return -1;
	job->off = strcmp(json_string_value(json_object_get(job->policy, layout_key)), "off") == 0;
	return 0;
}

/* For a text that is stored and shown only. */
static void store_setting(char *to, size_t size, const char *name)
{
	const char *value = setting(name);
	wlb_text_store(to, size, value != NULL ? value : "");
}

/* Of a heterogeneous job srun starts a step on the nodes of component 0, which are the nodes that wlbd and the launcher
 * know, where nothing else is said. */
static int check_component(const struct wlb_run_options *options, struct wlb_error *error)
{
	static const char *const names[] = {"--het-group", "--pack-group"};
	for (int i = 0; i < options->srun_arg_count; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			size_t length = strlen(names[k]);
			const char *value = options->srun_args[i] + length;
			if (strncmp(options->srun_args[i], names[k], length) == 0 && strcmp(value, "=0") != 0)
				return wlb_fail(
					error,
					"--srun-args '%.60s': wlb run trains on the nodes of component 0 of a "
					"heterogeneous job: name the component that trains first in sbatch, or submit "
					"it as a job of its own",
					options->srun_args[i]);
		}
	if (setting("SLURM_HET_SIZE") != NULL)
		wlb_run_print("this job is heterogeneous: the run is on the nodes of its component 0, %s",
		              setting("SLURM_JOB_NODELIST"));
	return 0;
}

int wlb_run_job_load(struct wlb_run_job *job, const struct wlb_run_options *options, struct wlb_error *error)
{
	char host[256] = "localhost";
	const char *id = setting("SLURM_JOB_ID");
	const char *nodes = setting("SLURM_JOB_NODELIST");
	const char *restarts = setting("SLURM_RESTART_COUNT");
	*job = (struct wlb_run_job){0};
	if (id == NULL || nodes == NULL)
		return wlb_fail(error,
		                "there is no Slurm job here (SLURM_JOB_ID is not set); put this line into a batch "
		                "script and submit it: sbatch --wlb-layout=auto SCRIPT");
	if (wlb_run_refuse_several(error) != 0 || check_component(options, error) != 0 || wlb_slurm_open(error) != 0)
		return -1;
	job->job_id = (uint32_t)strtoul(id, NULL, 10);
	if (restarts != NULL)
		job->restart_count = (uint32_t)strtoul(restarts, NULL, 10);
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	store_setting(job->cluster, sizeof(job->cluster), "SLURM_CLUSTER_NAME");
	store_setting(job->name, sizeof(job->name), "SLURM_JOB_NAME");
	const char *this_node = setting("SLURMD_NODENAME");
	snprintf(job->this_node, sizeof(job->this_node), "%s", this_node != NULL ? this_node : host);
	if (load_policy(job, error) != 0 ||
	    (!job->off && wlb_spool_dir_choose(options->spool_dir, job->spool_dir, error) != 0))
		return -1;
	if (wlb_hostlist_expand(nodes, &job->nodes, &job->node_count, error) != 0)
		return wlb_fail_in(error, "SLURM_JOB_NODELIST");
	job->first_node_count = job->node_count;
	wlb_run_job_refresh(job);
	return 0;
}

void wlb_run_job_free(struct wlb_run_job *job)
{
	wlb_strings_free(job->nodes, job->node_count);
	json_decref(job->policy);
	*job = (struct wlb_run_job){0};
}

static void take_answer(struct wlb_run_job *job, const struct wlb_slurm_job *now)
{
	char **nodes;
	int count;
	job->submit_time = now->submit_time;
	job->clock_ahead_s = now->clock_ahead_s;
	/* A script that was submitted in a job that had been requeued has that job's number until it is requeued
	 * itself. */
	if (now->restart_count < job->restart_count)
		job->restart_count = now->restart_count;
	bool is_running = now->running && now->restart_count == job->restart_count;
	if (is_running)
		job->end_time = now->end_time;
	job->is_preempted = is_running && now->preempt_time != 0;
	/* A job that is ending releases its nodes one after the other: none of them is lost. */
	if (!now->running || now->nodes[0] == '\0' || wlb_hostlist_expand(now->nodes, &nodes, &count, NULL) != 0)
		return;
	wlb_strings_free(job->nodes, job->node_count);
	job->nodes = nodes;
	job->node_count = count;
}

bool wlb_run_job_has_node(const struct wlb_run_job *job, const char *name)
{
	for (int i = 0; i < job->node_count; i++)
		if (strcmp(job->nodes[i], name) == 0)
			return true;
	return false;
}

bool wlb_run_job_refresh(struct wlb_run_job *job)
{
	struct wlb_slurm_job now;
	bool is_known = wlb_slurm_job(job->job_id, &now, NULL) == 1;
	if (is_known)
		take_answer(job, &now);
	wlb_slurm_job_free(&now);
	return is_known;
}
