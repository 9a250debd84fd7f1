#include "worker/options.h"

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
	{"model", TEXT, FIELD(model), 1, 0, 0, 0, "FILE", "Hugging Face config.json of a Llama model"},
	{"data-path", TEXT, FIELD(data_path), 1, 0, 0, 0, "PREFIX",
         "dataset PREFIX.bin and PREFIX.idx (wlb data build makes one)"},
	{"seq-length", COUNT, FIELD(seq_length), 1, 0, 1, 1 << 24, "a whole number from 1 to 16777216",
         "tokens a piece of a document has at most"},
	{"global-batch-size", COUNT, FIELD(global_batch_size), 1, 0, 1, 1 << 24, "a whole number from 1 to 16777216",
         "a step trains at most this many times seq-length tokens"},
	{"train-iters", COUNT, FIELD(train_iters), 1, 0, 1, MANY, "a whole number of at least 1", "steps to train"},
	{"lr", REAL, FIELD(lr), 1, 0, DBL_MIN, 1e3, "a number above 0, such as 3e-4", "highest learning rate"},
	{"min-lr", REAL, FIELD(min_lr), 0, 0, 0, 1e3, "a number from 0 to --lr", "learning rate after decay"},
	{"lr-warmup-iters", COUNT, FIELD(lr_warmup_iters), 0, 0, 0, MANY, "a whole number of at least 0",
         "steps of linear warm-up"},
	{"lr-decay-iters", COUNT, FIELD(lr_decay_iters), 0, 0, 0, MANY, "a whole number of at least 0",
         "step at which min-lr is reached (0: train-iters)"},
	{"lr-decay-style", CHOICE, FIELD(lr_decay_style), 0, WLB_LR_COSINE, 0, 0, "constant|linear|cosine",
         "how the learning rate falls"},
	{"weight-decay", REAL, FIELD(weight_decay), 0, 0.01, 0, 1e3, "a number of at least 0",
         "decoupled weight decay of matrices"},
	{"adam-beta1", REAL, FIELD(adam_beta1), 0, 0.9, 0, 1 - DBL_EPSILON, "a number from 0 to below 1",
         "decay of the first moment"},
	{"adam-beta2", REAL, FIELD(adam_beta2), 0, 0.999, 0, 1 - DBL_EPSILON, "a number from 0 to below 1",
         "decay of the second moment"},
	{"adam-eps", REAL, FIELD(adam_eps), 0, 1e-8, DBL_MIN, 1, "a number above 0", "epsilon of AdamW"},
	{"clip-grad", REAL, FIELD(clip_grad), 0, 1.0, 0, 1e9, "a number of at least 0",
         "largest global norm of the gradients (0: no clipping)"},
	{"init-method-std", REAL, FIELD(init_method_std), 0, 0.02, 0, 10, "a number from 0 to 10",
         "standard deviation of initial weights"},
	{"seed", COUNT, FIELD(seed), 0, 1234, 0, MANY, "a whole number of at least 0",
         "of initial weights and document order"},
	{"save", TEXT, FIELD(save), 0, 0, 0, 0, "DIR", "where checkpoints go"},
	{"load", TEXT, FIELD(load), 0, 0, 0, 0, "DIR",
         "continue from the newest checkpoint there; start afresh when there is none"},
	{"save-interval", COUNT, FIELD(save_interval), 0, 0, 0, MANY, "a whole number of at least 0",
         "steps between checkpoints (0: only after the last step)"},
	{"keep", COUNT, FIELD(keep), 0, 0, 0, 1e6, "a whole number from 0 to 1000000",
         "newest checkpoints to keep (0: all)"},
	{"dtype", CHOICE, FIELD(dtype), 0, WLB_FLOAT32, 0, 0, "float32|float64", "element type"},
	{"device", CHOICE, FIELD(device), 0, WLB_DEVICE_CPU, 0, 0, "cpu|cuda", "what computes"},
	{"threads", COUNT, FIELD(threads), 0, 0, 0, 1024, "a whole number from 0 to 1024",
         "threads of a rank (0: the node's CPUs divided by its ranks)"},
	{"max-tokens-per-micro-batch", COUNT, FIELD(max_tokens), 0, 0, 0, 1 << 26,
         "a whole number from seq-length to 67108864",
         "what one forward and backward pass holds at most (0: 1.25 x seq-length)"},
	{"layout", TEXT, FIELD(layout), 0, 0, 0, 0, "auto|off|tp=T,cp=C,pp=P[,dp=D]",
         "how ranks share the work (default: WLB_LAYOUT, else auto)"},
	{"metrics-file", TEXT, FIELD(metrics_file), 0, 0, 0, 0, "FILE", "one JSON line a step is appended"},
	{"log-interval", COUNT, FIELD(log_interval), 0, 10, 1, MANY, "a whole number of at least 1",
         "steps between lines on standard output"},
	{"distributed-timeout-minutes", REAL, FIELD(timeout_minutes), 0, 10, 0.001, 1e6, "a number of at least 0.001",
         "longest a rank waits in one collective before it ends the run"},
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
	if (o->max_tokens == 0)
		o->max_tokens = o->seq_length + (o->seq_length + 3) / 4;
	if (o->max_tokens < o->seq_length)
		return wlb_fail(error, "--max-tokens-per-micro-batch %lld: it must be at least --seq-length %lld",
		                (long long)o->max_tokens, (long long)o->seq_length);
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
