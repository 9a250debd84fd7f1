/* Reads and checks the body of POST /v1/calibrations; no I/O. */
#ifndef COORDINATOR_WLBD_API_CALIBRATIONS_CALIBRATION_READ_H
#define COORDINATOR_WLBD_API_CALIBRATIONS_CALIBRATION_READ_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "libwlb/wlb.h"

enum { WLBD_NODE_TYPE_MAX = 128 };

/* Points into the body, but for gpu_type. */
struct wlbd_calibration {
	const char *node_type;
	char gpu_type[72]; /* "gpu:" and the type in Slurm's GRES, once it is found */
	int64_t ranks_per_node;
	int64_t job_id;        /* 0: made outside a job */
	const json_t *nodes;   /* array of names */
	const json_t *machine; /* what wlb_machine_file_parse accepts */
};

/* Returns -1 with the field, its value and the rule. Every number of the machine is checked as those of a machine file
 * are, and what was measured is possible (wlb_machine_plausible). */
int wlbd_calibration_read(const json_t *body, struct wlbd_calibration *calibration, struct wlb_error *error);

/* Returns -1 with the rule where the job does not run, or with the name of a node of the calibration that the job does
 * not have: nobody has measured there in that job. */
int wlbd_calibration_check_job(const struct wlbd_calibration *calibration, const struct wlb_slurm_job *job,
                               struct wlb_error *error);

#endif
