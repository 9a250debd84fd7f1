/*
 * How many things (connections, requests, statements or tasks that wait) and bytes one user, and all users together,
 * hold of wlbd. Only counts; a user who holds nothing takes no memory.
 *
 * A user may hold up to a limit of its own while an eighth of all stays free, and else no more than what stays free. Of
 * the last eighth the first user may so have half, a second user half of the rest, and so on: a user who holds nothing
 * always gets something. root and SlurmUser may take all that is free, up to the limit of
 * one user, and have a reserve that nobody else can take.
 */
#ifndef COORDINATOR_WLBD_BUDGET_H
#define COORDINATOR_WLBD_BUDGET_H

#include <stddef.h>
#include <sys/types.h>

/* A limit that is 0 lets nothing be taken; the reserves are part of what all may hold. */
struct wlbd_budget_limits {
	size_t user_count; /* of one user */
	size_t all_count;
	size_t reserved_count;
	size_t user_bytes;
	size_t all_bytes;
	size_t reserved_bytes;
	const uid_t *slurm_user; /* may become known later; NULL: only root has the reserve */
};

enum wlbd_budget_answer {
	WLBD_BUDGET_TAKEN,
	WLBD_BUDGET_USER_FULL,
	WLBD_BUDGET_FULL, /* all users together hold too much for it, or out of memory */
};

struct wlbd_budget;

struct wlbd_budget *wlbd_budget_new(const struct wlbd_budget_limits *limits);
void wlbd_budget_free(struct wlbd_budget *budget);

/* Counts one more of the user. Each that was TAKEN leaves once. */
enum wlbd_budget_answer wlbd_budget_enter(struct wlbd_budget *budget, uid_t uid);
void wlbd_budget_leave(struct wlbd_budget *budget, uid_t uid);

/* Counts bytes of the user. Bytes that were TAKEN are given back once. */
enum wlbd_budget_answer wlbd_budget_take(struct wlbd_budget *budget, uid_t uid, size_t bytes);
void wlbd_budget_give(struct wlbd_budget *budget, uid_t uid, size_t bytes);

#endif
