/*
 * How anything talks to wlbd: one HTTP/1.1 request with a MUNGE credential, under a deadline.
 *
 * The protocol is docs/api.md. Nothing here needs more than libmunge: the Slurm plugin links it.
 * Thread-safe as long as one connection is used by one thread.
 */
#ifndef COORDINATOR_CLIENT_CLIENT_H
#define COORDINATOR_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

/* Sent as WLB-Protocol, so that wlbd can say who must be upgraded: from 2 on, replies are proved. */
enum { WLB_PROTOCOL = 2 };

/* Where the coordinator is, how to prove who asks, and whose proof of an answer is believed. */
struct wlb_client_config {
	char host[256];
	char port[16];
	char munge_socket[108];    /* "": MUNGE's default */
	char coordinator_user[64]; /* the account wlbd runs as, a name or a number; "": root */
	uid_t coordinator_uid;     /* the same */
};

/* Reads, in this order of precedence: WLB_COORDINATOR (host:port), WLB_MUNGE_SOCKET and WLB_COORDINATOR_USER from the
 * environment; then the file WLB_CONF or /etc/wlb/wlb.conf (`coordinator = host:port`, `munge_socket = path`,
 * `coordinator_user = name`). -1 when no coordinator is named anywhere or a line is malformed. */
int wlb_client_config_load(struct wlb_client_config *config, struct wlb_error *error);

/* Parses "host:port", "[v6]:port" into the config; -1 with value, rule, example. */
int wlb_client_config_address(struct wlb_client_config *config, const char *address, struct wlb_error *error);

/* The account whose proofs are believed; -1 when this host does not know the name. */
int wlb_client_config_user(struct wlb_client_config *config, const char *user, struct wlb_error *error);

struct wlb_connection; /* kept alive between requests, reconnects by itself */

/* Does not connect yet; NULL: no memory. */
struct wlb_connection *wlb_connection_new(const struct wlb_client_config *config);
void wlb_connection_free(struct wlb_connection *connection); /* NULL allowed */

/* From now on a call also ends, failed, as soon as `fd` (an eventfd, a timerfd) is readable; -1: no more. */
void wlb_connection_cancel_on(struct wlb_connection *connection, int fd);

struct wlb_reply {
	int status;  /* HTTP status */
	bool proved; /* it is wlbd's, and the answer to this request */
	char *body;  /* NUL-terminated, the caller frees; never NULL after success */
	size_t length;
};

/* Sends one request and reads the reply; all of it (resolve, connect, send, receive) ends within
 * timeout_ms. `body` may be NULL. 0 when a reply came, whatever its status; -1 when none did (the
 * connection is then closed, and the next call opens a new one). A reply to a request below /v1 that is not proved
 * counts as none, but for {"order":"continue"} to a report: that one has `proved` false and acknowledges nothing. A
 * request that failed after it was sent may or may not have been carried out: every POST of the API is idempotent for
 * that reason. */
int wlb_connection_call(struct wlb_connection *connection, const char *method, const char *path, const char *body,
                        int timeout_ms, struct wlb_reply *reply, struct wlb_error *error);

#endif
