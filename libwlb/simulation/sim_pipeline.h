/* Runs the passes of one replica's pipeline; each starts as soon as its input is available. */
#ifndef LIBWLB_SIMULATION_SIM_PIPELINE_H
#define LIBWLB_SIMULATION_SIM_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* One replica's pipeline: virtual stage q = chunk x pp + stage; tables are [q x micro_batches + j]. */
struct wlb_sim_pipeline {
	struct wlb_plan plan;
	int overlap_pp;
	struct wlb_pass *order;         /* of all stages, as wlb_sim_pipeline_order sets it */
	double *forward_s, *backward_s; /* how long each pass takes */
	double *send_s;                 /* from stage to next stage, [stage x micro_batches + j] */
	/* Of a shared head, else 0: a stage's share, in the last stage a part of backward_s; its rows from the last
	 * stage, or their gradient to it; [stage x micro_batches + j]. */
	double *head_s, *head_send_s;
	double *head_end_s;
	double *forward_end_s, *backward_end_s;
	double *stage_end_s;  /* [stage] */
	double *last_start_s; /* of a chunk's last backward pass, [q]; it ends at last_end_s */
	double *last_end_s;
	int64_t *next;                /* [stage]: its next pass */
	struct wlb_sim_event *events; /* NULL: not recorded */
};

/* Sets `order`, which has an entry for each event: the passes of the stages, one stage after another. */
void wlb_sim_pipeline_order(struct wlb_sim_pipeline *pipeline);

/* Runs all passes of the pipeline from second 0; returns the second at which it ends. */
double wlb_sim_pipeline_run(struct wlb_sim_pipeline *pipeline);

/* Number of virtual stages times micro-batches: passes in one direction. */
size_t wlb_sim_pipeline_passes(const struct wlb_plan *plan);

/* Number of events of a pipeline: all passes of all stages. */
size_t wlb_sim_pipeline_events(const struct wlb_plan *plan);

#endif
