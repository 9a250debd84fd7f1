/* The table of docs/api.md's requests. */
#ifndef COORDINATOR_WLBD_API_ROUTES_H
#define COORDINATOR_WLBD_API_ROUTES_H

#include "coordinator/wlbd/http/route.h"

extern const struct wlbd_routes wlbd_routes;

#endif
