#include "coordinator/wlb/run/plan/foreign_command.h"

#include <string.h>

#include "common/number.h"
#include "coordinator/wlb/run/command/nanotron_config.h"
#include "coordinator/wlb/run/command/trainer.h"

static int number_of(char *const *words, const char *name, int64_t otherwise, int64_t most, int64_t *number,
                     struct wlb_error *error)
{
	const char *text = wlb_trainer_value(words, name);
	*number = otherwise;
	return text != NULL && *text != '\0' ? wlb_number_parse(name, text, 1, most, number, error) : 0;
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

/* Another program has its own meaning of Megatron-LM's names, which does not fail. */
static int read_layout(const struct wlb_run *run, const struct wlb_trainer *trainer, struct wlb_search_fixed *fixed,
                       struct wlb_error *error)
{
	int rc = wlb_trainer_read(trainer, run->options.command, fixed, error);
	return rc < 0 && run->options.trainer != NULL ? wlb_fail_in(error, "--for=%s", run->options.trainer) : 0;
}

/* The options of a command that is not known have the names of Megatron-LM's. */
static const struct wlb_trainer *trainer_of(const struct wlb_run *run)
{
	return wlb_trainer_find(run->options.trainer != NULL ? run->options.trainer : "megatron");
}

/* *seq_length is that of the job, unless the command has another. */
static int read_batch(char *const *words, const struct wlb_trainer *trainer, int64_t *seq_length, int64_t *batch,
                      struct wlb_error *error)
{
	if (number_of(words, trainer->seq_length, *seq_length, 1 << 24, seq_length, error) < 0)
		return -1;
	return number_of(words, trainer->global_batch, 0, 1 << 20, batch, error);
}

static int read_config(char *const *words, struct wlb_search_fixed *fixed, int64_t *seq_length, int64_t *batch,
                       struct wlb_error *error)
{
	struct wlb_nanotron_config config;
	if (wlb_nanotron_config_read(words, &config, error) < 0)
		return -1;
	*seq_length = config.seq_length;
	*batch = config.global_batch;
	fixed->cp = (int)config.cp;
	return 0;
}

/* Returns -1 where the file of the trainer that the step is predicted for cannot be read. */
static int read_planned(const struct wlb_run *run, struct wlb_trainer_file *planned, struct wlb_error *error)
{
	const char *from = run->options.planned_trainer;
	if (from == NULL)
		from = trainer_of(run)->name;
	return wlb_trainer_file_read(from, planned, error) < 0 ? wlb_fail_in(error, "--trainer") : 0;
}

int wlb_run_read_foreign(const struct wlb_run *run, const char *gpu_types, struct wlb_blend *blend,
                         struct wlb_auto_request *request, const char **missing, struct wlb_error *error)
{
	const struct wlb_trainer *trainer = trainer_of(run);
	char *const *words = run->options.command;
	const json_t *policy = run->job.policy;
	int64_t seq_length = json_integer_value(json_object_get(policy, "seq_length")), batch = 0;
	*request = (struct wlb_auto_request){
		.model = json_string_value(json_object_get(policy, "model")),
		.gpu_types = run->job.gpus_per_node > 0 ? gpu_types : NULL,
		.max_length_ratio = 1.0,
		.sharding = WLB_SHARDING_SEQUENCE,
	};
	int rc = read_layout(run, trainer, &request->fixed, error);
	if (rc == 0)
		rc = trainer->config_option != NULL ? read_config(words, &request->fixed, &seq_length, &batch, error)
		                                    : read_batch(words, trainer, &seq_length, &batch, error);
	if (rc < 0 || read_datasets(words, blend, error) < 0)
		return -1;
	request->seq_length = seq_length;
	request->global_batch = (int32_t)batch;
	request->blend = blend->count > 0 ? blend : NULL;
	*missing = request->model == NULL ? "--wlb-model=FILE (a config.json) to sbatch"
	           : seq_length < 1       ? "--wlb-seq-length=N to sbatch"
	           : batch < 1            ? trainer->batch_remedy
	                                  : NULL;
	return *missing != NULL ? 1 : read_planned(run, &request->trainer, error);
}
