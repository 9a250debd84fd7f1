/* How long pairs of ranks take to exchange a message, over MPI. */
#ifndef WORKER_CHECK_LINKS_PAIR_TIMES_H
#define WORKER_CHECK_LINKS_PAIR_TIMES_H

#include "libwlb/wlb.h"
#include "worker/check_links/peers.h"

/* Of a message to and from each other rank at the same time. */
struct wlb_pair_times {
	int bytes;                           /* of a message in each direction; 0: nothing was measured */
	double seconds[WLB_LINK_PEERS_MOST]; /* [rank] the least that was measured; 0: of no such pair */
};

/* Measures all pairs of the `size` ranks of MPI_COMM_WORLD, which is at most WLB_LINK_PEERS_MOST, a pair of a rank at a
 * time, several times each, within the time of bounds.h. The message grows until the slowest pair takes long enough
 * to be distinguished from a busy processor. MPI must be initialised, and all ranks must reach each other.
 *
 * Returns 1 where all ranks have ended, and MPI may be ended. Returns 0 where a rank was not there in time: *times has
 * what was measured before, and the process has to end without MPI_Finalize, as wlb_exchange says. Returns -1 with the
 * reason, in the state of 0. */
int wlb_pair_times_measure(int rank, int size, struct wlb_pair_times *times, struct wlb_error *error);

#endif
