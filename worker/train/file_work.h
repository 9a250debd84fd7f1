/* Runs work with files while other ranks wait for it, so that a slow disk is not reported as a hung collective. */
#ifndef WORKER_TRAIN_FILE_WORK_H
#define WORKER_TRAIN_FILE_WORK_H

#include "worker/comm/comm.h"

/* The ranks that wait, and the bounds of the wait. */
struct wlb_file_waiting {
	struct wlb_comm *world;
	double collective_timeout_s; /* the ranks synchronize at least four times in it, and at least every second */
	double storage_timeout_s;    /* limit of the time without progress of a rank's files */
};

/* Waits for at most `seconds` for this rank's work with files. Returns 1 when the work has ended, 0 when it has not, or
 * -1 where its files made no progress: the message names the file. */
typedef int wlb_file_await(void *context, double seconds, struct wlb_error *error);

/* Collective. Returns 0 when the work of every rank has ended. Until then the ranks synchronize repeatedly, so that
 * none of their collectives waits for a disk. Returns -1 where await returned -1 on this rank or a collective failed:
 * the other ranks do not know of it. */
int wlb_await_files(const struct wlb_file_waiting *waiting, wlb_file_await *await, void *context,
                    struct wlb_error *error);

typedef int wlb_file_function(void *context, struct wlb_error *error); /* 0, or less with the reason */

/* Collective. Runs function(context) in a thread, which works with files and must use neither the device nor
 * communicators; NULL: this rank has no files to work with. Meanwhile the ranks wait as in wlb_await_files. After all
 * functions have returned it returns as wlb_agree does. WLB_FAILED_HERE also where this rank's files made no progress
 * for storage_timeout_s: the message names the file, the thread still runs, and the memory that `context` points to
 * must not be freed. */
int wlb_work_with_files(const struct wlb_file_waiting *waiting, wlb_file_function *function, void *context,
                        struct wlb_error *error);

#endif
