/* What a launcher reports of the links between the nodes of its job: the object "links" of POST /v1/runs/RUN/attempts.
 * Pure: no I/O. */
#ifndef COORDINATOR_WLBD_API_ATTEMPTS_LINKS_BODY_H
#define COORDINATOR_WLBD_API_ATTEMPTS_LINKS_BODY_H

#include <jansson.h>
#include <stdbool.h>

#include "libwlb/wlb.h"

enum {
	WLBD_UNREACHED_MAX = 4096, /* names in all lists together: more says that all links are broken */
	WLBD_LINKS_WHY_SIZE = 512,
};

struct wlbd_links_body {
	bool can_check;          /* a client that starts no step of its own cannot */
	bool checked;            /* it has */
	const json_t *unreached; /* for a node the names of the nodes that it does not reach; NULL: nothing was found */
};

/* Every name must be one of `nodes`, an array of names. Returns -1 with the field that is wrong. */
int wlbd_links_body_read(const json_t *body, const json_t *nodes, struct wlbd_links_body *out, struct wlb_error *error);

/* Returns the node to exclude, one of `nodes`, by the links between two of these, with what it does not reach in `why`,
 * "n2 does not reach n1 and n3"; NULL: there is none. */
const char *wlbd_links_body_worst(const struct wlbd_links_body *links, const json_t *nodes,
                                  char why[WLBD_LINKS_WHY_SIZE]);

#endif
