/* The server of the page of a run: on loopback, by one thread, with the rules of request_rules.h. */
#ifndef COORDINATOR_WLB_OPEN_PAGE_SERVER_H
#define COORDINATOR_WLB_OPEN_PAGE_SERVER_H

#include <jansson.h>

#include "coordinator/wlb/open/request_rules.h"
#include "libwlb/wlb.h"

/* Returns new data of the page, which the caller releases, or NULL with the reason. Called by the server's thread. */
typedef json_t *wlb_page_data(void *context, struct wlb_error *error);

struct wlb_page_server;

/* Listens on 127.0.0.1; port 0: on any that is free. Asks for data at most every two seconds, however many pages are
 * open. Returns NULL with the reason. */
struct wlb_page_server *wlb_page_server_start(int port, wlb_page_data *data, void *context, struct wlb_error *error);
void wlb_page_server_stop(struct wlb_page_server *server); /* NULL allowed */

int wlb_page_server_port(const struct wlb_page_server *server);
const char *wlb_page_server_token(const struct wlb_page_server *server);

#endif
