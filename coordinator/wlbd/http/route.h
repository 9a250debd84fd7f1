/* Which handler answers which request. */
#ifndef COORDINATOR_WLBD_HTTP_ROUTE_H
#define COORDINATOR_WLBD_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

struct wlbd_call;

enum { WLBD_RUN_NAME_SIZE = 24 }; /* "4294967295.999999" */

struct wlbd_route {
	const char *method;
	const char *pattern; /* "*" stands for a run's name */
	bool open;           /* no credential is asked for */
	void (*handle)(struct wlbd_call *call);
};

enum wlbd_match {
	WLBD_MATCH,
	WLBD_MATCH_NO_PATH,   /* 404 */
	WLBD_MATCH_NO_METHOD, /* 405 */
	WLBD_MATCH_BAD_RUN,   /* 400: a run is JOBID or JOBID.N */
};

/* `path` without its query. *route and run[] are set on WLBD_MATCH. */
enum wlbd_match wlbd_route_match(const struct wlbd_route *routes, size_t count, const char *method, const char *path,
                                 const struct wlbd_route **route, char run[WLBD_RUN_NAME_SIZE]);

/* "12" or "12.2". */
bool wlbd_run_name_valid(const char *name);

#endif
