/* A message to each peer and from each, all at the same time, over MPI. */
#ifndef WORKER_CHECK_LINKS_EXCHANGE_H
#define WORKER_CHECK_LINKS_EXCHANGE_H

#include "libwlb/wlb.h"

/* Sets answered[i] to 1 for each of the `count` peers, ranks of MPI_COMM_WORLD, whose message arrived within limit_s,
 * else to 0. MPI must be initialised.
 *
 * Returns 1 where every rank has all of its messages: MPI may be ended. Returns 0 where one has not, or did not say so
 * in time: messages are under way, MPI owns their memory, and MPI_Finalize would wait for them: the process has to end
 * without it. Returns -1 with the reason, in the state of 0. */
int wlb_exchange(const int *peers, int count, double limit_s, int *answered, struct wlb_error *error);

#endif
