/*
 * The plan that rank 0 makes before any work and that every rank follows: the model, the layout, the checkpoint to
 * resume from, the id of the attempt. PMIx sends its bytes unchanged, so it holds no pointers.
 */
#ifndef WORKER_LAUNCH_ATTEMPT_SETUP_H
#define WORKER_LAUNCH_ATTEMPT_SETUP_H

#include <jansson.h>

#include "libwlb/wlb.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"
#include "worker/load/document_time.h"

struct wlb_train_plan {
	int refused; /* 1: bad input; only `reason` is set */
	char reason[sizeof(((struct wlb_error *)0)->message)];
	struct wlb_model model;
	struct wlb_plan split;             /* layout, interleaving, micro-batches, recomputation */
	int64_t max_tokens;                /* of a micro-batch */
	struct wlb_document_speeds speeds; /* of --machine */
	char attempt_id[64];               /* "" where nothing is recorded */
	char checkpoint[4096];             /* "": start from initial weights */
	struct wlb_checkpoint_facts facts; /* of the checkpoint */
};

/* Collective: rank 0 makes the plan, every rank receives it. `trouble`: an error that rank 0 already found, which
 * becomes the reason of a refusal, or NULL. *record: on rank 0, where the planner chose the layout, why (planner/
 * plan_record.h), for json_decref; else NULL. Returns -1 when the plan could not be shared; a refused plan is not an
 * error here. */
int wlb_train_plan_agree(struct wlb_launch *launch, const struct wlb_train_options *options, const char *trouble,
                         struct wlb_train_plan *plan, json_t **record, struct wlb_error *error);

#endif
