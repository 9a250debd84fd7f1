/*
 * What a thread does with files, for another thread that waits for it and bounds the wait by progress instead of by
 * total time: a slow disk completes call after call, one that stopped does not.
 *
 * The functions of worker/data and worker/checkpoint report each call that may wait for a disk. In a thread that uses
 * no wlb_file_progress a report does nothing.
 */
#ifndef WORKER_DATA_FILE_PROGRESS_H
#define WORKER_DATA_FILE_PROGRESS_H

#include <pthread.h>

#include "libwlb/wlb.h"

struct wlb_file_progress {
	pthread_mutex_t lock;  /* of what follows */
	double reported_s;     /* when (wlb_now_s) */
	const char *operation; /* NULL: no call is under way */
	char path[1024];       /* a longer one is cut */
};

void wlb_file_progress_init(struct wlb_file_progress *progress);
void wlb_file_progress_destroy(struct wlb_file_progress *progress);

/* The calling thread reports to `progress` from now on, which must outlive it; NULL: to none. */
void wlb_file_progress_use(struct wlb_file_progress *progress);
/* The calling thread begins a call on the file: "opening", "reading", "writing", "syncing", "creating", "renaming" or
 * "removing". `operation` must be a string literal. */
void wlb_file_report(const char *operation, const char *path);
/* The call that was reported last has returned, and no other follows it now. */
void wlb_file_report_end(void);

/* 0, or -1 where the call under way was reported more than limit_s ago: the message names file, operation and limit.
 * For any thread. */
int wlb_file_progress_check(struct wlb_file_progress *progress, double limit_s, struct wlb_error *error);

#endif
