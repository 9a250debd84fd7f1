/* The calls of a report, which say when ranks entered and left calls of their communicators. Pure: no I/O, and nothing
 * is allocated. */
#ifndef COORDINATOR_WLBD_API_REPORTS_CALL_READ_H
#define COORDINATOR_WLBD_API_REPORTS_CALL_READ_H

#include <jansson.h>

#include "coordinator/wlbd/detection/rank_call.h"
#include "libwlb/wlb.h"

enum { WLBD_CALLS_MAX = 1024 };

/* Sets *calls to the field 'calls' of a report, which stays the body's; it is unchanged where the field is absent.
 * Returns -1 with the value that is wrong. Whether a rank is the node's is not checked. */
int wlbd_calls_check(const json_t *body, const json_t **calls, struct wlb_error *error);

/* Reads one entry. Returns -1 with the value that is wrong. */
int wlbd_call_read(const json_t *entry, struct wlbd_rank_call *call, struct wlb_error *error);

#endif
