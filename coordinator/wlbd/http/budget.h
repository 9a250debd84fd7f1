/*
 * What one user, and all of them together, may hold of wlbd at a time: connections, and bytes of requests. Pure
 * counting; a user who holds nothing is not remembered.
 */
#ifndef COORDINATOR_WLBD_HTTP_BUDGET_H
#define COORDINATOR_WLBD_HTTP_BUDGET_H

#include <stddef.h>
#include <sys/types.h>

struct wlbd_budget_limits {
	int connections; /* of one user */
	size_t user_bytes;
	size_t all_bytes;
};

enum wlbd_budget_answer {
	WLBD_BUDGET_TAKEN,
	WLBD_BUDGET_USER_FULL,
	WLBD_BUDGET_FULL, /* others hold it */
};

struct wlbd_budget;

struct wlbd_budget *wlbd_budget_new(const struct wlbd_budget_limits *limits);
void wlbd_budget_free(struct wlbd_budget *budget);

/* A connection of the user; not taken also when memory is out. What was taken is given back once. */
enum wlbd_budget_answer wlbd_budget_connect(struct wlbd_budget *budget, uid_t uid);
void wlbd_budget_disconnect(struct wlbd_budget *budget, uid_t uid);

enum wlbd_budget_answer wlbd_budget_take(struct wlbd_budget *budget, uid_t uid, size_t bytes);
void wlbd_budget_give(struct wlbd_budget *budget, uid_t uid, size_t bytes);

#endif
