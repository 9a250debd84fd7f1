#include "worker/launch/options.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, COUNT, REAL, CHOICE };

struct option_spec {
	const char *name;
	enum kind kind;
	size_t offset; /* of the field in struct wlb_train_options */
	int required;
	double initial;
	double min;
	double max;
	const char *rule; /* what a value must be; for CHOICE the words, separated by | */
	const char *help;
};

#define FIELD(name) offsetof(struct wlb_train_options, name)
#define MANY 1e12

static const struct option_spec specs[] = {
	{.name = "model",
         .kind = TEXT,
         .offset = FIELD(model),
         .required = 1,
         .rule = "FILE",
         .help = "Hugging Face config.json of a Llama model"},
	{.name = "data-path",
         .kind = TEXT,
         .offset = FIELD(data_path),
         .required = 1,
         .rule = "PREFIX",
         .help = "dataset PREFIX.bin and PREFIX.idx (wlb data build makes one)"},
	{.name = "seq-length",
         .kind = COUNT,
         .offset = FIELD(seq_length),
         .required = 1,
         .min = 1,
         .max = 1 << 24,
         .rule = "a whole number from 1 to 16777216",
         .help = "tokens a piece of a document has at most"},
	{.name = "global-batch-size",
         .kind = COUNT,
         .offset = FIELD(global_batch_size),
         .required = 1,
         .min = 1,
         .max = 1 << 24,
         .rule = "a whole number from 1 to 16777216",
         .help = "a step trains at most this many times seq-length tokens"},
	{.name = "train-iters",
         .kind = COUNT,
         .offset = FIELD(train_iters),
         .required = 1,
         .min = 1,
         .max = MANY,
         .rule = "a whole number of at least 1",
         .help = "steps to train"},
	{.name = "lr",
         .kind = REAL,
         .offset = FIELD(lr),
         .required = 1,
         .min = DBL_MIN,
         .max = 1e3,
         .rule = "a number above 0, such as 3e-4",
         .help = "highest learning rate"},
	{.name = "min-lr",
         .kind = REAL,
         .offset = FIELD(min_lr),
         .max = 1e3,
         .rule = "a number from 0 to --lr",
         .help = "learning rate after decay"},
	{.name = "lr-warmup-iters",
         .kind = COUNT,
         .offset = FIELD(lr_warmup_iters),
         .max = MANY,
         .rule = "a whole number of at least 0",
         .help = "steps of linear warm-up"},
	{.name = "lr-decay-iters",
         .kind = COUNT,
         .offset = FIELD(lr_decay_iters),
         .max = MANY,
         .rule = "a whole number of at least 0",
         .help = "step at which min-lr is reached (0: train-iters)"},
	{.name = "lr-decay-style",
         .kind = CHOICE,
         .offset = FIELD(lr_decay_style),
         .initial = WLB_LR_COSINE,
         .rule = "constant|linear|cosine",
         .help = "how the learning rate falls"},
	{.name = "weight-decay",
         .kind = REAL,
         .offset = FIELD(weight_decay),
         .initial = 0.01,
         .max = 1e3,
         .rule = "a number of at least 0",
         .help = "decoupled weight decay of matrices"},
	{.name = "adam-beta1",
         .kind = REAL,
         .offset = FIELD(adam_beta1),
         .initial = 0.9,
         .max = 1 - DBL_EPSILON,
         .rule = "a number from 0 to below 1",
         .help = "decay of the first moment"},
	{.name = "adam-beta2",
         .kind = REAL,
         .offset = FIELD(adam_beta2),
         .initial = 0.999,
         .max = 1 - DBL_EPSILON,
         .rule = "a number from 0 to below 1",
         .help = "decay of the second moment"},
	{.name = "adam-eps",
         .kind = REAL,
         .offset = FIELD(adam_eps),
         .initial = 1e-8,
         .min = DBL_MIN,
         .max = 1,
         .rule = "a number above 0",
         .help = "epsilon of AdamW"},
	{.name = "clip-grad",
         .kind = REAL,
         .offset = FIELD(clip_grad),
         .initial = 1.0,
         .max = 1e9,
         .rule = "a number of at least 0",
         .help = "largest global norm of the gradients (0: no clipping)"},
	{.name = "init-method-std",
         .kind = REAL,
         .offset = FIELD(init_method_std),
         .initial = 0.02,
         .max = 10,
         .rule = "a number from 0 to 10",
         .help = "standard deviation of initial weights"},
	{.name = "seed",
         .kind = COUNT,
         .offset = FIELD(seed),
         .initial = 1234,
         .max = MANY,
         .rule = "a whole number of at least 0",
         .help = "of initial weights and document order"},
	{.name = "save", .kind = TEXT, .offset = FIELD(save), .rule = "DIR", .help = "where checkpoints go"},
	{.name = "load",
         .kind = TEXT,
         .offset = FIELD(load),
         .rule = "DIR",
         .help = "continue from the newest checkpoint there; start afresh when there is none"},
	{.name = "save-interval",
         .kind = COUNT,
         .offset = FIELD(save_interval),
         .max = MANY,
         .rule = "a whole number of at least 0",
         .help = "steps between checkpoints (0: only after the last step)"},
	{.name = "keep",
         .kind = COUNT,
         .offset = FIELD(keep),
         .max = 1e6,
         .rule = "a whole number from 0 to 1000000",
         .help = "newest checkpoints to keep (0: all)"},
	{.name = "dtype",
         .kind = CHOICE,
         .offset = FIELD(dtype),
         .initial = WLB_FLOAT32,
         .rule = "float32|float64",
         .help = "element type"},
	{.name = "device",
         .kind = CHOICE,
         .offset = FIELD(device),
         .initial = WLB_DEVICE_CPU,
         .rule = "cpu|cuda",
         .help = "what computes"},
	{.name = "threads",
         .kind = COUNT,
         .offset = FIELD(threads),
         .max = 1024,
         .rule = "a whole number from 0 to 1024",
         .help = "threads of a rank (0: the node's CPUs divided by its ranks)"},
	{.name = "max-tokens-per-micro-batch",
         .kind = COUNT,
         .offset = FIELD(max_tokens),
         .max = 1 << 26,
         .rule = "0 or a whole number from seq-length to 67108864",
         .help = "what one forward and backward pass holds at most, on all its context-parallel ranks (0: as "
                 "micro-batch-size and packing give)"},
	{.name = "micro-batch-size",
         .kind = COUNT,
         .offset = FIELD(micro_batch_size),
         .initial = 1,
         .min = 1,
         .max = 1 << 24,
         .rule = "a whole number from 1 to 16777216",
         .help = "a micro-batch is for this many times seq-length tokens"},
	{.name = "packing",
         .kind = CHOICE,
         .offset = FIELD(packing),
         .initial = WLB_STRATEGY_BALANCED,
         .rule = "balanced|greedy|fixed|plain",
         .help = "how documents become micro-batches (default balanced: of equal work, which may hold a document "
                 "back for a few steps)"},
	{.name = "cp-sharding",
         .kind = CHOICE,
         .offset = FIELD(cp_sharding),
         .initial = WLB_SHARDING_ADAPTIVE,
         .rule = "per-sequence|per-document|adaptive",
         .help = "how context-parallel ranks share a micro-batch (default adaptive)"},
	{.name = "num-virtual-stages-per-pipeline-rank",
         .kind = COUNT,
         .offset = FIELD(virtual_stages),
         .initial = 1,
         .min = 1,
         .max = 1 << 12,
         .rule = "a whole number from 1 to 4096",
         .help = "chunks of layers on each pipeline stage: above 1 the interleaved schedule"},
	{.name = "recompute-granularity",
         .kind = CHOICE,
         .offset = FIELD(recompute),
         .initial = WLB_RECOMPUTE_NONE,
         .rule = "none|selective|full",
         .help = "what is computed again in the backward pass to save memory (default none; selective: what is cheap; "
                 "full: whole layers)"},
	{.name = "layout",
         .kind = TEXT,
         .offset = FIELD(layout),
         .rule = "auto|off|tp=T,cp=C,pp=P[,dp=D]",
         .help = "how ranks share the work (default: WLB_LAYOUT, else auto)"},
	{.name = "metrics-file",
         .kind = TEXT,
         .offset = FIELD(metrics_file),
         .rule = "FILE",
         .help = "one JSON line a step is appended"},
	{.name = "log-interval",
         .kind = COUNT,
         .offset = FIELD(log_interval),
         .initial = 10,
         .min = 1,
         .max = MANY,
         .rule = "a whole number of at least 1",
         .help = "steps between lines on standard output"},
	{.name = "distributed-timeout-minutes",
         .kind = REAL,
         .offset = FIELD(timeout_minutes),
         .initial = 10,
         .min = 0.001,
         .max = 1e6,
         .rule = "a number of at least 0.001",
         .help = "longest a rank waits in one collective before it ends the run"},
	{.name = "storage-timeout-minutes",
         .kind = REAL,
         .offset = FIELD(storage_timeout_minutes),
         .max = 1e6,
         .rule = "a number of at least 0",
         .help = "longest that reading or writing a file makes no progress before the rank ends the run; below "
                 "distributed-timeout-minutes (0: half of it)"},
};

enum { SPECS = sizeof(specs) / sizeof(specs[0]), HELP = SPECS };

static int refuse(const struct option_spec *spec, const char *value, struct wlb_error *error)
{
	return wlb_fail(error, "--%s '%.200s': it must be %s%s", spec->name, value,
	                spec->kind == CHOICE ? "one of " : "", spec->rule);
}

static int parse_count(const struct option_spec *spec, const char *value, int64_t *field, struct wlb_error *error)
{
	char *end = NULL;
	errno = 0;
	long long number = strtoll(value, &end, 10);
	if (errno != 0 || end == value || *end != '\0' || (double)number < spec->min || (double)number > spec->max)
		return refuse(spec, value, error);
	*field = number;
	return 0;
}

static int parse_real(const struct option_spec *spec, const char *value, double *field, struct wlb_error *error)
{
	char *end = NULL;
	double number = strtod(value, &end);
	if (end == value || *end != '\0' || !isfinite(number) || number < spec->min || number > spec->max)
		return refuse(spec, value, error);
	*field = number;
	return 0;
}

/* The index of the value among the words of the rule. */
static int parse_choice(const struct option_spec *spec, const char *value, int *field, struct wlb_error *error)
{
	int index = 0;
	for (const char *word = spec->rule;; index++) {
		size_t length = strcspn(word, "|");
		if (strlen(value) == length && strncmp(value, word, length) == 0) {
			*field = index;
			return 0;
		}
		if (word[length] == '\0')
			return refuse(spec, value, error);
		word += length + 1;
	}
}

static int set(const struct option_spec *spec, const char *value, struct wlb_train_options *options,
               struct wlb_error *error)
{
	void *field = (char *)options + spec->offset;
	switch (spec->kind) {
	case COUNT:
		return parse_count(spec, value, field, error);
	case REAL:
		return parse_real(spec, value, field, error);
	case CHOICE:
		return parse_choice(spec, value, field, error);
	case TEXT:
		break;
	}
	if (*value == '\0')
		return refuse(spec, value, error);
	*(const char **)field = value;
	return 0;
}

static void set_initial(struct wlb_train_options *options)
{
	*options = (struct wlb_train_options){0};
	for (int i = 0; i < SPECS; i++) {
		void *field = (char *)options + specs[i].offset;
		if (specs[i].kind == COUNT)
			*(int64_t *)field = (int64_t)specs[i].initial;
		else if (specs[i].kind == REAL)
			*(double *)field = specs[i].initial;
		else if (specs[i].kind == CHOICE)
			*(int *)field = (int)specs[i].initial;
	}
}

/* Rules between options, once all are known. */
static int check_together(struct wlb_train_options *o, struct wlb_error *error)
{
	if (o->min_lr > o->lr)
		return wlb_fail(error, "--min-lr %g: it must not exceed --lr %g", o->min_lr, o->lr);
	if (o->lr_decay_iters == 0)
		o->lr_decay_iters = o->train_iters;
	if (o->lr_warmup_iters >= o->lr_decay_iters && o->lr_warmup_iters > 0)
		return wlb_fail(error,
		                "--lr-warmup-iters %lld: it must be below --lr-decay-iters %lld (or --train-iters)",
		                (long long)o->lr_warmup_iters, (long long)o->lr_decay_iters);
	if (o->max_tokens != 0 && o->max_tokens < o->seq_length)
		return wlb_fail(error, "--max-tokens-per-micro-batch %lld: it must be at least --seq-length %lld",
		                (long long)o->max_tokens, (long long)o->seq_length);
	if (o->storage_timeout_minutes == 0.0)
		o->storage_timeout_minutes = o->timeout_minutes / 2.0;
	if (o->storage_timeout_minutes >= o->timeout_minutes)
		return wlb_fail(error,
		                "--storage-timeout-minutes %g: it must be below --distributed-timeout-minutes %g",
		                o->storage_timeout_minutes, o->timeout_minutes);
	if (o->save == NULL && o->save_interval > 0)
		return wlb_fail(error, "--save-interval %lld: --save DIR must say where checkpoints go",
		                (long long)o->save_interval);
	return 0;
}

static void make_long_options(struct option long_options[SPECS + 2])
{
	for (int i = 0; i < SPECS; i++)
		long_options[i] = (struct option){specs[i].name, required_argument, NULL, i};
	long_options[HELP] = (struct option){"help", no_argument, NULL, HELP};
	long_options[HELP + 1] = (struct option){0};
}

int wlb_train_options_parse(int argc, char **argv, struct wlb_train_options *options, struct wlb_error *error)
{
	struct option long_options[SPECS + 2];
	char given[SPECS] = {0};
	make_long_options(long_options);
	set_initial(options);
	opterr = 0;
	optind = 0; /* glibc: start over, also where a test parses twice */
	for (int chosen; (chosen = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
		if (chosen == HELP || chosen == 'h') {
			options->help = 1;
			return 0;
		}
		if (chosen == ':')
			return wlb_fail(error, "%s: it needs a value; wlb-worker train --help lists what is taken",
			                argv[optind - 1]);
		if (chosen == '?')
			return wlb_fail(error, "%.200s: no such option; wlb-worker train --help lists them",
			                argv[optind - 1]);
		if (set(&specs[chosen], optarg, options, error) < 0)
			return -1;
		given[chosen] = 1;
	}
	if (optind < argc)
		return wlb_fail(error, "'%.200s': nothing but options is taken; wlb-worker train --help lists them",
		                argv[optind]);
	for (int i = 0; i < SPECS; i++)
		if (specs[i].required && !given[i])
			return wlb_fail(error, "--%s: it is missing and must be given: %s", specs[i].name,
			                specs[i].help);
	return check_together(options, error);
}

void wlb_train_options_help(FILE *to)
{
	fputs("Usage: wlb-worker train OPTIONS\n"
	      "Trains a Llama-family transformer; started by srun --mpi=pmix, by mpirun, or alone.\n\n",
	      to);
	for (int i = 0; i < SPECS; i++) {
		const struct option_spec *spec = &specs[i];
		const char *value = spec->kind == COUNT ? "N" : spec->kind == REAL ? "X" : spec->rule;
		fprintf(to, "  --%s %s\n        %s", spec->name, value, spec->help);
		if (spec->required)
			fputs(" (required)\n", to);
		else if ((spec->kind == COUNT || spec->kind == REAL) && spec->initial > 0)
			fprintf(to, " (default %g)\n", spec->initial);
		else
			fputc('\n', to);
	}
}
