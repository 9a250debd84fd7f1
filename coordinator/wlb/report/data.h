/* The data of the page: what the coordinator says of the runs, in the bounds of a page. */
#ifndef COORDINATOR_WLB_REPORT_DATA_H
#define COORDINATOR_WLB_REPORT_DATA_H

#include <stdbool.h>

#include <jansson.h>

#include "libwlb/wlb.h"

enum { WLB_REPORT_RUNS_MAX = 8 };

struct wlb_report_wanted {
	const char *const *names; /* [count] as wlb_run_name_find() returns them */
	int count;                /* 1 to WLB_REPORT_RUNS_MAX */
	/* A run with more steps is not read whole: its curves are of steps at equal distances, between which a short
	 * peak is not seen. */
	int64_t steps_most;
	/* Commands, output files and errors of attempts, which the coordinator tells the run's owner, SlurmUser and
	 * root alone. */
	bool has_outputs;
};

/* Asks the coordinator for the runs. Returns
 * {"made_at": seconds since 1970, "version": "0.2.0", "runs": [{"run": {members of GET /v1/runs/RUN}, "curve":
 * wlb_report_curve_json(), "is_whole": whether all steps were read, "parts": wlb_part_means_json(), "pipeline":
 * wlb_report_pipeline(), "ranks": null or wlb_rank_cells(), "settings": [[name, value], ...], "advice":
 * wlb_report_advice()}]} without control characters, which the caller releases. Returns NULL with the reason. */
json_t *wlb_report_data(const struct wlb_report_wanted *wanted, struct wlb_error *error);

#endif
