/*
 * sbatch, salloc and srun: the transfer of the options into the job, and messages to the user. Slurm passes options to
 * slurmstepd itself, but before 23.11 not to the script of sbatch --export=NONE; variables that begin with SLURM_ are
 * passed on every release.
 */
#include "spank/submit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/layout_fit.h"
#include "spank/model_path.h"
#include "spank/own_step.h"
#include "spank/step_layout.h"

/* Slurm stores a job's options under this prefix for the srun of its script. */
static const char inherited_options[] = "SLURM_SPANK__SLURM_SPANK_OPTION_wlb_";
static const char run_prefix[] = "SLURM_WLB_";

static int starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Unsets the variable of an "NAME=value" entry, and with SLURM_WLB_X also WLB_X. */
static void drop_entry(const char *entry)
{
	char *name = strndup(entry, strcspn(entry, "="));
	if (name == NULL)
		return;
	if (starts_with(name, run_prefix))
		unsetenv(name + strlen("SLURM_"));
	unsetenv(name);
	free(name);
}

/* A job submitted from within a run is a separate job: it inherits neither the run's name nor its options. */
void wlb_allocator_clear_environment(void)
{
	if (getenv(wlb_job_options[WLB_JOB_LAYOUT].variable) == NULL)
		return;
	for (char **entry = environ; *entry != NULL;) {
		if (starts_with(*entry, run_prefix) || starts_with(*entry, inherited_options)) {
			drop_entry(*entry);
			entry = environ; /* unsetenv moved the entries */
		} else {
			entry++;
		}
	}
}

static int resolve_model(const char *typed, const char *known, char *path, size_t size, struct wlb_error *error)
{
	char here[PATH_MAX];
	if (wlb_model_path_resolve(typed, known, getcwd(here, sizeof(here)), path, size) == 0)
		return 0;
	return wlb_fail(error,
	                "--wlb-model=%.200s: its absolute path is unknown or too long; give a shorter absolute path",
	                typed);
}

/* Sets SLURM_WLB_X for the job, and WLB_X for the shell that salloc starts. */
static int export_options(const struct wlb_spank_options *options, struct wlb_error *error)
{
	char path[PATH_MAX];
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++) {
		const struct wlb_job_option *option = &wlb_job_options[i];
		const char *value = options->text[i];
		if (value[0] == '\0')
			continue;
		if (option->kind == WLB_JOB_FILE) {
			if (resolve_model(value, getenv(option->variable), path, sizeof(path), error) != 0)
				return -1;
			value = path;
		}
		if (setenv(option->variable, value, 1) != 0 || setenv(wlb_job_option_variable(option), value, 1) != 0)
			return wlb_fail(error, "out of memory for %s", option->flag);
	}
	return 0;
}

int wlb_submit_options(const struct wlb_spank *plugin)
{
	const char *idle = wlb_spank_options_ineffective(&plugin->options);
	if (idle != NULL)
		slurm_error("wlb: %s has no effect without --wlb-layout; add --wlb-layout=auto", idle);
	if (!wlb_spank_options_active(&plugin->options))
		return 0;
	wlb_spank_args_report(&plugin->args);
	struct wlb_error error;
	if (wlb_layout_fit_submitted(plugin->options.text[WLB_JOB_LAYOUT], &error) == 0 &&
	    export_options(&plugin->options, &error) == 0)
		return 0;
	slurm_error("%s", error.message);
	return -1;
}

int wlb_submit_step(const struct wlb_spank *plugin)
{
	struct wlb_error error;
	bool is_own =
		wlb_spank_options_active(&plugin->options) && plugin->args.agent[0] != '\0' && wlb_own_step_is_wanted();
	if (wlb_submit_options(plugin) != 0)
		return -1;
	if (is_own && wlb_own_step_begin(&error) != 0)
		slurm_error("wlb: this step is not recorded: %s", error.message);
	return 0;
}

int wlb_local_user_init(spank_t sp, const struct wlb_spank *plugin)
{
	uint32_t tasks = 0;
	struct wlb_layout layout;
	struct wlb_error error;
	int *tasks_on;
	if (!wlb_spank_options_active(&plugin->options) ||
	    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
	    !wlb_step_layout(environ, (int)tasks, &layout))
		return 0;
	/* srun has set it to the step's value; with --preserve-env it is the job's, and slurmstepd has the right
	 * one. */
	int count = wlb_step_nodes(environ, "SLURM_TASKS_PER_NODE", (int)tasks, &tasks_on, NULL);
	if (count < 0)
		return 0;
	const struct wlb_nodes nodes = {.count = count, .ranks_on = tasks_on};
	int rc = wlb_layout_check(&layout, &nodes, NULL, &error);
	free(tasks_on);
	if (rc != 0)
		slurm_error("wlb: %s", error.message);
	return rc;
}
