/* Checks the body of POST /v1/runs/RUN/records: what the database would refuse is refused here, with the field. A
 * number that is not known (a loss that is not a number) is null. */
#ifndef COORDINATOR_WLBD_API_RECORDS_RECORD_CHECK_H
#define COORDINATOR_WLBD_API_RECORDS_RECORD_CHECK_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

enum {
	WLBD_RECORDS_MAX = 1000,
	WLBD_MODEL_BYTES_MAX = 65536,
	WLBD_EVIDENCE_BYTES_MAX = 16384,
	WLBD_PARTS_MAX = 32,
	WLBD_PART_NAME_BYTES_MAX = 64,
};

/* A record of type attempt_end. */
struct wlbd_attempt_end {
	const char *state; /* NULL: there is no such record; else complete, failed or ended */
	bool has_exit_code;
	int exit_code;
	struct wlbd_first_exit first_exit;
};

struct wlbd_delivery {
	const char *attempt_id; /* points into the body, as the next two do */
	const char *source;
	const json_t *records;
	int64_t job_id; /* 0: the body has none */
	int64_t first_seq;
	struct wlbd_attempt_end end; /* the first of the records; its texts point into the body */
};

/* Returns -1 with the record and field that is wrong. Sequence numbers must be first_seq, first_seq + 1, ... */
int wlbd_delivery_check(const json_t *body, struct wlbd_delivery *delivery, struct wlb_error *error);

#endif
