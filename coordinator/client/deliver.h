/* Delivery: the next records of a spool in one request, or whatever earlier processes left in a folder. */
#ifndef COORDINATOR_CLIENT_DELIVER_H
#define COORDINATOR_CLIENT_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/client/client.h"
#include "coordinator/client/spool.h"

enum wlb_delivery {
	WLB_DELIVERY_DONE,    /* nothing is pending */
	WLB_DELIVERY_MORE,    /* some records went over, others are pending: go on */
	WLB_DELIVERY_AWAY,    /* the coordinator or its database is away: later; the message says what failed */
	WLB_DELIVERY_REFUSED, /* it refuses all that is pending, for good; the message is its own */
};

/* One batch. A single record that is refused for good is found by halving, and an event takes its place
 * (wlb_spool_refuse); a notice is left for the user. */
enum wlb_delivery wlb_deliver_batch(struct wlb_connection *connection, struct wlb_spool *spool, int timeout_ms,
                                    struct wlb_error *error);

struct wlb_deliver_options {
	const char *run_id; /* only what this run left; NULL: everything */
	int timeout_ms;     /* for all of it */
	int request_ms;     /* for a single request; 0: 5 s */
};

struct wlb_deliver_result {
	int64_t left;    /* records that are still undelivered */
	int64_t refused; /* that were moved into refused/ */
	int busy;        /* spools that somebody is using */
	int spools;      /* spools that were looked at, beside those */
	bool away;       /* the coordinator or its database did not answer */
};

/* Delivers what earlier processes left in `spool_dir`, the oldest first; a folder that is not there has nothing. What
 * is refused for good is moved into refused/, and a notice is left there. When records are left, the message says what
 * stood in the way. -1 when the folder cannot be read. */
int wlb_deliver_folder(const struct wlb_client_config *config, const char *spool_dir,
                       const struct wlb_deliver_options *options, struct wlb_deliver_result *result,
                       struct wlb_error *error);

/* Whether there is a spool in the folder, in use or not. */
bool wlb_deliver_pending(const char *spool_dir);

/* Makes the refused records of `spool_dir` spools again, for wlb_deliver_folder to try once more. Returns how many
 * files, -1 on error. */
int wlb_deliver_restore(const struct wlb_client_config *config, const char *spool_dir, int timeout_ms,
                        struct wlb_error *error);

#endif
