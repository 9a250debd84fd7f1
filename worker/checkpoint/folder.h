/* The folders of a checkpoint directory: step_00000060, and hidden ones that are not checkpoints (yet). */
#ifndef WORKER_CHECKPOINT_FOLDER_H
#define WORKER_CHECKPOINT_FOLDER_H

#include <dirent.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/checkpoint/checkpoint.h"

enum wlb_folder_kind {
	WLB_FOLDER_FINAL,    /* DIR/step_00000060 */
	WLB_FOLDER_REPLACED, /* DIR/.step_00000060.replaced, and .replaced.1 beside it: being removed */
};

int wlb_folder_path(const char *dir, int64_t step, enum wlb_folder_kind kind, char path[4096], struct wlb_error *error);
/* DIR/.step_00000060.ID.partial, which is being written. */
int wlb_folder_partial(const struct wlb_save_place *place, int64_t step, char path[4096], struct wlb_error *error);

/* The step of a final folder's name; -1 where it is no such name. */
int64_t wlb_folder_step(const char *name);

/* Lists the steps that have a final folder, newest first; the caller frees them. Returns their number, 0 when there is
 * no dir, -1 where it is no directory or this user may not read it, WLB_UNREADABLE (input.h) where it cannot be read
 * now. */
int wlb_folder_steps(const char *dir, int64_t **steps, struct wlb_error *error);

/* Permissions for a new file in the folder: those of the folder itself, which the umask has already reduced. */
mode_t wlb_folder_file_mode(const char *path);

/* Returns -1 when the file does not exist or its size differs from that in the manifest, WLB_UNREADABLE (input.h) where
 * that cannot be known now. */
int wlb_folder_check_file(const char *path, int64_t bytes, struct wlb_error *error);

/* Removes the folder and its contents. Returns 0 also when it does not exist. */
int wlb_folder_remove(const char *path, struct wlb_error *error);
/* Lists the hidden folders. Returns their number, or -1. */
int wlb_folder_list_hidden(const char *dir, struct dirent ***list, struct wlb_error *error);
void wlb_folder_list_free(struct dirent **list, int count);
/* Returns 1 where another run may be writing the hidden folder of that name: without the lock of the directory
 * (save_lock.h) only its age says that the writer has ended. */
int wlb_folder_may_be_written(const struct wlb_save_place *place, const char *name);
/* Removes every hidden folder that a killed process left behind, but none that another run may be writing. Goes on
 * where one cannot be removed; returns -1 then, with the error of the first. */
int wlb_folder_remove_hidden(const struct wlb_save_place *place, struct wlb_error *error);

#endif
