/* Work with files while other ranks wait for it, so that a slow disk is not reported as a hung collective. */
#ifndef WORKER_TRAIN_FILE_WORK_H
#define WORKER_TRAIN_FILE_WORK_H

#include "worker/comm/comm.h"

/* The ranks that wait, and the bounds of the wait. */
struct wlb_file_waiting {
	struct wlb_comm *world;
	double collective_timeout_s; /* the ranks synchronize at least four times in it, and at least every second */
	double storage_timeout_s;    /* limit of the time without progress of a rank's files */
};

typedef int wlb_file_function(void *context, struct wlb_error *error); /* 0, or -1 with the reason */

/* Collective. Runs function(context) in a thread, which works with files and must use neither the device nor
 * communicators; NULL: this rank has no files to work with. Meanwhile the ranks synchronize repeatedly, so that none of
 * their collectives waits for a disk. After all functions have returned it returns as wlb_agree does. WLB_FAILED_HERE
 * also where this rank's files made no progress for storage_timeout_s: the message names the file, the thread still
 * runs, and the memory that `context` points to must not be freed. */
int wlb_work_with_files(const struct wlb_file_waiting *waiting, wlb_file_function *function, void *context,
                        struct wlb_error *error);

#endif
