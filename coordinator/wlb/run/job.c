#include "coordinator/wlb/run/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json_text.h"
#include "common/on_fault.h"
#include "coordinator/client/spool_dir.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/own_step.h"
#include "coordinator/wlb/run/print.h"

enum { NODES_MOST = INT32_MAX, GROW_MOST_S = 7 * 24 * 3600 };

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && *value != '\0' ? value : NULL;
}

/* Returns the value of a variable of the plugin: under salloc only the SLURM_ variable is set. */
static const char *plugin_setting(const char *name)
{
	char slurm_name[64];
	const char *value = setting(name);
	snprintf(slurm_name, sizeof(slurm_name), "SLURM_%s", name);
	return value != NULL ? value : setting(slurm_name);
}

static int put_policy_number(json_t *policy, const char *key, const char *variable, long long most,
                             struct wlb_error *error)
{
	const char *value = plugin_setting(variable);
	char *end;
	if (value == NULL)
		return 0;
	long long number = strtoll(value, &end, 10);
	if (*end != '\0' || number < 0 || number > most)
		return wlb_fail(error, "%s '%.40s': must be a whole number from 0 to %lld", variable, value, most);
	return json_object_set_new(policy, key, json_integer(number));
}

static int put_policy_on_fault(json_t *policy, struct wlb_error *error)
{
	char items[WLB_ON_FAULT_SIZE];
	const char *value = plugin_setting("WLB_ON_FAULT");
	if (value == NULL)
		return 0;
	if (wlb_on_fault_items(value, items, sizeof(items), error) != 0)
		return wlb_fail_in(error, "WLB_ON_FAULT");
	return json_object_set_new(policy, "on_fault", json_string(items));
}

static int load_policy(struct wlb_run_job *job, struct wlb_error *error)
{
	struct wlb_policy policy;
	const char *layout = plugin_setting("WLB_LAYOUT");
	const char *model = plugin_setting("WLB_MODEL");
	if (layout == NULL)
		layout = "off"; /* for which the plugin exports no value either */
	if (wlb_policy_parse(layout, &policy, error) != 0)
		return wlb_fail_in(error, "WLB_LAYOUT");
	job->off = policy.kind == WLB_POLICY_OFF;
	job->policy = json_pack("{s:s}", "layout", layout);
	if (model != NULL)
		json_object_set_new(job->policy, "model", wlb_json_text(model));
	if (put_policy_number(job->policy, "seq_length", "WLB_SEQ_LENGTH", INT64_MAX, error) != 0 ||
	    put_policy_number(job->policy, "min_nodes", "WLB_MIN_NODES", NODES_MOST, error) != 0 ||
	    put_policy_number(job->policy, "spares", "WLB_SPARES", NODES_MOST, error) != 0 ||
	    put_policy_number(job->policy, "grow_s", "WLB_GROW", GROW_MOST_S, error) != 0 ||
	    put_policy_on_fault(job->policy, error) != 0)
		return -1;
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
	if (wlb_run_own_step_check(error) != 0 || check_component(options, error) != 0 || wlb_slurm_open(error) != 0)
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

bool wlb_run_job_refresh(struct wlb_run_job *job)
{
	struct wlb_slurm_job now;
	bool is_known = wlb_slurm_job(job->job_id, &now, NULL) == 1;
	if (is_known)
		take_answer(job, &now);
	wlb_slurm_job_free(&now);
	return is_known;
}
