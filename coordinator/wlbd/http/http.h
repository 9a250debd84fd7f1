/* The listening socket and the HTTP library, which runs in the event loop. */
#ifndef COORDINATOR_WLBD_HTTP_HTTP_H
#define COORDINATOR_WLBD_HTTP_HTTP_H

#include <stddef.h>

#include "libwlb/wlb.h"

struct wlbd;
struct wlbd_http;

/* Binds config.listen; `address` receives the bound address, such as "127.0.0.1:8642". */
int wlbd_http_open(struct wlbd *wlbd, char *address, size_t size, struct wlb_error *error);
void wlbd_http_close(struct wlbd *wlbd);

#endif
