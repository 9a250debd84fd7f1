/* A child process of slurmstepd for calls that may hang; it reports its result through a pipe. */
#ifndef SPANK_CHILD_H
#define SPANK_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlb_child {
	pid_t pid;
	int report; /* the reading end of its pipe */
};

/* Forks. In the child, child->pid is 0, the effective user is the job's, the kernel may end it where memory is short as
 * any process, and *report is the writing end of the pipe. */
int wlb_child_start(struct wlb_child *child, int *report, struct wlb_error *error);

/* Reads the child's report into `text` (size bytes with the NUL, "" if it closes the pipe without a report), for
 * timeout_ms at most; then ends the child, if it has not ended, and reaps it, so that slurmstepd never sees it; a child
 * that the kernel cannot end is left after a second. *status is its wait status, or the status of exit code 255 where
 * it is not known. Returns -1 if it reported nothing in time; the message names it as `who`. */
int wlb_child_finish(struct wlb_child *child, int timeout_ms, const char *who, char *text, size_t size, int *status,
                     struct wlb_error *error);

#endif
