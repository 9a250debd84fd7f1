/*
 * The file calls of a thread, for another thread that waits for it and bounds the wait by progress instead of by total
 * time: a slow disk completes calls, a stopped disk does not.
 *
 * The functions of worker/data and worker/checkpoint report each call that may wait for a disk. In a thread that uses
 * no wlb_file_progress a report does nothing.
 */
#ifndef WORKER_DATA_FILE_PROGRESS_H
#define WORKER_DATA_FILE_PROGRESS_H

#include <pthread.h>

#include "libwlb/wlb.h"

struct wlb_file_progress {
	pthread_mutex_t lock;  /* of the members below */
	double reported_s;     /* when (wlb_now_s) */
	const char *operation; /* NULL: no call is in progress */
	double read_s;         /* in calls that read, which have ended */
	double reading_s;      /* when the one in progress began; 0: there is none */
	char path[1024];       /* truncated where longer */
};

void wlb_file_progress_init(struct wlb_file_progress *progress);
void wlb_file_progress_destroy(struct wlb_file_progress *progress);

/* From now on the calling thread reports to `progress`, which must outlive the thread; NULL: it stops reporting. */
void wlb_file_progress_use(struct wlb_file_progress *progress);
/* Reports that the calling thread begins a call on the file: "opening", "reading", "writing", "syncing", "creating",
 * "locking", "renaming" or "removing". `operation` must be a string literal. */
void wlb_file_report(const char *operation, const char *path);
/* Reports that the call reported last has returned and that no other follows at once. */
void wlb_file_report_end(void);

/* Count the time between them as that of a call that reads: for wlb_file_progress_read_s. */
void wlb_file_read_begins(void);
void wlb_file_read_ends(void);

/* Returns the seconds that the thread has spent in calls that read, with the one in progress. Any thread may call it.
 */
double wlb_file_progress_read_s(struct wlb_file_progress *progress);

/* Returns 0, or -1 where the call in progress was reported more than limit_s ago: the message names the file, the
 * operation and the limit. Any thread may call it. */
int wlb_file_progress_check(struct wlb_file_progress *progress, double limit_s, struct wlb_error *error);

#endif
