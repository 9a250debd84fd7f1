/* sbatch, salloc and srun, when all options are read: what the user should hear, and the model's path. */
#include "spank/model_path.h"
#include "spank/plugin.h"

int wlb_submit(const struct wlb_spank *plugin)
{
	const struct wlb_spank_options *options = &plugin->options;
	const char *idle = wlb_spank_options_idle(options);
	if (idle != NULL)
		slurm_error("wlb: %s has no effect without --wlb-layout; add --wlb-layout=auto", idle);
	if (!wlb_spank_options_active(options))
		return 0;
	wlb_spank_args_report(&plugin->args);
	struct wlb_error error;
	if (options->model[0] == '\0' || wlb_model_path_export(options->model, &error) == 0)
		return 0;
	slurm_error("%s", error.message);
	return -1;
}
