/* What a run was told to do, as names and values. No I/O. */
#ifndef COORDINATOR_WLB_REPORT_SETTINGS_H
#define COORDINATOR_WLB_REPORT_SETTINGS_H

#include <jansson.h>

/* `run` is the reply of GET /v1/runs/RUN. Returns [[name, value], ...], texts, 200 at most: the job, its options
 * ("policy.layout"), the newest attempt's layout and device, batch and lengths, and the model ("model.hidden_size").
 * Two runs differ where these do. NULL if out of memory. The caller releases it. */
json_t *wlb_report_settings(const json_t *run);

#endif
