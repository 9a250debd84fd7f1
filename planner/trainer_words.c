#include "planner/trainer_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"

enum {
	M = WLB_WORDS_OF_MEGATRON,
	N = WLB_WORDS_OF_NEMO,
	T = WLB_WORDS_OF_TORCHTITAN,
	COUNT = 1 << 20,
	TOKENS = 1 << 30
};

static const char in_windows[] = "give windows instead, by --training.seq_len, --training.local_batch_size, "
				 "--training.global_batch_size and --parallelism.pipeline_parallel_microbatch_size";

/* An option: its name with "_" for "-", whole or from behind a dot. The first row of a setting has the usual name. */
static const struct row {
	const char *name;
	int of; /* bits of enum wlb_words_of */
	enum {
		NUMBER,  /* 1 to `most` */
		REST,    /* the same, or -1 for what is left, which says nothing */
		FLAG,    /* 1, or what is said: true or false */
		NOT,     /* the opposite of it */
		CHOICE,  /* the index in `text`, plus `most` */
		MODULES, /* bits of enum wlb_recompute, of one or more words, or of a list in brackets */
		REFUSED, /* it cannot be planned, and `text` says what to do instead */
	} kind;
	enum wlb_setting setting;
	int64_t most;
	const char *text;
} rows[] = {
	{"tensor_model_parallel_size", M | N, NUMBER, WLB_SETTING_TP, COUNT, NULL},
	{"parallelism.tensor_parallel_degree", T, NUMBER, WLB_SETTING_TP, COUNT, NULL},
	{"tensor_parallel_degree", T, NUMBER, WLB_SETTING_TP, COUNT, NULL},
	{"context_parallel_size", M | N, NUMBER, WLB_SETTING_CP, COUNT, NULL},
	{"parallelism.context_parallel_degree", T, NUMBER, WLB_SETTING_CP, COUNT, NULL},
	{"context_parallel_degree", T, NUMBER, WLB_SETTING_CP, COUNT, NULL},
	{"pipeline_model_parallel_size", M | N, NUMBER, WLB_SETTING_PP, COUNT, NULL},
	{"parallelism.pipeline_parallel_degree", T, NUMBER, WLB_SETTING_PP, COUNT, NULL},
	{"pipeline_parallel_degree", T, NUMBER, WLB_SETTING_PP, COUNT, NULL},
	{"data_parallel_replicate_degree", T, NUMBER, WLB_SETTING_REPLICATE, COUNT, NULL},
	{"data_parallel_shard_degree", T, REST, WLB_SETTING_SHARD, COUNT, NULL},
	{"data_parallel_degree", T, REST, WLB_SETTING_SHARD, COUNT, NULL},
	{"num_virtual_stages_per_pipeline_rank", M, NUMBER, WLB_SETTING_INTERLEAVE, COUNT, NULL},
	{"virtual_pipeline_model_parallel_size", N, NUMBER, WLB_SETTING_INTERLEAVE, COUNT, NULL},
	{"num_layers_per_virtual_pipeline_stage", M, NUMBER, WLB_SETTING_CHUNK_LAYERS, COUNT, NULL},
	{"pipeline_parallel_layers_per_stage", T, NUMBER, WLB_SETTING_CHUNK_LAYERS, COUNT, NULL},
	{"pipeline_parallel_schedule", T, CHOICE, WLB_SETTING_SCHEDULE, 0, "1F1B|Interleaved1F1B"},
	{"account_for_embedding_in_pipeline_split", M | N, FLAG, WLB_SETTING_EMBEDDING, 0, NULL},
	{"account_for_loss_in_pipeline_split", M | N, FLAG, WLB_SETTING_LOSS, 0, NULL},
	{"decoder_first_pipeline_num_layers", M, NUMBER, WLB_SETTING_FIRST_LAYERS, COUNT, NULL},
	{"num_layers_in_first_pipeline_stage", N, NUMBER, WLB_SETTING_FIRST_LAYERS, COUNT, NULL},
	{"decoder_last_pipeline_num_layers", M, NUMBER, WLB_SETTING_LAST_LAYERS, COUNT, NULL},
	{"num_layers_in_last_pipeline_stage", N, NUMBER, WLB_SETTING_LAST_LAYERS, COUNT, NULL},
	{"micro_batch_size", M | N, NUMBER, WLB_SETTING_MICRO_BATCH, COUNT, NULL},
	{"parallelism.pipeline_parallel_microbatch_size", T, NUMBER, WLB_SETTING_MICRO_BATCH, COUNT, NULL},
	{"training.local_batch_size", T, NUMBER, WLB_SETTING_LOCAL_BATCH, COUNT, NULL},
	{"training.batch_size", T, NUMBER, WLB_SETTING_LOCAL_BATCH, COUNT, NULL},
	{"global_batch_size", M | N, NUMBER, WLB_SETTING_GLOBAL_BATCH, COUNT, NULL},
	{"training.global_batch_size", T, REST, WLB_SETTING_GLOBAL_BATCH, COUNT, NULL},
	{"seq_length", M | N, NUMBER, WLB_SETTING_WINDOW, TOKENS, NULL},
	{"encoder_seq_length", N, NUMBER, WLB_SETTING_WINDOW, TOKENS, NULL},
	{"training.seq_len", T, NUMBER, WLB_SETTING_WINDOW, TOKENS, NULL},
	{"recompute_granularity", M | N, CHOICE, WLB_SETTING_RECOMPUTE, WLB_RECOMPUTE_SELECTIVE, "selective|full"},
	{"recompute_activations", M, FLAG, WLB_SETTING_RECOMPUTE, 0, NULL},
	{"activations_checkpoint_granularity", N, CHOICE, WLB_SETTING_RECOMPUTE, WLB_RECOMPUTE_SELECTIVE,
         "selective|full"},
	{"activation_checkpoint.mode", T, CHOICE, WLB_SETTING_RECOMPUTE, 0, "none|selective|full"},
	{"recompute_modules", M | N, MODULES, WLB_SETTING_RECOMPUTE_MODULES, 0, NULL},
	{"recompute_method", M | N, CHOICE, WLB_SETTING_RECOMPUTE_BLOCK, 0, "uniform|block"},
	{"activations_checkpoint_method", N, CHOICE, WLB_SETTING_RECOMPUTE_BLOCK, 0, "uniform|block"},
	{"recompute_num_layers", M | N, NUMBER, WLB_SETTING_RECOMPUTE_LAYERS, COUNT, NULL},
	{"activations_checkpoint_num_layers", N, NUMBER, WLB_SETTING_RECOMPUTE_LAYERS, COUNT, NULL},
	{"selective_ac_option", T, CHOICE, WLB_SETTING_RECOMPUTE_EVERY, 0, "op|1|2|3|4|5|6|7|8"},
	{"use_distributed_optimizer", M | N, FLAG, WLB_SETTING_OPTIMIZER_SHARDED, 0, NULL},
	{"data_parallel_sharding_strategy", M | N, CHOICE, WLB_SETTING_SHARDING, 0,
         "no_shard|optim|optim_grads|optim_grads_params"},
	{"use_megatron_fsdp", M, FLAG, WLB_SETTING_FSDP, 0, NULL},
	{"use_torch_fsdp2", M, REFUSED, 0, 0,
         "it is planned as TorchTitan's: give its options with --trainer torchtitan"},
	{"fsdp_reshard_after_forward", T, CHOICE, WLB_SETTING_RESHARD, 0, "default|always|never"},
	{"sequence_parallel", M | N, FLAG, WLB_SETTING_SEQUENCE_PARALLEL, 0, NULL},
	{"overlap_grad_reduce", M | N, FLAG, WLB_SETTING_OVERLAP_GRADIENTS, 0, NULL},
	{"overlap_grad_sync", N, FLAG, WLB_SETTING_OVERLAP_GRADIENTS, 0, NULL},
	{"overlap_param_gather", M | N, FLAG, WLB_SETTING_OVERLAP_PARAMETERS, 0, NULL},
	{"overlap_param_sync", N, FLAG, WLB_SETTING_OVERLAP_PARAMETERS, 0, NULL},
	{"no_overlap_p2p_communication", M, NOT, WLB_SETTING_OVERLAP_PP, 0, NULL},
	{"overlap_p2p_comm", N, FLAG, WLB_SETTING_OVERLAP_PP, 0, NULL},
	{"tp_comm_overlap", M | N, FLAG, WLB_SETTING_OVERLAP_TP, 0, NULL},
	{"ub_tp_comm_overlap", N, FLAG, WLB_SETTING_OVERLAP_TP, 0, NULL},
	{"grad_reduce_in_bf16", M, FLAG, WLB_SETTING_BFLOAT16_GRADIENTS, 0, NULL},
	{"grad_reduce_in_fp32", N, NOT, WLB_SETTING_BFLOAT16_GRADIENTS, 0, NULL},
	{"main_grads_dtype", M, CHOICE, WLB_SETTING_BFLOAT16_GRADIENTS, 0, "fp32|bf16"},
	{"fp8_format", M, CHOICE, WLB_SETTING_FP8, 0, "e4m3|hybrid"},
	{"fp8", N, CHOICE, WLB_SETTING_FP8, 0, "e4m3|hybrid"},
	{"fp8_recipe", M | N, CHOICE, WLB_SETTING_FP8_RECIPE, WLB_FP8_DELAYED, "delayed|tensorwise|mxfp8"},
	{"fp8_param_gather", M | N, FLAG, WLB_SETTING_FP8_PARAMETERS, 0, NULL},
	{"num_layers", M | N, NUMBER, WLB_SETTING_LAYERS, COUNT, NULL},
	{"hidden_size", M | N, NUMBER, WLB_SETTING_HIDDEN, COUNT, NULL},
	{"ffn_hidden_size", M | N, NUMBER, WLB_SETTING_FFN, COUNT, NULL},
	{"num_attention_heads", M | N, NUMBER, WLB_SETTING_HEADS, COUNT, NULL},
	{"group_query_attention", M, FLAG, WLB_SETTING_GROUPED, 0, NULL},
	{"num_query_groups", M | N, NUMBER, WLB_SETTING_KV_HEADS, COUNT, NULL},
	{"kv_channels", M | N, NUMBER, WLB_SETTING_HEAD_DIM, COUNT, NULL},
	{"vocab_size", M | N, NUMBER, WLB_SETTING_VOCABULARY, COUNT, NULL},
	{"padded_vocab_size", M, NUMBER, WLB_SETTING_PADDED_VOCABULARY, COUNT, NULL},
	{"make_vocab_size_divisible_by", M | N, NUMBER, WLB_SETTING_VOCABULARY_MULTIPLE, COUNT, NULL},
	{"swiglu", M, FLAG, WLB_SETTING_GATED, 0, NULL},
	{"untie_embeddings_and_output_weights", M, FLAG, WLB_SETTING_UNTIED, 0, NULL},
	{"share_embeddings_and_output_weights", N, NOT, WLB_SETTING_UNTIED, 0, NULL},
	{"num_experts", M | N, NUMBER, WLB_SETTING_EXPERTS, COUNT, NULL},
	{"num_nodes", N, NUMBER, WLB_SETTING_NODES, COUNT, NULL},
	{"trainer.devices", N, REST, WLB_SETTING_GPUS_PER_NODE, COUNT, NULL},
	{"expert_model_parallel_size", M | N, NUMBER, WLB_SETTING_EP, COUNT, NULL},
	{"parallelism.expert_parallel_degree", T, NUMBER, WLB_SETTING_EP, COUNT, NULL},
	{"expert_tensor_parallel_size", M | N, REFUSED, 0, 0, "leave it out: experts are planned with tp"},
	{"pipeline_model_parallel_layout", M | N, REFUSED, 0, 0,
         "leave it out: only the first and the last stage are planned with another number of layers"},
	{"pipeline_parallel_microbatches", T, REFUSED, 0, 0,
         "give the windows of one instead: --parallelism.pipeline_parallel_microbatch_size"},
	{"num_tokens_per_microbatch_per_dp_rank", T, REFUSED, 0, 0, in_windows},
	{"num_tokens_per_train_step", T, REFUSED, 0, 0, in_windows},
	{"max_context_length", T, REFUSED, 0, 0, in_windows},
	{"num_pp_microbatches", T, REFUSED, 0, 0, in_windows},
	{"yaml_cfg", M, REFUSED, 0, 0, "files are not read: give the options that it has as words"},
	{"config_name", N, REFUSED, 0, 0, "files are not read: give what it sets as words"},
	{"config_file", N, REFUSED, 0, 0, "files are not read: give what it sets as words"},
	{"config", T, REFUSED, 0, 0, "what it names is not read: give its options as words"},
	{"job.config_file", T, REFUSED, 0, 0, "files are not read: give the options that it has as words"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Beginnings of names, whole or from behind the last dot, of options that do not change what a step takes. */
static const char *const other[] = {"accumulate_allreduce",
                                    "adam_",
                                    "add_qkv_bias",
                                    "apply_layernorm",
                                    "attention_dropout",
                                    "bf16",
                                    "calculate_per",
                                    "checkpoint.",
                                    "ckpt_",
                                    "clip_grad",
                                    "data_",
                                    "dataset",
                                    "decoupled_",
                                    "disable_bias",
                                    "distributed_",
                                    "dump_folder",
                                    "empty_unused",
                                    "eval_",
                                    "exit_",

                                    "hidden_dropout",
                                    "init_method",
                                    "job.",
                                    "limit_",
                                    "load",
                                    "log_",
                                    "lr",
                                    "manual_gc",
                                    "max_norm",
                                    "max_position",
                                    "max_steps",
                                    "merge_file",
                                    "metrics.",
                                    "min_lr",
                                    "mock_data",
                                    "no_create_attention",
                                    "no_load",
                                    "no_mmap",
                                    "no_save",
                                    "norm_",
                                    "normalization",
                                    "num_workers",
                                    "position_emb",
                                    "profil",
                                    "rotary_",
                                    "save",
                                    "seed",
                                    "split",
                                    "steps",
                                    "tensorboard",
                                    "tiktoken",
                                    "tokenizer",
                                    "train_iters",
                                    "train_samples",
                                    "use_mcore_models",
                                    "use_rotary",
                                    "vocab_file",
                                    "wandb",
                                    "warmup",
                                    "weight_decay"};

/* A word, taken apart. */
struct option {
	struct wlb_option_word word; /* of which the name is a part */
	const char *name;
	int bytes;         /* of the name */
	const char *value; /* behind "="; NULL: there is none */
	int form;          /* bits of the trainers that write options so */
};

static char plain(char c)
{
	return c == '-' ? '_' : c;
}

/* Whether the first bytes of the text are those of the name. */
static bool begins(const char *text, int bytes, const char *name)
{
	int i = 0;
	while (i < bytes && name[i] != '\0' && plain(text[i]) == name[i])
		i++;
	return name[i] == '\0';
}

/* Whether it has the name; `whole`: not only behind a dot. */
static bool is_named(const struct option *option, const char *name, bool whole)
{
	int from = option->bytes - (int)strlen(name);
	return from >= 0 && begins(option->name + from, option->bytes - from, name) &&
	       (from == 0 || (!whole && option->name[from - 1] == '.'));
}

static bool changes_nothing(const struct option *option)
{
	int last = option->bytes;
	while (last > 0 && option->name[last - 1] != '.')
		last--;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (begins(option->name, option->bytes, other[i]) ||
		    begins(option->name + last, option->bytes - last, other[i]))
			return true;
	return false;
}

/* Returns false for a word that is no option. */
static bool take_apart(const char *word, struct option *option)
{
	size_t dashes = strspn(word, "-");
	const char *name = dashes > 0 ? word + dashes : word + strspn(word, "+");
	size_t bytes = strcspn(name, "=");
	option->form = dashes == 0 ? N : dashes == 1 ? M | N | T : M | T;
	option->name = name;
	option->bytes = (int)bytes;
	option->value = name[bytes] == '=' ? name + bytes + 1 : NULL;
	option->word = (struct wlb_option_word){word, (int)(name + bytes - word)};
	return dashes <= 2 && isalpha((unsigned char)name[0]) && (dashes > 0 || option->value != NULL);
}

static const char *trainer_name(int of)
{
	return of & M ? "megatron" : of & N ? "nemo" : "torchtitan";
}

static const struct row *find_row(const struct option *option, int of)
{
	for (int i = 0; i < ROWS; i++) {
		int shared = rows[i].of & of & option->form;
		if (shared != 0 && is_named(option, rows[i].name, shared == M))
			return &rows[i];
	}
	return NULL;
}

int wlb_words_of_trainer(const char *trainer)
{
	for (int of = M; of <= T; of *= 2)
		if (strncmp(trainer, trainer_name(of), strlen(trainer_name(of))) == 0)
			return of;
	return -1;
}

static int fail(const struct option *option, const char *value, const char *rule, struct wlb_error *error)
{
	return wlb_fail(error, "%.*s%s%.100s: %s", option->word.bytes, option->word.text, value != NULL ? " " : "",
	                value != NULL ? value : "", rule);
}

/* Sets *truth and returns true for a text that is one. */
static bool is_truth(const char *text, int64_t *truth)
{
	bool yes = text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "True") == 0);
	bool no = text != NULL && (strcmp(text, "false") == 0 || strcmp(text, "False") == 0);
	if (yes || no)
		*truth = yes;
	return yes || no;
}

static int read_flag(const struct option *option, const char *next, int64_t *value, struct wlb_error *error)
{
	*value = 1;
	if (option->value == NULL) {
		is_truth(next, value);
		return 0;
	}
	return is_truth(option->value, value) ? 0 : fail(option, option->value, "must be true or false", error);
}

static int read_choice(const struct option *option, const char *text, const char *choices, int64_t *index,
                       struct wlb_error *error)
{
	const char *word = choices;
	char rule[128];
	for (*index = 0;; ++*index) {
		size_t bytes = strcspn(word, "|");
		if (strlen(text) == bytes && strncmp(text, word, bytes) == 0)
			return 0;
		if (word[bytes] == '\0')
			break;
		word += bytes + 1;
	}
	snprintf(rule, sizeof(rule), "must be one of %s; others are not planned", choices);
	return fail(option, text, rule, error);
}

static int read_number(const struct option *option, const char *text, const struct row *row, int64_t *value,
                       struct wlb_error *error)
{
	char name[96];
	snprintf(name, sizeof(name), "%.*s", option->word.bytes, option->word.text);
	return wlb_number_parse(name, text, 1, row->most, value, error);
}

/* Reads the names of modules in a word, between brackets, quotes and commas, and adds them. */
static int add_modules(const struct option *option, const char *text, int64_t *modules, struct wlb_error *error)
{
	static const char between[] = "[],'\" ";
	for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
		char name[64];
		enum wlb_recompute module;
		size_t bytes = strcspn(text, between);
		snprintf(name, sizeof(name), "%.*s", bytes < sizeof(name) ? (int)bytes : (int)sizeof(name) - 1, text);
		if (wlb_recompute_set_parse(name, &module, NULL) < 0 || module <= WLB_RECOMPUTE_FULL)
			return fail(option, name,
			            "must be some of core_attn, layernorm, mla_up_proj, mlp, moe, moe_act and "
			            "shared_experts; others are not planned",
			            error);
		*modules |= module;
		text += bytes;
	}
	return 0;
}

/* Of Megatron-LM's option a value is each word up to the next option; of an override the rest of the word. */
static int read_modules(const struct option *option, char *const *next, int64_t *modules, struct wlb_error *error)
{
	*modules = 0;
	if (option->value != NULL && add_modules(option, option->value, modules, error) < 0)
		return -1;
	for (; option->form != N && *next != NULL && (*next)[0] != '-'; next++)
		if (add_modules(option, *next, modules, error) < 0)
			return -1;
	return 0;
}

/* Reads the value by its row; *behind is the word behind it. Returns 1 where it says nothing: null, or what is left. */
static int read_value(const struct row *row, const struct option *option, char *const *behind, int64_t *value,
                      struct wlb_error *error)
{
	const char *text = option->value, *next = *behind;
	if (row->kind == REFUSED)
		return fail(option, NULL, row->text, error);
	if (text != NULL && (strcmp(text, "null") == 0 || strcmp(text, "None") == 0) && option->form == N) {
		*value = 1;
		return row->setting == WLB_SETTING_INTERLEAVE ? 0 : 1; /* a pipeline without chunks */
	}
	if (row->kind == MODULES)
		return read_modules(option, behind, value, error);
	if (row->kind == FLAG || row->kind == NOT) {
		int rc = read_flag(option, next, value, error);
		*value ^= row->kind == NOT;
		return rc;
	}
	if (text == NULL && next != NULL && strncmp(next, "--", 2) != 0)
		text = next;
	if (text == NULL)
		return fail(option, NULL, "a value is needed behind it", error);
	if (row->kind == REST && strcmp(text, "-1") == 0)
		return 1;
	if (row->kind != CHOICE)
		return read_number(option, text, row, value, error);
	int rc = read_choice(option, text, row->text, value, error);
	*value += row->most;
	return rc;
}

/* An option that no row of this trainer has. */
static int read_unknown(const struct option *option, struct wlb_trainer_words *read, struct wlb_error *error)
{
	const struct row *row = find_row(option, M | N | T);
	if (row != NULL)
		return wlb_fail(error, "%.*s is an option of another trainer than %s; add --trainer %s",
		                option->word.bytes, option->word.text, trainer_name(read->of),
		                trainer_name(row->of & option->form));
	if ((option->form & (int)read->of) == 0 || changes_nothing(option))
		return 0;
	if (read->unread_count < WLB_WORDS_UNREAD_MAX)
		read->unread[read->unread_count] = option->word;
	read->unread_count++;
	return 0;
}

static int read_option(const struct option *option, char *const *behind, struct wlb_trainer_words *read,
                       struct wlb_error *error)
{
	const struct row *row = find_row(option, (int)read->of);
	if (row == NULL)
		return read_unknown(option, read, error);
	int64_t value = 0;
	int rc = read_value(row, option, behind, &value, error);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	read->settings[row->setting].value = value;
	read->settings[row->setting].word = option->word;
	return 0;
}

static int check_words(char *const *words, struct wlb_error *error)
{
	int count = 0;
	for (; words[count] != NULL; count++) {
		const char *word = words[count];
		if (count == WLB_WORDS_MAX)
			return wlb_fail(error, "the command has more than %d words: give those of the layout alone",
			                WLB_WORDS_MAX);
		if (strlen(word) > WLB_WORD_BYTES_MAX)
			return wlb_fail(error, "'%.60s...': a word has at most %d bytes: leave it out", word,
			                WLB_WORD_BYTES_MAX);
		if (strpbrk(word, "$`") != NULL)
			return wlb_fail(error,
			                "'%.100s': a variable or a command in it is not expanded, and nothing is "
			                "executed here; write its value, or leave the word out",
			                word);
	}
	return 0;
}

/* Returns the first word behind the script, or behind the module that Python runs; 0: there is neither. */
static int first_option(char *const *words)
{
	for (int i = 0; words[i] != NULL; i++) {
		size_t bytes = strlen(words[i]);
		bool launcher = strncmp(words[i], "torch.distributed.", strlen("torch.distributed.")) == 0;
		if (bytes > 3 && words[i][0] != '-' && strcmp(words[i] + bytes - 3, ".py") == 0)
			return i + 1;
		if (i > 0 && strcmp(words[i - 1], "-m") == 0 && !launcher)
			return i + 1;
	}
	return 0;
}

int wlb_trainer_words_read(char *const *words, enum wlb_words_of of, struct wlb_trainer_words *read,
                           struct wlb_error *error)
{
	struct option option;
	*read = (struct wlb_trainer_words){.of = of};
	if (check_words(words, error) < 0)
		return -1;
	for (int i = first_option(words); words[i] != NULL; i++)
		if (take_apart(words[i], &option) && read_option(&option, words + i + 1, read, error) < 0)
			return -1;
	return 0;
}

int wlb_trainer_words_have(const struct wlb_trainer_words *words, enum wlb_setting setting)
{
	return words->settings[setting].word.text != NULL;
}

int64_t wlb_trainer_words_value(const struct wlb_trainer_words *words, enum wlb_setting setting, int64_t otherwise)
{
	return wlb_trainer_words_have(words, setting) ? words->settings[setting].value : otherwise;
}

void wlb_trainer_words_option(const struct wlb_trainer_words *words, enum wlb_setting setting, char *text, size_t size)
{
	const struct wlb_option_word *word = &words->settings[setting].word;
	text[0] = '\0';
	if (word->text != NULL) {
		wlb_text_format(text, size, "%.*s", word->bytes, word->text);
		return;
	}
	for (int i = 0; i < ROWS && text[0] == '\0'; i++)
		if ((rows[i].of & (int)words->of) != 0 && rows[i].setting == setting && rows[i].kind < REFUSED)
			snprintf(text, size, "%s%s", words->of == WLB_WORDS_OF_NEMO ? "" : "--", rows[i].name);
	for (char *c = text; words->of == WLB_WORDS_OF_MEGATRON && *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
}

int wlb_trainer_words_lack(const struct wlb_trainer_words *words, enum wlb_setting setting, const char *remedy,
                           struct wlb_error *error)
{
	char name[128];
	wlb_trainer_words_option(words, setting, name, sizeof(name));
	return wlb_fail(error, "the command behind -- has no %s: %s", name, remedy);
}
