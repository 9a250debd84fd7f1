/* Agreement of the ranks on success or failure. */
#ifndef WORKER_TRAIN_AGREE_H
#define WORKER_TRAIN_AGREE_H

#include "worker/comm/comm.h"

/* The scope of a failure. */
enum {
	WLB_FAILED_HERE = -1, /* the other ranks do not know of it and must be ended; this process must end without
	                         closing anything */
	WLB_FAILED_EVERYWHERE = -2, /* all ranks fail; the message is "" on all but one */
};

/* Collective. Returns 0 when rc is 0 on every rank, else WLB_FAILED_EVERYWHERE, where only the first rank that failed
 * keeps its message. WLB_FAILED_HERE where the collective failed. */
int wlb_agree(struct wlb_comm *world, int rc, struct wlb_error *error);

#endif
