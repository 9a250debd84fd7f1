/* Reads the body of POST /v1/node_checks: what `wlb check-node` found on a node; no I/O. */
#ifndef COORDINATOR_WLBD_API_CALIBRATIONS_NODE_CHECK_READ_H
#define COORDINATOR_WLBD_API_CALIBRATIONS_NODE_CHECK_READ_H

#include <jansson.h>
#include <stdbool.h>

#include "libwlb/wlb.h"

enum { WLBD_NODE_CHECKS_MAX = 256, WLBD_NODE_CHECK_TEXT_MAX = 512 };

struct wlbd_node_check {
	const char *node;
	bool healthy;
	const char *reason;   /* of a node that is not healthy; else "" */
	const json_t *checks; /* NULL: none were sent */
	bool clears;          /* the node was repaired: what was known before counts no more */
};

/* Texts and checks are the body's. Returns -1 with the field, its value and the rule. */
int wlbd_node_check_read(const json_t *body, struct wlbd_node_check *check, struct wlb_error *error);

#endif
