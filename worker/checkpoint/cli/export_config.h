/* The files beside the weights of a published model: config.json, and those of the tokenizer. */
#ifndef WORKER_CHECKPOINT_CLI_EXPORT_CONFIG_H
#define WORKER_CHECKPOINT_CLI_EXPORT_CONFIG_H

#include "worker/checkpoint/checkpoint.h"

/* Checks that config.json of the folder `from` describes the model of the checkpoint; there is nothing to check where
 * it is NULL. The message names what differs. */
int wlb_export_check_config(const char *from, const struct wlb_checkpoint_facts *facts, struct wlb_error *error);

/* Writes config.json into the folder: that of `from`, or, where it is NULL, a new one with what the checkpoint says of
 * the model; both with the type of the weights. Copies from `from` the configuration of text generation and the files
 * of a tokenizer, as far as they are there. */
int wlb_export_config(const char *from, const struct wlb_checkpoint_facts *facts, enum wlb_dtype dtype,
                      const char *folder, struct wlb_error *error);

#endif
