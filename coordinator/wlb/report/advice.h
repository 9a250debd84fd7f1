/* What to do next about a run, where what is recorded leaves no doubt. No I/O. */
#ifndef COORDINATOR_WLB_REPORT_ADVICE_H
#define COORDINATOR_WLB_REPORT_ADVICE_H

#include <jansson.h>

/* `run` is the reply of GET /v1/runs/RUN. Returns [{"text": a sentence or two, "command": what to type, or ""}, ...],
 * the most urgent first; empty where there is nothing to do. NULL if out of memory. The caller releases it. */
json_t *wlb_report_advice(const json_t *run);

#endif
