/* The subcommands of `wlb ckpt`, one file each: what is in a directory of checkpoints. */
#ifndef WORKER_CHECKPOINT_CLI_COMMANDS_H
#define WORKER_CHECKPOINT_CLI_COMMANDS_H

#include "common/command.h"

extern const struct wlb_command wlb_ckpt_list;
extern const struct wlb_command wlb_ckpt_show;
extern const struct wlb_command wlb_ckpt_verify;
extern const struct wlb_command wlb_ckpt_prune;

#endif
