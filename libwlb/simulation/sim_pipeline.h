/* Runs the passes of one replica's pipeline, or of several ranks' beside each other; each starts as soon as its input
 * is available. */
#ifndef LIBWLB_SIMULATION_SIM_PIPELINE_H
#define LIBWLB_SIMULATION_SIM_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Pipelines in the same order: virtual stage q = chunk x pp + stage; tables are [q x micro_batches + j], and those of
 * lanes have `lanes` entries for each. */
struct wlb_sim_pipeline {
	struct wlb_plan plan;
	int32_t lanes; /* 1: of a replica; else the ranks that divide the micro-batches of all replicas */
	/* [j x lanes]: the first of the lanes, neighbours, that begin the passes of the micro-batch together, since
	 * they exchange keys in each layer. Not read where there is one lane. */
	int32_t *first_lane;
	int overlap_pp;
	struct wlb_pass *order;         /* of all stages, as wlb_sim_pipeline_order sets it */
	double *forward_s, *backward_s; /* how long each pass takes, of lanes */
	double *send_s;                 /* from stage to next stage, [stage x micro_batches + j] */
	/* Of a shared head, else 0: a stage's share, in the last stage a part of backward_s; its rows from the last
	 * stage, or their gradient to it; [stage x micro_batches + j]. */
	double *head_s, *head_send_s;
	double *head_end_s;                     /* of lanes */
	double *forward_end_s, *backward_end_s; /* of lanes */
	double *stage_end_s;                    /* [stage] of lanes */
	double *last_start_s;                   /* of a chunk's last backward pass, the latest lane's, [q] */
	double *last_end_s;
	int64_t *next;                /* [stage]: its next pass */
	struct wlb_sim_event *events; /* of the first lane; NULL: not recorded */
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
