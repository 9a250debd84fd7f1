/* The paths that users name: a checkpoint, or the directory of several. */
#ifndef WORKER_CHECKPOINT_CLI_TARGET_H
#define WORKER_CHECKPOINT_CLI_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Whether the path is one checkpoint, by its name or by a manifest in it. It need not exist. */
bool wlb_target_is_checkpoint(const char *path);
/* Returns -1 where the path is no directory, or nothing. */
int wlb_target_check(const char *path, struct wlb_error *error);
/* The same of the directory of several, which a checkpoint is not. */
int wlb_target_check_parent(const char *path, struct wlb_error *error);
/* The step that the last name of the path says; -1 where it says none. */
int64_t wlb_target_step(const char *path);
/* Sets the checkpoint that the user means: the one named, or the newest complete one of the directory. Returns an exit
 * code (common/command.h). */
int wlb_target_choose(const char *named, char path[4096], struct wlb_error *error);

#endif
