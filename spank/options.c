#include "spank/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/on_fault.h"
#include "spank/model_path.h"

enum {
	SEQ_LENGTH_MAX = 1000000000, /* tokens */
	NODES_MAX = 65533,           /* Slurm's own limit */
	GROW_MAX_S = 7 * 24 * 3600,
};

/* Slurm takes the option's strings as char *, and copies them. */
static const struct {
	char *flag;
	char *variable;
	char *value;
	char *help;
	long least, most;          /* of a number */
	const char *example;       /* likewise */
	const char *default_value; /* where the option is given without one; NULL: it needs one */
} known[WLB_OPTION_COUNT] = {
	[WLB_OPTION_LAYOUT] =
		{
			.flag = "--wlb-layout",
			.variable = "SLURM_WLB_LAYOUT",
			.value = "auto|off|tp=T,cp=C,pp=P[,dp=D]",
			.help = "train under WLB: let it choose how the GPUs split the model and the data (auto), or "
				"name the tensor, context, pipeline and data parallelism; off: the job runs without "
				"WLB",
		},
	[WLB_OPTION_MODEL] =
		{
			.flag = "--wlb-model",
			.variable = "SLURM_WLB_MODEL",
			.value = "FILE",
			.help = "the model's config.json (Hugging Face, Llama family)",
		},
	[WLB_OPTION_SEQ_LENGTH] =
		{
			.flag = "--wlb-seq-length",
			.variable = "SLURM_WLB_SEQ_LENGTH",
			.value = "N",
			.help = "tokens in a training sequence",
			.least = 1,
			.most = SEQ_LENGTH_MAX,
			.example = "4096",
		},
	[WLB_OPTION_MIN_NODES] =
		{
			.flag = "--wlb-min-nodes",
			.variable = "SLURM_WLB_MIN_NODES",
			.value = "N",
			.help = "continue after node failures while at least N nodes remain",
			.least = 1,
			.most = NODES_MAX,
			.example = "2",
		},
	[WLB_OPTION_SPARES] =
		{
			.flag = "--wlb-spares",
			.variable = "SLURM_WLB_SPARES",
			.value = "N",
			.help = "hold N of the job's nodes back to replace nodes that fail",
			.least = 0,
			.most = NODES_MAX,
			.example = "1",
		},
	[WLB_OPTION_ON_FAULT] =
		{
			.flag = "--wlb-on-fault",
			.variable = "SLURM_WLB_ON_FAULT",
			.value = "report|evict|KIND=ACTION|LIMIT,...",
			.help = "what to do about faults found from timings: KIND (crash, hang, slow, corrupt, "
				"outliers) =report "
				"or "
				"=evict, hang-after=SECONDS, slow-by=PERCENT",
		},
	[WLB_OPTION_GROW] =
		{
			.flag = "--wlb-grow",
			.variable = "SLURM_WLB_GROW",
			.value = "[SECONDS]",
			.help = "after nodes have failed, save, stop and continue on more nodes once they are "
				"available and the run has continued for SECONDS (600)",
			.least = 1,
			.most = GROW_MAX_S,
			.example = "600",
			.default_value = "600",
		},
};

const char *wlb_spank_option_flag(enum wlb_spank_option which)
{
	return known[which].flag;
}

const char *wlb_spank_option_variable(enum wlb_spank_option which)
{
	return known[which].variable;
}

void wlb_spank_options_register(spank_t sp, spank_opt_cb_f take)
{
	for (int i = 0; i < WLB_OPTION_COUNT; i++) {
		struct spank_option option = {.name = known[i].flag + strlen("--"),
		                              .arginfo = known[i].value,
		                              .usage = known[i].help,
		                              .has_arg = known[i].default_value != NULL ? 2 : 1,
		                              .val = i,
		                              .cb = take};
		if (spank_option_register(sp, &option) != ESPANK_SUCCESS)
			slurm_error("wlb: Slurm does not register the option %s", known[i].flag);
	}
}

static int take_layout(char *text, const char *value, struct wlb_error *error)
{
	struct wlb_policy policy;
	if (wlb_policy_parse(value, &policy, error) != 0)
		return wlb_fail_in(error, "%s", known[WLB_OPTION_LAYOUT].flag);
	wlb_policy_format(&policy, text, PATH_MAX);
	return 0;
}

static int take_model(char *text, const char *value, bool submitting, struct wlb_error *error)
{
	if (strlen(value) >= PATH_MAX)
		return wlb_fail(error, "%s=%.60s...: the path must be shorter than %d characters",
		                known[WLB_OPTION_MODEL].flag, value, PATH_MAX);
	if (submitting && wlb_model_path_check(value, getenv(known[WLB_OPTION_MODEL].variable), error) != 0)
		return -1;
	strcpy(text, value);
	return 0;
}

static int take_on_fault(char *text, const char *value, struct wlb_error *error)
{
	if (wlb_on_fault_items(value, text, PATH_MAX, error) != 0)
		return wlb_fail_in(error, "%s", known[WLB_OPTION_ON_FAULT].flag);
	return 0;
}

static bool has_value(const char *value)
{
	return value != NULL && value[0] != '\0' && strcmp(value, "(null)") != 0;
}

static int take_number(char *text, enum wlb_spank_option which, const char *value, struct wlb_error *error)
{
	long least = known[which].least;
	long most = known[which].most;
	char *end;
	errno = 0;
	long number = strtol(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < least || number > most)
		return wlb_fail(error, "%s=%.100s: must be a whole number from %ld to %ld, for example %s=%s",
		                known[which].flag, value, least, most, known[which].flag, known[which].example);
	snprintf(text, PATH_MAX, "%ld", number);
	return 0;
}

int wlb_spank_options_take(struct wlb_spank_options *options, enum wlb_spank_option which, const char *value,
                           bool submitting, struct wlb_error *error)
{
	char *text = options->text[which];
	if (known[which].default_value != NULL && !has_value(value))
		value = known[which].default_value;
	if (which == WLB_OPTION_LAYOUT)
		return take_layout(text, value, error);
	if (which == WLB_OPTION_MODEL)
		return take_model(text, value, submitting, error);
	if (which == WLB_OPTION_ON_FAULT)
		return take_on_fault(text, value, error);
	return take_number(text, which, value, error);
}

bool wlb_spank_options_active(const struct wlb_spank_options *options)
{
	const char *layout = options->text[WLB_OPTION_LAYOUT];
	return layout[0] != '\0' && strcmp(layout, "off") != 0;
}

const char *wlb_spank_options_ineffective(const struct wlb_spank_options *options)
{
	if (options->text[WLB_OPTION_LAYOUT][0] != '\0')
		return NULL;
	for (int i = 0; i < WLB_OPTION_COUNT; i++)
		if (options->text[i][0] != '\0')
			return known[i].flag;
	return NULL;
}
