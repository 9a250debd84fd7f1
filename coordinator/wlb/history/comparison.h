/* Several runs beside each other: what each has reached at equal tokens or steps, and which settings differ. */
#ifndef COORDINATOR_WLB_HISTORY_COMPARISON_H
#define COORDINATOR_WLB_HISTORY_COMPARISON_H

#include <jansson.h>
#include <stdbool.h>

#include "common/output/plot_series.h"
#include "libwlb/wlb.h"

enum { WLB_COMPARED_MAX = WLB_SERIES_MAX };

struct wlb_compared {
	json_t *run;              /* the reply to GET /v1/runs/RUN */
	json_t *steps;            /* of GET /v1/runs/RUN/steps?points=N */
	struct wlb_series losses; /* by tokens or by steps; owned */
};

struct wlb_comparison {
	struct wlb_compared runs[WLB_COMPARED_MAX];
	int count;
	bool by_tokens;
	double common; /* the most tokens, or the last step, that each run has a loss at; NAN: there is none */
};

/* Makes the curves of runs[0..count), whose `run` and `steps` are set: by tokens where each run says how many its steps
 * have and by_steps is false. Returns -1 if out of memory. */
int wlb_comparison_prepare(struct wlb_comparison *comparison, bool by_steps);

/* Releases the runs and their curves. */
void wlb_comparison_free(struct wlb_comparison *comparison);

/* Returns {"by":"tokens","common":N,"runs":[{...}, ...],"differences":[...]}, as wlb(1) has it; the caller decrefs it.
 * NULL if out of memory. */
json_t *wlb_comparison_report(const struct wlb_comparison *comparison);

#endif
