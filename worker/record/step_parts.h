/* Lists the parts into which the time of a step is divided. */
#ifndef WORKER_RECORD_STEP_PARTS_H
#define WORKER_RECORD_STEP_PARTS_H

/* Parts of the wall time of a step; their sum is slightly less than the step. Communication is the time that blocked
 * the rank, without communication that was hidden behind computation. */
enum wlb_step_part {
	WLB_TIME_FORWARD, /* passes, without their communication */
	WLB_TIME_BACKWARD,
	WLB_TIME_TP,        /* tensor-parallel communication, with that of shared KV heads */
	WLB_TIME_CP,        /* context-parallel */
	WLB_TIME_PP,        /* sending to another stage */
	WLB_TIME_BUBBLE,    /* waiting for what another stage sends */
	WLB_TIME_DP,        /* gradients and weights over the data group */
	WLB_TIME_OPTIMIZER, /* on GPUs without the update of weights, which runs beside the next step's forward pass */
	WLB_TIME_LOADER,    /* waiting for the data of the step */
	WLB_TIME_WORLD,     /* agreeing on loss, norm and these times; includes waiting for the slowest rank */
	WLB_STEP_PARTS,
};

/* The times of a step on one rank. */
struct wlb_step_times {
	double s[WLB_STEP_PARTS];
	double compute_s; /* computation of the device in the passes */
};

/* Returns the part's name in metrics and records: "forward_s", "backward_s", "tp_s" ... */
const char *wlb_step_part_name(enum wlb_step_part part);

#endif
