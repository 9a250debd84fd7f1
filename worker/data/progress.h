/* Shows on a terminal how far a build is, and how long the rest takes at the speed so far. */
#ifndef WORKER_DATA_PROGRESS_H
#define WORKER_DATA_PROGRESS_H

#include <stdint.h>

struct wlb_progress {
	int is_shown;
	int64_t bytes;   /* of all input files */
	int64_t skipped; /* of these, what an earlier build has done */
	double began_s, shown_s;
};

/* Begins; nothing is shown where the caller does not want it. */
void wlb_progress_begin(struct wlb_progress *progress, int is_shown, int64_t bytes, int64_t skipped);
/* Whether the line is old enough to be shown again. */
int wlb_progress_is_due(const struct wlb_progress *progress);
/* Shows that so many bytes of the input have been read, and what is written. */
void wlb_progress_show(struct wlb_progress *progress, int64_t bytes_done, int64_t documents, int64_t tokens);
/* Removes the line. */
void wlb_progress_end(const struct wlb_progress *progress);

#endif
