/* Work with files that ranks wait for: a slow disk is not taken for a hung collective. */
#ifndef WORKER_TRAIN_FILE_WORK_H
#define WORKER_TRAIN_FILE_WORK_H

#include "worker/comm/comm.h"

/* Who waits, and for how long. */
struct wlb_file_waiting {
	struct wlb_comm *world;
	double collective_timeout_s; /* the ranks meet at least four times in it, and every second */
	double storage_timeout_s;    /* that the files of a rank may make no progress */
};

typedef int wlb_file_function(void *context, struct wlb_error *error); /* 0, or -1 with the reason */

/* Collective. Runs function(context) in a thread, which works with files and neither with the device nor with
 * communicators; NULL: this rank has no files to work with. Meanwhile the ranks meet again and again, so that none of
 * their collectives waits for a disk. Returns as wlb_agree once all functions have returned. WLB_FAILED_HERE also where
 * this rank's files made no progress for storage_timeout_s: the message names the file, the thread still runs, and what
 * `context` points to must stay. */
int wlb_work_with_files(const struct wlb_file_waiting *waiting, wlb_file_function *function, void *context,
                        struct wlb_error *error);

#endif
