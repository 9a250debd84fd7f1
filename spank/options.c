#include "spank/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spank/model_path.h"

enum {
	SEQ_LENGTH_MAX = 1000000000, /* tokens */
	NODES_MAX = 65533,           /* Slurm's own limit */
};

static const struct {
	char *name;
	char *value;
	char *help;
} known[] = {
	[WLB_OPTION_LAYOUT] = {"wlb-layout", "auto|off|tp=T,cp=C,pp=P[,dp=D]",
                               "train under WLB: let it choose how the GPUs split the model and the data (auto), or "
                               "say how many ways tensors, contexts, pipeline and data are split; off: leave the job "
                               "alone"},
	[WLB_OPTION_MODEL] = {"wlb-model", "FILE", "the model's config.json (Hugging Face, Llama family)"},
	[WLB_OPTION_SEQ_LENGTH] = {"wlb-seq-length", "N", "tokens in a training sequence"},
	[WLB_OPTION_MIN_NODES] = {"wlb-min-nodes", "N", "go on after node failures while at least N nodes are left"},
	[WLB_OPTION_SPARES] = {"wlb-spares", "N", "hold N of the job's nodes back to replace nodes that fail"},
};

int wlb_spank_options_register(spank_t sp, spank_opt_cb_f take)
{
	for (int i = 0; i < (int)(sizeof(known) / sizeof(known[0])); i++) {
		struct spank_option option = {.name = known[i].name,
		                              .arginfo = known[i].value,
		                              .usage = known[i].help,
		                              .has_arg = 1,
		                              .val = i,
		                              .cb = take};
		if (spank_option_register(sp, &option) != ESPANK_SUCCESS)
			slurm_error("wlb: Slurm does not register the option --%s", known[i].name);
	}
	return 0;
}

static int take_layout(char *layout, size_t size, const char *value, struct wlb_error *error)
{
	struct wlb_policy policy;
	if (wlb_policy_parse(value, &policy, error) != 0)
		return wlb_fail_in(error, "--wlb-layout");
	wlb_policy_format(&policy, layout, size);
	return 0;
}

static int take_model(char *model, size_t size, const char *value, bool submitting, struct wlb_error *error)
{
	if (strlen(value) >= size)
		return wlb_fail(error, "--wlb-model=%.60s...: the path must be shorter than %zu characters", value,
		                size);
	if (submitting && wlb_model_path_check(value, error) != 0)
		return -1;
	strcpy(model, value);
	return 0;
}

static int take_number(long *number, int which, const char *value, long least, long most, const char *example,
                       struct wlb_error *error)
{
	char *end;
	errno = 0;
	long parsed = strtol(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || parsed < least || parsed > most)
		return wlb_fail(error, "--%s=%.100s: must be a whole number from %ld to %ld, for example --%s=%s",
		                known[which].name, value, least, most, known[which].name, example);
	*number = parsed;
	return 0;
}

int wlb_spank_options_take(struct wlb_spank_options *options, int which, const char *value, bool submitting,
                           struct wlb_error *error)
{
	switch ((enum wlb_spank_option)which) {
	case WLB_OPTION_LAYOUT:
		return take_layout(options->layout, sizeof(options->layout), value, error);
	case WLB_OPTION_MODEL:
		return take_model(options->model, sizeof(options->model), value, submitting, error);
	case WLB_OPTION_SEQ_LENGTH:
		return take_number(&options->seq_length, which, value, 1, SEQ_LENGTH_MAX, "4096", error);
	case WLB_OPTION_MIN_NODES:
		return take_number(&options->min_nodes, which, value, 1, NODES_MAX, "2", error);
	case WLB_OPTION_SPARES:
		options->spares_given = true;
		return take_number(&options->spares, which, value, 0, NODES_MAX, "1", error);
	}
	return wlb_fail(error, "option %d is unknown to the WLB plugin", which);
}

bool wlb_spank_options_active(const struct wlb_spank_options *options)
{
	return options->layout[0] != '\0' && strcmp(options->layout, "off") != 0;
}

const char *wlb_spank_options_idle(const struct wlb_spank_options *options)
{
	if (options->layout[0] != '\0')
		return NULL;
	if (options->model[0] != '\0')
		return "--wlb-model";
	if (options->seq_length != 0)
		return "--wlb-seq-length";
	if (options->min_nodes != 0)
		return "--wlb-min-nodes";
	return options->spares_given ? "--wlb-spares" : NULL;
}
