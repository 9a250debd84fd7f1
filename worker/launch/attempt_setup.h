/*
 * What rank 0 decides before any work and every rank then follows: the model, the layout, the checkpoint to
 * resume from, the name of the attempt. It travels by PMIx as it is, so it holds no pointers.
 */
#ifndef WORKER_LAUNCH_ATTEMPT_SETUP_H
#define WORKER_LAUNCH_ATTEMPT_SETUP_H

#include "libwlb/wlb.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"

struct wlb_train_plan {
	int refused; /* 1: bad input, said by `reason`; nothing else is set */
	char reason[sizeof(((struct wlb_error *)0)->message)];
	struct wlb_model model;
	struct wlb_plan split;             /* layout, interleaving, micro-batches, recomputation */
	int64_t max_tokens;                /* of a micro-batch */
	char attempt_id[64];               /* "" where nothing is recorded */
	char checkpoint[4096];             /* "": start afresh */
	struct wlb_checkpoint_facts facts; /* of the checkpoint */
};

/* Collective: rank 0 plans, every rank receives. `trouble`: what rank 0 already knows to stand in the way, or
 * NULL; then that is the reason of the refusal. -1 when the plan could not be shared; a plan that is refused is
 * not an error here. */
int wlb_train_plan_agree(struct wlb_launch *launch, const struct wlb_train_options *options, const char *trouble,
                         struct wlb_train_plan *plan, struct wlb_error *error);

#endif
