/* The head of a request: method, path, query and the headers that wlbd reads. */
#ifndef COORDINATOR_WLBD_HTTP_HEAD_H
#define COORDINATOR_WLBD_HTTP_HEAD_H

#include "coordinator/wlbd/http/exchange.h"

/* Reads the head into `exchange` and its request. *credential receives the value of the header Authorization, NULL
 * where there is none; it is valid for as long as the request. Returns -1 where the head breaks HTTP or the request has
 * no path; it is answered then. */
int wlbd_head_read(struct wlbd_exchange *exchange, const char *method, const char **credential);

/* Returns -1 where no route matches; the request is answered then. */
int wlbd_head_check_route(struct wlbd_exchange *exchange);

#endif
