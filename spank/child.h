/* A child process of slurmstepd's that does what might hang, and tells by a pipe what came of it. */
#ifndef SPANK_CHILD_H
#define SPANK_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlb_child {
	pid_t pid;
	int report; /* the reading end of its pipe */
};

/* Forks; in the child, which is the user from now on and has the writing end in *report, child->pid is 0. */
int wlb_child_start(struct wlb_child *child, int *report, struct wlb_error *error);

/* Reads what it tells into `text` (size bytes with the NUL, "" when it closes the pipe without a word), for timeout_ms
 * at most; then ends it, if it has not ended, and reaps it: slurmstepd never sees it. *status is its wait status. -1:
 * it told nothing in time. `who` is said to have given no answer. */
int wlb_child_finish(struct wlb_child *child, int timeout_ms, const char *who, char *text, size_t size, int *status,
                     struct wlb_error *error);

#endif
