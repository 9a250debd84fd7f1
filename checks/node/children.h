/* Work in child processes, side by side, under a deadline: one that hangs, crashes or cannot be killed does not take
 * the others, or the program, with it. */
#ifndef CHECKS_NODE_CHILDREN_H
#define CHECKS_NODE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

enum wlb_child_end {
	WLB_CHILD_RUNNING,
	WLB_CHILD_DONE,    /* its result is complete */
	WLB_CHILD_REFUSED, /* its work returned -1 with an error */
	WLB_CHILD_IN_USE,  /* its work returned 1 with an error */
	WLB_CHILD_UNABLE,  /* its work returned 2 with an error */
	WLB_CHILD_BROKEN,  /* a signal ended it, or it left with another exit code */
	WLB_CHILD_LATE, /* the deadline has passed; it was killed, which the kernel may not do before its call ends */
};

struct wlb_child {
	pid_t pid; /* 0: its end was read */
	enum wlb_child_end end;
	int status;                          /* of waitpid */
	_Alignas(16) struct wlb_error error; /* the child writes it */
};

struct wlb_children {
	int count;
	double limit_s;
	size_t result_bytes;
	size_t mapped_bytes;
	struct wlb_child *list; /* [count], shared with them; their results follow, aligned to 16 bytes */
};

/* The work of a child, in its own process: it sets *result, which is zeroed and shared with the parent. Standard
 * input, output and error are /dev/null. Returns -1 with the reason where it could not be done; 1 with the reason
 * where that says nothing of what is checked: other processes use the device, or a peer is not what it should be; 2
 * with the reason where this program cannot use the device. */
typedef int wlb_child_work(int index, const void *context, void *result, struct wlb_error *error);

/* Runs the work of `count` children at once and waits for their ends, limit_s at most; then it kills those that are
 * left. The caller must have neither threads nor open devices. Returns -1 with the reason where not all could be
 * started; wlb_children_free in any case. */
int wlb_children_run(struct wlb_children *children, int count, size_t result_bytes, wlb_child_work *work,
                     const void *context, double limit_s, struct wlb_error *error);

/* The same in two parts, between which the caller may run other children. wlb_children_finish must be called before
 * wlb_children_free, also where not all could be started. */
int wlb_children_start(struct wlb_children *children, int count, size_t result_bytes, wlb_child_work *work,
                       const void *context, struct wlb_error *error);
void wlb_children_finish(struct wlb_children *children, double limit_s);

/* Takes the ends that there are; returns how many children have none yet. */
int wlb_children_left(struct wlb_children *children);

void wlb_children_free(struct wlb_children *children);

/* The memory that a child shares with its parent. */
void *wlb_child_result(const struct wlb_children *children, int index);

/* Whether a signal ended it that others send, such as the kernel where memory or a limit of processor time is used up,
 * and no fault of its own: SIGKILL that is not of wlb_children_finish, SIGTERM or SIGXCPU. */
bool wlb_child_was_killed(const struct wlb_child *child);

/* Says in words how a child ended that is not done. */
void wlb_child_describe(const struct wlb_children *children, int index, char *text, size_t size);

#endif
