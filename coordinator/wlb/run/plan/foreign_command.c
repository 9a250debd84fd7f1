#include "coordinator/wlb/run/plan/foreign_command.h"

#include <string.h>

#include "common/number.h"
#include "coordinator/wlb/run/command/command_words.h"

static int number_of(char *const *words, const char *name, int64_t otherwise, int64_t most, int64_t *number,
                     struct wlb_error *error)
{
	const char *text = wlb_run_word_value(words, name);
	*number = otherwise;
	return text != NULL ? wlb_number_parse(name, text, 1, most, number, error) : 0;
}

static int read_datasets(char *const *words, struct wlb_blend *blend, struct wlb_error *error)
{
	static const char name[] = "--data-path";
	const size_t length = sizeof(name) - 1;
	for (int i = 0; words[i] != NULL; i++) {
		if (strncmp(words[i], name, length) != 0)
			continue;
		char *one[] = {words[i] + length + 1, NULL};
		if (words[i][length] == '=')
			return wlb_blend_parse(one, blend, error);
		if (words[i][length] == '\0')
			return wlb_blend_parse(words + i + 1, blend, error);
	}
	return 0;
}

/* Returns 0 where the option is not there, or has another value than a number: its meaning is the trainer's own. */
static int given_number(char *const *words, const char *name)
{
	int64_t number;
	return number_of(words, name, 0, 1 << 20, &number, NULL) == 0 ? (int)number : 0;
}

/* Holds what the command says of the layout: a program that has the options does not read WLB_TP and the others. */
static struct wlb_search_fixed read_layout(char *const *words)
{
	return (struct wlb_search_fixed){
		.tp = given_number(words, "--tensor-model-parallel-size"),
		.cp = given_number(words, "--context-parallel-size"),
		.pp = given_number(words, "--pipeline-model-parallel-size"),
		.micro_batch_windows = given_number(words, "--micro-batch-size"),
		.recompute = -1,
	};
}

int wlb_run_read_foreign(const struct wlb_run *run, const char *gpu_types, struct wlb_blend *blend,
                         struct wlb_auto_request *request, const char **missing, struct wlb_error *error)
{
	char *const *words = run->options.command;
	const json_t *policy = run->job.policy;
	int64_t seq_length = json_integer_value(json_object_get(policy, "seq_length")), batch;
	*request = (struct wlb_auto_request){
		.model = json_string_value(json_object_get(policy, "model")),
		.gpu_types = run->job.gpus_per_node > 0 ? gpu_types : NULL,
		.max_length_ratio = 1.0,
		.sharding = WLB_SHARDING_SEQUENCE,
		.fixed = read_layout(words),
	};
	if (number_of(words, "--seq-length", seq_length, 1 << 24, &seq_length, error) < 0 ||
	    number_of(words, "--global-batch-size", 0, 1 << 20, &batch, error) < 0 ||
	    read_datasets(words, blend, error) < 0)
		return -1;
	request->seq_length = seq_length;
	request->global_batch = (int32_t)batch;
	request->blend = blend->count > 0 ? blend : NULL;
	*missing = request->model == NULL ? "--wlb-model=FILE (a config.json) to sbatch"
	           : seq_length < 1       ? "--wlb-seq-length=N to sbatch"
	           : batch < 1            ? "--global-batch-size N to the command"
	                                  : NULL;
	return *missing != NULL;
}
