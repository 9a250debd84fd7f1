#include "common/job_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/on_fault.h"

enum {
	SEQ_LENGTH_MAX = 1000000000, /* tokens */
	NODES_MAX = 65533,           /* Slurm's own limit */
	GROW_MAX_S = 7 * 24 * 3600,
};

const struct wlb_job_option wlb_job_options[WLB_JOB_OPTION_COUNT] = {
	[WLB_JOB_LAYOUT] =
		{
			.flag = "--wlb-layout",
			.variable = "SLURM_WLB_LAYOUT",
			.key = "layout",
			.kind = WLB_JOB_POLICY,
			.value = "auto|off|tp=T,cp=C,pp=P[,dp=D]",
			/* `wlb doctor` reads the version of the plugin from it. */
			.help = "train under wlb-" WLB_VERSION
				": let it choose how the GPUs split the model and the data (auto), or "
				"name the tensor, context, pipeline and data parallelism; off: the job runs without "
				"WLB",
		},
	[WLB_JOB_MODEL] =
		{
			.flag = "--wlb-model",
			.variable = "SLURM_WLB_MODEL",
			.key = "model",
			.kind = WLB_JOB_FILE,
			.value = "FILE",
			.help = "the model's config.json (Hugging Face, Llama family)",
		},
	[WLB_JOB_SEQ_LENGTH] =
		{
			.flag = "--wlb-seq-length",
			.variable = "SLURM_WLB_SEQ_LENGTH",
			.key = "seq_length",
			.kind = WLB_JOB_NUMBER,
			.value = "N",
			.help = "tokens in a training sequence",
			.min = 1,
			.max = SEQ_LENGTH_MAX,
			.example = "4096",
		},
	[WLB_JOB_MIN_NODES] =
		{
			.flag = "--wlb-min-nodes",
			.variable = "SLURM_WLB_MIN_NODES",
			.key = "min_nodes",
			.kind = WLB_JOB_NUMBER,
			.value = "N",
			.help = "continue after node failures while at least N nodes remain",
			.min = 1,
			.max = NODES_MAX,
			.example = "2",
		},
	[WLB_JOB_SPARES] =
		{
			.flag = "--wlb-spares",
			.variable = "SLURM_WLB_SPARES",
			.key = "spares",
			.kind = WLB_JOB_NUMBER,
			.value = "N",
			.help = "hold N of the job's nodes back to replace nodes that fail",
			.min = 0,
			.max = NODES_MAX,
			.example = "1",
		},
	[WLB_JOB_ON_FAULT] =
		{
			.flag = "--wlb-on-fault",
			.variable = "SLURM_WLB_ON_FAULT",
			.key = "on_fault",
			.kind = WLB_JOB_ITEMS,
			.value = "report|evict|KIND=ACTION|LIMIT,...",
			.help = "what to do about faults found from timings: KIND (crash, hang, slow, corrupt, "
				"outliers) =report or =evict, hang-after=SECONDS, slow-by=PERCENT",
		},
	[WLB_JOB_GROW] =
		{
			.flag = "--wlb-grow",
			.variable = "SLURM_WLB_GROW",
			.key = "grow_s",
			.kind = WLB_JOB_NUMBER,
			.value = "[SECONDS]",
			.help = "after nodes have failed, save, stop and continue on more nodes once they are "
				"available and the run has continued for SECONDS (600)",
			.min = 1,
			.max = GROW_MAX_S,
			.example = "600",
			.default_value = "600",
		},
};

const char *wlb_job_option_variable(const struct wlb_job_option *option)
{
	return option->variable + strlen("SLURM_");
}

static int write_number(const struct wlb_job_option *option, const char *value, char *text, size_t size,
                        struct wlb_error *error)
{
	char *end;
	errno = 0;
	long number = strtol(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < option->min ||
	    number > option->max)
		return wlb_fail(error, "'%.100s': must be a whole number from %ld to %ld, for example %s=%s", value,
		                option->min, option->max, option->flag, option->example);
	snprintf(text, size, "%ld", number);
	return 0;
}

int wlb_job_option_text(const struct wlb_job_option *option, const char *value, char *text, size_t size,
                        struct wlb_error *error)
{
	struct wlb_policy policy;
	if (option->kind == WLB_JOB_NUMBER)
		return write_number(option, value, text, size, error);
	if (option->kind == WLB_JOB_ITEMS)
		return wlb_on_fault_items(value, text, size, error);
	if (option->kind == WLB_JOB_POLICY) {
		if (wlb_policy_parse(value, &policy, error) != 0)
			return -1;
		wlb_policy_format(&policy, text, size);
		return 0;
	}
	if (strlen(value) >= size)
		return wlb_fail(error, "'%.60s...': the path must be shorter than %zu characters", value, size);
	strcpy(text, value);
	return 0;
}
