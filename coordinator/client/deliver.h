/* Delivery: sends the next records of a spool in one request, or everything that earlier processes left in a folder. */
#ifndef COORDINATOR_CLIENT_DELIVER_H
#define COORDINATOR_CLIENT_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/client/client.h"
#include "coordinator/client/spool.h"

enum wlb_delivery {
	WLB_DELIVERY_DONE,        /* nothing is pending */
	WLB_DELIVERY_MORE,        /* some records were stored, others are pending: call again */
	WLB_DELIVERY_UNAVAILABLE, /* the coordinator or its database does not answer: call later; the message says why
	                           */
	WLB_DELIVERY_REFUSED,     /* it refuses all pending records permanently; the message is the coordinator's */
	WLB_DELIVERY_FAILED, /* here: the spool cannot be read, or what is refused cannot be kept; the message says why
	                      */
};

/* Sends one batch. A single record that is refused permanently is found by halving and replaced by an event
 * (wlb_spool_refuse); a notice is written for the user. */
enum wlb_delivery wlb_deliver_batch(struct wlb_connection *connection, struct wlb_spool *spool, int timeout_ms,
                                    struct wlb_error *error);

/* Spools that were in use at an earlier call: all zero at first, released with wlb_deliver_in_use_free. */
struct wlb_deliver_in_use {
	char **paths;
	int count;
};

struct wlb_deliver_options {
	const char *run_id; /* only the records of this run, of which no attempt runs any more; NULL: all */
	int64_t ended_job;  /* a job that has ended: its spools that were not written after ended_s have no writer; 0:
	                       none */
	int64_t ended_s;    /* Unix time */
	struct wlb_deliver_in_use *in_use; /* kept over the calls for ended_job: a spool of it that was in use and is
	                                      not any more has lost its writer, whenever it was written; NULL: none */
	int timeout_ms;                    /* for the whole call */
	int request_ms;                    /* for one request; 0: 5 s */
};

struct wlb_deliver_result {
	int64_t left;     /* records that are still undelivered */
	int64_t refused;  /* records that were moved into refused/ */
	int busy;         /* spools that another process is using */
	int spools;       /* the other spools */
	int kept;         /* spools that stay since they may have a writer; what is in them is stored, or refused */
	int foreign;      /* files with the name of a spool that are none, and are left alone */
	bool unavailable; /* the coordinator or its database did not answer */
	struct wlb_error foreign_why; /* of the first of the foreign files; set where there are any */
};

/* Delivers what earlier processes left in `spool_dir`, the oldest first; a missing folder counts as empty. What is
 * refused permanently is moved into refused/, and a notice is written there. If records are left, the message says why.
 * Returns -1 if the folder cannot be read. */
int wlb_deliver_folder(const struct wlb_client_config *config, const char *spool_dir,
                       const struct wlb_deliver_options *options, struct wlb_deliver_result *result,
                       struct wlb_error *error);

void wlb_deliver_in_use_free(struct wlb_deliver_in_use *in_use);

/* Whether there is a spool in the folder, in use or not, or a file that cannot be read and may be one. */
bool wlb_deliver_pending(const char *spool_dir);

/* Turns the refused records of `spool_dir` into spools again, so that wlb_deliver_folder sends them once more. Returns
 * the number of files, -1 on error. */
int wlb_deliver_restore(const struct wlb_client_config *config, const char *spool_dir, int timeout_ms,
                        struct wlb_error *error);

#endif
