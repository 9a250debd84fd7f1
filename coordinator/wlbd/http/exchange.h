/*
 * A request as the HTTP library has it. The library is suspended, which means that it does not call for this
 * connection, while wlbd works on the request; other connections go on.
 */
#ifndef COORDINATOR_WLBD_HTTP_EXCHANGE_H
#define COORDINATOR_WLBD_HTTP_EXCHANGE_H

#include <event2/event.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "coordinator/wlbd/http/route.h"

struct wlbd_request;

struct wlbd_exchanges {
	TAILQ_HEAD(, wlbd_exchange) list;
	struct event *wake; /* runs the library, which does not notice that a connection was resumed */
};

struct wlbd_exchange {
	TAILQ_ENTRY(wlbd_exchange) link;
	struct wlbd_exchanges *all;
	struct MHD_Connection *mhd;
	struct wlbd_request *request; /* owned by the exchange */
	size_t expected_bytes;        /* of the body */
	enum wlbd_match match;
	bool is_head_checked;
	bool is_body_next; /* the head was handled: data that arrives is the body */
	bool is_suspended;
	bool is_answered;    /* request->answer is complete */
	bool is_closed_next; /* the connection is closed after the reply */
};

void wlbd_exchange_suspend(struct wlbd_exchange *exchange);
void wlbd_exchange_resume(struct wlbd_exchange *exchange);

/* request->answer is complete: the library sends it. */
void wlbd_exchange_answered(struct wlbd_exchange *exchange);

/* Resumes every exchange, which the library requires before it is stopped. */
void wlbd_exchanges_resume_all(struct wlbd_exchanges *exchanges);

#endif
