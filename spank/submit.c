/*
 * sbatch, salloc and srun, after all options are read: messages to the user, and the transfer of the options into the
 * job. Slurm passes options to slurmstepd itself, but before 23.11 not to the script of sbatch --export=NONE;
 * variables that begin with SLURM_ are passed on every release.
 */
#include "spank/submit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/model_path.h"

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
	for (int i = 0; i < WLB_OPTION_COUNT; i++) {
		const char *variable = wlb_spank_option_variable(i);
		const char *value = options->text[i];
		if (value[0] == '\0')
			continue;
		if (i == WLB_OPTION_MODEL) {
			if (resolve_model(value, getenv(variable), path, sizeof(path), error) != 0)
				return -1;
			value = path;
		}
		if (setenv(variable, value, 1) != 0 || setenv(variable + strlen("SLURM_"), value, 1) != 0)
			return wlb_fail(error, "out of memory for %s", wlb_spank_option_flag(i));
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
	if (export_options(&plugin->options, &error) == 0)
		return 0;
	slurm_error("%s", error.message);
	return -1;
}
