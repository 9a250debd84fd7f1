/* The listening socket, the limits of a request, and the table of routes. */
#ifndef WLBD_HTTP_H
#define WLBD_HTTP_H

#include "libwlb/wlb.h"

struct wlbd;

/* Binds config.listen; `address` receives what was bound, "127.0.0.1:8642". */
int wlbd_http_open(struct wlbd *wlbd, char *address, size_t size, struct wlb_error *error);
void wlbd_http_close(struct wlbd *wlbd);

#endif
