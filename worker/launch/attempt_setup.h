/*
 * The plan that rank 0 makes before any work and that every rank follows: the model, the layout, the checkpoint to
 * resume from, the id of the attempt. PMIx sends its bytes unchanged, so it holds no pointers.
 *
 * Without `wlb run` the layout is searched here, as if all nodes were under one switch: links across switches then cost
 * as much as links between nodes, and ranks stay where srun has put them.
 */
#ifndef WORKER_LAUNCH_ATTEMPT_SETUP_H
#define WORKER_LAUNCH_ATTEMPT_SETUP_H

#include "libwlb/wlb.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/launch/launch.h"
#include "worker/launch/options.h"
#include "worker/load/document_time.h"

enum wlb_plan_state {
	WLB_PLAN_PENDING,
	WLB_PLAN_MADE,
	WLB_PLAN_REFUSED, /* bad input */
	WLB_PLAN_FAILED,  /* not the input's fault: a file made no progress, out of memory */
};

struct wlb_train_plan {
	enum wlb_plan_state state; /* unless it is made, only state and reason are set */
	char reason[sizeof(((struct wlb_error *)0)->message)];
	struct wlb_model model;
	struct wlb_plan split; /* layout, interleaving, micro-batches, recomputation */
	enum wlb_strategy packing;
	int64_t max_tokens;                /* of a micro-batch */
	struct wlb_document_speeds speeds; /* of --machine */
	char attempt_id[64];               /* "" where nothing is recorded */
	char save_id[64];                  /* of this start of the run, in what it saves */
	char checkpoint[4096];             /* "": begin at step 1 */
	char weights[4096];                /* the folder whose weights the run begins with; "": they are drawn, or the
	                                    * checkpoint's */
	char changes[256];                 /* of a new phase, without those of the dataset; "": none */
	int keeps_order;                   /* 1: the documents go on in the checkpoint's order */
	struct wlb_checkpoint_facts facts; /* of the checkpoint */
	struct wlb_hyperparameters hyper;  /* of the optimizer and its learning rate */
	char why[8192];                    /* a record of type "plan" where the planner chose the layout, else "" */
};

/* Makes the plan from the options, the environment, the configuration and the checkpoints: for rank 0, without a device
 * and without other ranks. Returns -1 where the input is bad, WLB_UNREADABLE (worker/data/input.h) where a checkpoint
 * cannot be read now: the message says why. */
int wlb_train_plan_make(const struct wlb_launch *launch, const struct wlb_train_options *options,
                        struct wlb_train_plan *plan, struct wlb_error *error);
/* Returns the directory in which the run finds what it has saved itself; NULL: it does not look for it. */
const char *wlb_train_own_dir(const struct wlb_train_options *options);
/* Takes the facts of the checkpoint at `path`, whose shards need not be there, into the plan: for rank 0. Returns as
 * wlb_train_plan_make, also where the run does not continue it; the plan is of no use then. */
int wlb_train_plan_take(const struct wlb_train_options *options, const char *path, struct wlb_train_plan *plan,
                        struct wlb_error *error);
/* Replaces the plan's checkpoint, which is damaged, by the newest complete one of an earlier step: for rank 0. Returns
 * as wlb_train_plan_make; -1 also where there is none. */
int wlb_train_plan_fall_back(const struct wlb_train_options *options, struct wlb_train_plan *plan,
                             struct wlb_error *error);

#endif
