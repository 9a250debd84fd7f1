/*
 * How many things (connections, or requests) and bytes one user, and how many bytes all users together, hold of wlbd.
 * Only counts; a user who holds nothing takes no memory.
 */
#ifndef COORDINATOR_WLBD_HTTP_BUDGET_H
#define COORDINATOR_WLBD_HTTP_BUDGET_H

#include <stddef.h>
#include <sys/types.h>

struct wlbd_budget_limits {
	int user_count; /* of one user: connections, or requests */
	size_t user_bytes;
	size_t all_bytes;
};

enum wlbd_budget_answer {
	WLBD_BUDGET_TAKEN,
	WLBD_BUDGET_USER_FULL,
	WLBD_BUDGET_FULL, /* all users together hold it, or out of memory */
};

struct wlbd_budget;

struct wlbd_budget *wlbd_budget_new(const struct wlbd_budget_limits *limits);
void wlbd_budget_free(struct wlbd_budget *budget);

/* Counts one more of the user. Each that was TAKEN leaves once. */
enum wlbd_budget_answer wlbd_budget_enter(struct wlbd_budget *budget, uid_t uid);
void wlbd_budget_leave(struct wlbd_budget *budget, uid_t uid);

/* Counts bytes of the user. Those that were TAKEN are given back once. */
enum wlbd_budget_answer wlbd_budget_take(struct wlbd_budget *budget, uid_t uid, size_t bytes);
void wlbd_budget_give(struct wlbd_budget *budget, uid_t uid, size_t bytes);

#endif
