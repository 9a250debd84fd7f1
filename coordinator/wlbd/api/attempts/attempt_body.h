/* The body of POST /v1/runs/RUN/attempts. Pure: no I/O. */
#ifndef COORDINATOR_WLBD_API_ATTEMPTS_ATTEMPT_BODY_H
#define COORDINATOR_WLBD_API_ATTEMPTS_ATTEMPT_BODY_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/api/attempts/links_body.h"
#include "coordinator/wlbd/api/first_exit.h"
#include "libwlb/wlb.h"

/* What the launcher reports of the previous attempt. */
struct wlbd_previous_attempt {
	const char *attempt_id; /* NULL: there was none */
	const char *step_id;    /* NULL: not known */
	int64_t exit_code;      /* WLBD_EXIT_UNKNOWN: there was none */
	struct wlbd_first_exit first_exit;
};

/* Texts and JSON point into the body. */
struct wlbd_attempt_body {
	const char *attempt_id; /* the launcher makes it, so that a repeated request gets the same reply */
	const json_t *nodes;    /* names of the job's nodes, each once */
	int64_t tasks_per_node;
	const json_t *policy; /* as it was sent; NULL: none */
	struct wlb_policy layout;
	int64_t min_nodes;
	int64_t spares;
	const char *on_rank_exit; /* "end" or "continue" */
	struct wlbd_previous_attempt previous;
	struct wlbd_links_body links;
};

/* Returns -1 with the field that is wrong. */
int wlbd_attempt_body_read(const char *run, const json_t *body, struct wlbd_attempt_body *out, struct wlb_error *error);

#endif
