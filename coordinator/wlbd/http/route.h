/* Which handler answers which request. */
#ifndef COORDINATOR_WLBD_HTTP_ROUTE_H
#define COORDINATOR_WLBD_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wlbd_call;

enum { WLBD_RUN_NAME_SIZE = 24 }; /* "4294967295.999999" */

struct wlbd_route {
	const char *method;
	const char *pattern;    /* "*" matches a run's name */
	bool is_open;           /* needs no credential */
	bool is_read_only;      /* its handler neither changes nor keeps any value of the body */
	size_t body_most_bytes; /* of a POST */
	void (*handle)(struct wlbd_call *call);
};

struct wlbd_routes {
	const struct wlbd_route *list;
	size_t count;
};

enum wlbd_match {
	WLBD_MATCH,
	WLBD_MATCH_NO_PATH,   /* 404 */
	WLBD_MATCH_NO_METHOD, /* 405 */
	WLBD_MATCH_BAD_RUN,   /* 400: a run's name is JOBID or JOBID.N */
};

/* `path` has no query. Sets *route and run[] where it returns WLBD_MATCH. */
enum wlbd_match wlbd_route_match(const struct wlbd_route *routes, size_t count, const char *method, const char *path,
                                 const struct wlbd_route **route, char run[WLBD_RUN_NAME_SIZE]);

/* Whether `name` is JOBID or JOBID.N, such as "12" or "12.2". */
bool wlbd_run_name_valid(const char *name);

/* Returns the JOBID of a run's name; 0 where it is out of range. */
uint32_t wlbd_run_job_id(const char *run);

#endif
