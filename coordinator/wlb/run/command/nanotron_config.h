/*
 * The configuration file of nanotron, which has the layout and the batch, and no options on its command line:
 * `run_train.py --config-file FILE`. Each attempt gets a copy with its layout; the batch of a step stays that of the
 * user's file. Its parser, argparse, takes the last --config-file.
 *
 * From nanotron v0.4, v0.5 and its branch main of 2026-04 (src/nanotron/config/config.py, parallelism_config.py):
 * parallelism.dp, pp and tp, tokens.micro_batch_size, batch_accumulation_per_replica and sequence_length are required
 * in all; main has parallelism.context_parallel_size and recompute_layer as well.
 */
#ifndef COORDINATOR_WLB_RUN_COMMAND_NANOTRON_CONFIG_H
#define COORDINATOR_WLB_RUN_COMMAND_NANOTRON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlb/run/command/trainer.h"
#include "libwlb/wlb.h"

/* What the user's file says. */
struct wlb_nanotron_config {
	int64_t seq_length;
	int64_t global_batch;     /* windows of a step */
	int64_t micro_batch_size; /* windows */
	int64_t cp;
	bool has_recompute; /* a line for the layers that are recomputed */
};

/* Reads the file that the command names. Returns -1 with file, rule and remedy where there is none, or it is no such
 * file. */
int wlb_nanotron_config_read(char *const *words, struct wlb_nanotron_config *config, struct wlb_error *error);

/* Writes the copy for a layout to `path`; *has_recompute is whether it says which layers are recomputed. Returns -1 as
 * above, or where the batch cannot be divided so. */
int wlb_nanotron_config_write(char *const *words, const struct wlb_trainer_layout *layout, const char *path,
                              bool *has_recompute, struct wlb_error *error);

#endif
