#include "coordinator/wlb/run/command/trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "coordinator/wlb/run/command/launcher.h"

/* ---- the trainers ------------------------------------------------------------------------------------------------ */

/* What an option says. */
enum value {
	TP,
	CP,
	PP,
	SHARDS,            /* -1: as many as there are ranks for */
	SEQUENCE_PARALLEL, /* no value: where tp is above 1, as the planner counts memory, and as mixtures of experts
	                      need */
	INTERLEAVE,
	SCHEDULE,
	MICRO_BATCH,
	REPLICA_BATCH, /* windows of a replica between two steps of its pipeline; without one, those of a micro-batch */
	RECOMPUTE,
	RECOMPUTE_METHOD,
	RECOMPUTE_LAYERS,
	VALUES,
};

struct wlb_trainer_option {
	const char *name;    /* NULL: the trainer has none */
	const char *kept_by; /* options, separated by blanks: with one of them in the command, this one is not added */
};

#define MEGATRON_RECOMPUTE "--recompute-granularity --recompute-activations --recompute-method"

/* Recomputation: the planner's `selective` is that of attention, which fused kernels do in any case. Megatron-LM's own
 * would do it twice, so an option is added for whole layers alone. */
static const struct wlb_trainer_option megatron[VALUES] = {
	[TP] = {"--tensor-model-parallel-size", NULL},
	[CP] = {"--context-parallel-size", NULL},
	[PP] = {"--pipeline-model-parallel-size", NULL},
	[SEQUENCE_PARALLEL] = {"--sequence-parallel", NULL},
	[INTERLEAVE] = {"--num-virtual-stages-per-pipeline-rank",
                        "--num-layers-per-virtual-pipeline-stage --pipeline-model-parallel-layout"},
	[MICRO_BATCH] = {"--micro-batch-size", NULL},
	[RECOMPUTE] = {"--recompute-granularity", MEGATRON_RECOMPUTE},
	[RECOMPUTE_METHOD] = {"--recompute-method", MEGATRON_RECOMPUTE},
	[RECOMPUTE_LAYERS] = {"--recompute-num-layers", MEGATRON_RECOMPUTE},
};

/* 0.2 and 0.3 spell recomputation differently, so the user's configuration has it. */
static const struct wlb_trainer_option torchtitan[VALUES] = {
	[TP] = {"--parallelism.tensor_parallel_degree", NULL},
	[CP] = {"--parallelism.context_parallel_degree", NULL},
	[PP] = {"--parallelism.pipeline_parallel_degree", NULL},
	[SHARDS] = {"--parallelism.data_parallel_shard_degree", NULL},
	[SCHEDULE] = {"--parallelism.pipeline_parallel_schedule", "--parallelism.pipeline_parallel_schedule"},
	[MICRO_BATCH] = {"--parallelism.pipeline_parallel_microbatch_size", NULL},
	[REPLICA_BATCH] = {"--training.local_batch_size", NULL},
};

/* Its configuration file has all. */
static const struct wlb_trainer_option nanotron[VALUES];

static const struct wlb_trainer trainers[] = {
	{
		.name = "megatron",
		.seq_length = "--seq-length",
		.global_batch = "--global-batch-size",
		.batch_remedy = "--global-batch-size N to the command",
		.reshard_remedy = "or have it save with --ckpt-format torch_dist, and with "
				  "--dist-ckpt-optim-fully-reshardable where it has --use-distributed-optimizer",
		.options = megatron,
	},
	{
		.name = "torchtitan",
		.seq_length = "--training.seq_len",
		.global_batch = "--training.global_batch_size",
		.batch_remedy = "--training.global_batch_size=N to the command",
		.reshard_remedy = "or begin without the checkpoint, in another job",
		.other_dp = "--checkpoint.exclude_from_loading",
		.other_dp_why =
			"with another dp, as after the loss of a node, it does not load the state of its data loader "
			"and fails: with --checkpoint.exclude_from_loading=dataloader it begins the data anew",
		.options = torchtitan,
	},
	{
		.name = "nanotron",
		.config_option = "--config-file",
		.reshard_remedy = "or begin without the checkpoint, in another job",
		.options = nanotron,
	},
};

const struct wlb_trainer *wlb_trainer_find(const char *name)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(trainers[0]); i++)
		if (strcmp(trainers[i].name, name) == 0)
			return &trainers[i];
	return NULL;
}

bool wlb_trainer_tells_recompute(const struct wlb_trainer *trainer)
{
	return trainer->options[RECOMPUTE].name != NULL;
}

/* ---- what a command says ----------------------------------------------------------------------------------------- */

/* Whether the word is the option, of so many bytes, or begins with it and '='. */
static bool is_option(const char *word, const char *option, size_t length)
{
	bool has_section = memchr(option, '.', length) != NULL;
	for (size_t i = 0; i < length; i++)
		if (word[i] != option[i] && (!has_section || word[i] != '-' || option[i] != '_'))
			return false;
	return word[length] == '=' || word[length] == '\0';
}

static const char *value_within(char *const *words, const char *option, size_t length)
{
	const char *value = NULL;
	for (int i = 0; words[i] != NULL; i++) {
		if (!is_option(words[i], option, length))
			continue;
		const char *next = words[i + 1] != NULL ? words[i + 1] : "";
		value = words[i][length] == '=' ? words[i] + length + 1 : next;
	}
	return value;
}

const char *wlb_trainer_value(char *const *words, const char *option)
{
	return value_within(words, option, strlen(option));
}

/* Returns an option of the list, separated by blanks, that the command has, and its length; NULL: it has none. */
static const char *find_kept(char *const *words, const char *list, size_t *length)
{
	for (const char *at = list; at != NULL && *at != '\0'; at += *length + strspn(at + *length, " ")) {
		*length = strcspn(at, " ");
		if (value_within(words, at, *length) != NULL)
			return at;
	}
	return NULL;
}

/* Leaves *number as it is where the command has no such option. */
static int read_number(char *const *words, const char *option, int32_t *number, struct wlb_error *error)
{
	const char *text = option != NULL ? wlb_trainer_value(words, option) : NULL;
	int64_t value;
	if (text == NULL)
		return 0;
	if (wlb_number_parse(option, text, 1, 1 << 20, &value, error) < 0)
		return -1;
	*number = (int32_t)value;
	return 0;
}

/* Megatron-LM's recomputation of a part of a layer is that of attention to the planner, whatever the part is. */
static int read_recompute(const struct wlb_trainer *trainer, char *const *words, struct wlb_search_fixed *fixed,
                          struct wlb_error *error)
{
	const struct wlb_trainer_option *options = trainer->options;
	const char *granularity = NULL, *method = NULL;
	size_t length;
	if (find_kept(words, options[RECOMPUTE].kept_by, &length) == NULL)
		return 0;
	granularity = wlb_trainer_value(words, options[RECOMPUTE].name);
	method = wlb_trainer_value(words, options[RECOMPUTE_METHOD].name);
	bool is_full = granularity != NULL && strcmp(granularity, "full") == 0;
	fixed->recompute = is_full ? WLB_RECOMPUTE_FULL : WLB_RECOMPUTE_SELECTIVE;
	if (is_full && method != NULL && strcmp(method, "block") == 0)
		return read_number(words, options[RECOMPUTE_LAYERS].name, &fixed->recompute_layers, error);
	return 0;
}

int wlb_trainer_read(const struct wlb_trainer *trainer, char *const *words, struct wlb_search_fixed *fixed,
                     struct wlb_error *error)
{
	const struct wlb_trainer_option *options = trainer->options;
	size_t length;
	*fixed = (struct wlb_search_fixed){.recompute = -1};
	int32_t interleave =
		options[INTERLEAVE].name == NULL || find_kept(words, options[INTERLEAVE].kept_by, &length) != NULL;
	int rc = read_number(words, options[TP].name, &fixed->tp, error);
	rc |= read_number(words, options[CP].name, &fixed->cp, error);
	rc |= read_number(words, options[PP].name, &fixed->pp, error);
	rc |= read_number(words, options[MICRO_BATCH].name, &fixed->micro_batch_windows, error);
	rc |= read_number(words, options[INTERLEAVE].name, &interleave, error);
	rc |= read_recompute(trainer, words, fixed, error);
	fixed->interleave = interleave;
	return rc;
}

bool wlb_trainer_reshards(const struct wlb_trainer *trainer, char *const *words)
{
	const char *format = wlb_trainer_value(words, "--ckpt-format");
	/* Without the second option its distributed optimizer can change dp alone. */
	return strcmp(trainer->name, "megatron") == 0 && format != NULL && strcmp(format, "torch_dist") == 0 &&
	       (wlb_trainer_value(words, "--use-distributed-optimizer") == NULL ||
	        wlb_trainer_value(words, "--dist-ckpt-optim-fully-reshardable") != NULL ||
	        wlb_trainer_value(words, "--no-load-optim") != NULL);
}

/* ---- what it is told --------------------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 24 };

/* Writes the value, "" for an option without one; false: the option is not needed. */
static bool write_value(enum value value, const struct wlb_trainer_layout *told, char text[TEXT_BYTES])
{
	const struct wlb_layout *layout = &told->layout;
	bool is_pipeline = layout->pp > 1, is_known = told->micro_batch_size > 0;
	int64_t replica = is_pipeline ? told->micro_batch_size * told->micro_batches : told->micro_batch_size;
	const struct {
		bool is_told;
		const char *text; /* NULL: the number */
		int64_t number;
	} values[VALUES] = {
		[TP] = {true, NULL, layout->tp},
		[CP] = {true, NULL, layout->cp},
		[PP] = {true, NULL, layout->pp},
		[SHARDS] = {true, "-1", 0},
		[SEQUENCE_PARALLEL] = {layout->tp > 1, "", 0},
		[INTERLEAVE] = {is_known && told->interleave > 1, NULL, told->interleave},
		[SCHEDULE] = {is_known && is_pipeline, "1F1B", 0},
		[MICRO_BATCH] = {is_known, NULL, told->micro_batch_size},
		[REPLICA_BATCH] = {is_known, NULL, replica},
		[RECOMPUTE] = {told->recomputes_layers, "full", 0},
		[RECOMPUTE_METHOD] = {told->recomputes_layers, told->recompute_layers > 0 ? "block" : "uniform", 0},
		[RECOMPUTE_LAYERS] = {told->recomputes_layers, NULL,
	                              told->recompute_layers > 0 ? told->recompute_layers : 1},
	};
	if (values[value].text != NULL)
		snprintf(text, TEXT_BYTES, "%s", values[value].text);
	else
		snprintf(text, TEXT_BYTES, "%" PRId64, values[value].number);
	return values[value].is_told;
}

static void add_kept(char *kept, size_t size, const char *option)
{
	size_t used = strlen(kept);
	if (used + strlen(option) + sizeof(" ") <= size)
		snprintf(kept + used, size - used, "%s%s", used > 0 ? " " : "", option);
}

/* An option without a value has none to compare. */
static int check_value(const struct wlb_trainer *trainer, const char *option, const char *has, const char *text,
                       const struct wlb_layout *layout, struct wlb_error *error)
{
	char shown[64];
	if (text[0] == '\0' || strtoll(has, NULL, 10) == strtoll(text, NULL, 10))
		return 0;
	wlb_layout_format(layout, shown, sizeof(shown));
	return wlb_fail(error,
	                "--for=%s: the command has %s %.40s, and with the layout %s it must be %s: leave it out of the "
	                "command, so that each attempt has its own, or give sbatch --wlb-layout=auto",
	                trainer->name, option, has, shown, text);
}

/* Returns the index before which words are added. */
static int find_place(char *const *words)
{
	static const char union_name[] = "activation-checkpoint:";
	int at = 0;
	for (; words[at] != NULL; at++) {
		size_t i = 0;
		while (union_name[i] != '\0' && (words[at][i] == '_' ? '-' : words[at][i]) == union_name[i])
			i++;
		if (union_name[i] == '\0')
			break;
	}
	return at;
}

/* Writes the option for the value to *word, which the caller frees; NULL: none is to be added. */
static int make_word(const struct wlb_trainer *trainer, enum value value, const struct wlb_trainer_layout *told,
                     char *const *words, char **word, char *kept, size_t kept_size, struct wlb_error *error)
{
	const struct wlb_trainer_option *option = &trainer->options[value];
	char text[TEXT_BYTES];
	size_t length;
	*word = NULL;
	if (option->name == NULL)
		return 0;
	bool is_told = write_value(value, told, text);
	const char *has = wlb_trainer_value(words, option->name);
	if (has != NULL)
		add_kept(kept, kept_size, option->name);
	if (!is_told || find_kept(words, option->kept_by, &length) != NULL)
		return 0;
	if (has != NULL)
		return check_value(trainer, option->name, has, text, &told->layout, error);
	if (asprintf(word, "%s%s%s", option->name, text[0] != '\0' ? "=" : "", text) >= 0)
		return 0;
	*word = NULL;
	return wlb_fail(error, "out of memory for a command");
}

static int make_config_word(const struct wlb_trainer *trainer, const char *path, char **word, struct wlb_error *error)
{
	if (asprintf(word, "%s=%s", trainer->config_option, path) >= 0)
		return 0;
	*word = NULL;
	return wlb_fail(error, "out of memory for a command");
}

int wlb_trainer_tell(const struct wlb_trainer *trainer, const struct wlb_trainer_layout *layout, char *const *words,
                     char ***made, char *kept, size_t kept_size, struct wlb_error *error)
{
	int count = 0, place = find_place(words), at = 0, rc = 0;
	while (words[count] != NULL)
		count++;
	char **list = calloc((size_t)count + VALUES + 2, sizeof(*list));
	kept[0] = '\0';
	if (list == NULL)
		return wlb_fail(error, "out of memory for a command");
	for (int i = 0; i <= count && rc == 0; i++) {
		for (int value = 0; i == place && value < VALUES && rc == 0; value++) {
			rc = make_word(trainer, (enum value)value, layout, words, &list[at], kept, kept_size, error);
			at += list[at] != NULL;
		}
		if (rc == 0 && i == place && layout->config != NULL)
			rc = make_config_word(trainer, layout->config, &list[at++], error);
		if (rc == 0 && i < count && (list[at++] = strdup(words[i])) == NULL)
			rc = wlb_fail(error, "out of memory for a command");
	}
	if (rc == 0)
		*made = list;
	else
		wlb_launcher_free(list);
	return rc;
}
