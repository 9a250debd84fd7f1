/*
 * The options by which trainers other than wlb-worker are told their layout, by the names that they have there, and
 * what a command says of it already. Functions of words, no I/O.
 *
 * From the parsers of
 * - Megatron-LM core_v0.16.1 (2026-03): megatron/training/arguments.py, whose parser takes no abbreviations, and the
 *   dataclasses it reads (core/model_parallel_config.py, core/transformer/transformer_config.py,
 * training/training_config.py).
 *   --num-virtual-stages-per-pipeline-rank is there from core_v0.11, --dist-ckpt-optim-fully-reshardable from
 * core_v0.15.
 * - torchtitan 0.2.2, torchtitan/config/job_config.py, and 0.3.0, torchtitan/config/configs.py: names of a section and
 * a field, which tyro takes with hyphens as well. A word such as activation-checkpoint:full (0.3.0) has to be behind
 * them.
 */
#ifndef COORDINATOR_WLB_RUN_COMMAND_TRAINER_H
#define COORDINATOR_WLB_RUN_COMMAND_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_trainer_option;

/* A trainer that `wlb run --for` has. */
struct wlb_trainer {
	const char *name;
	const char *config_option;             /* for a file that has all (nanotron_config.h); NULL: it has options */
	const char *seq_length, *global_batch; /* its options for the tokens of a window, and the windows of a step */
	const char *batch_remedy;              /* for a command without the second */
	const char *reshard_remedy;            /* for a checkpoint that it does not read in another layout */
	const char *other_dp, *other_dp_why; /* an option that it needs to start with another dp; NULL: it needs none */
	const struct wlb_trainer_option *options; /* the layout, trainer.c */
};

/* The names of all, as the choices of an option. */
#define WLB_TRAINER_NAMES "megatron|torchtitan|nanotron"

/* Returns NULL for another name. */
const struct wlb_trainer *wlb_trainer_find(const char *name);

/* Returns the value of the last "OPTION VALUE" or "OPTION=VALUE" of a command, "" where no word follows, and NULL where
 * the command has no such option. In a name with a section (torchtitan) the command may have hyphens for underscores.
 */
const char *wlb_trainer_value(char *const *words, const char *option);

/* Holds in *fixed what the command says of the layout, and what the trainer does not have; the rest is left to the
 * search. Returns -1 with the last value that is not known, which is left to the search. */
int wlb_trainer_read(const struct wlb_trainer *trainer, char *const *words, struct wlb_search_fixed *fixed,
                     struct wlb_error *error);

/* Whether the trainer, started so, reads its checkpoint in a layout with another tp, cp or pp. */
bool wlb_trainer_reshards(const struct wlb_trainer *trainer, char *const *words);

/* What a trainer is told. */
struct wlb_trainer_layout {
	struct wlb_layout layout;
	int64_t micro_batch_size; /* windows; 0: only the layout is known */
	int64_t micro_batches;    /* of a replica in a step */
	int interleave;
	bool recomputes_layers; /* all, or of each chunk the first recompute_layers */
	int recompute_layers;   /* 0: all */
	const char *config;     /* the file that tells a trainer with a config_option; NULL: another trainer */
};

/* Whether it has an option for the layers that are recomputed. */
bool wlb_trainer_tells_recompute(const struct wlb_trainer *trainer);

/* Makes the command that tells the layout: the options are added behind the words, and an option that the command has
 * is not added. *made receives the words, ended by NULL, which wlb_launcher_free frees; `kept` the options that the
 * command has, separated by blanks, shortened where there is no room. Returns -1 with value, rule and remedy where the
 * command has another value than the layout. */
int wlb_trainer_tell(const struct wlb_trainer *trainer, const struct wlb_trainer_layout *layout, char *const *words,
                     char ***made, char *kept, size_t kept_size, struct wlb_error *error);

#endif
