/* Ranks that go on together or fail together. */
#ifndef WORKER_TRAIN_AGREE_H
#define WORKER_TRAIN_AGREE_H

#include "worker/comm/comm.h"

/* What a failure means for the other ranks. */
enum {
	WLB_FAILED_HERE = -1,       /* they do not know and must be ended, and this process without closing anything */
	WLB_FAILED_EVERYWHERE = -2, /* they fail too; the message is "" on all but one */
};

/* Collective. 0 when every rank says 0; else WLB_FAILED_EVERYWHERE, and only the first rank that failed keeps its
 * message. WLB_FAILED_HERE where the collective failed. */
int wlb_agree(struct wlb_comm *world, int rc, struct wlb_error *error);

#endif
