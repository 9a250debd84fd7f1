/* Which handler answers which request. */
#ifndef COORDINATOR_WLBD_HTTP_ROUTE_H
#define COORDINATOR_WLBD_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wlbd_request;

enum { WLBD_RUN_NAME_SIZE = 32 }; /* "4294967295_4294967294.999999" */

struct wlbd_route {
	const char *method;
	const char *pattern;   /* "*" matches a run's name */
	bool is_open;          /* needs no credential */
	bool is_read_only;     /* its handler neither changes nor keeps any value of the body */
	size_t body_max_bytes; /* of a POST */
	void (*handle)(struct wlbd_request *request);
	bool takes_alias; /* its handler has the database find the run, which may be named as users know the job */
};

struct wlbd_routes {
	const struct wlbd_route *list;
	size_t count;
};

enum wlbd_match {
	WLBD_MATCH,
	WLBD_MATCH_NO_PATH,   /* 404 */
	WLBD_MATCH_NO_METHOD, /* 405 */
	WLBD_MATCH_BAD_RUN,   /* 400: that is no run's name */
};

/* `path` has no query. Sets *route and run[] where it returns WLBD_MATCH. */
enum wlbd_match wlbd_route_match(const struct wlbd_route *routes, size_t count, const char *method, const char *path,
                                 const struct wlbd_route **route, char run[WLBD_RUN_NAME_SIZE]);

/* Whether `name` is JOBID or JOBID.N, such as "12" or "12.2". */
bool wlbd_run_name_valid(const char *name);

/* Whether `name` is a run's name, or has in place of JOBID the array's id with its task, "15_2", or that of a
 * heterogeneous job with its component, "15+1". */
bool wlbd_run_alias_valid(const char *name);

/* Returns the JOBID of a run's name, which is no alias; 0 where it is out of range. */
uint32_t wlbd_run_job_id(const char *run);

#endif
