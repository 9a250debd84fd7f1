/*
 * Messages between ranks over MPI: which ranks they reach, and how long pairs of ranks take to exchange one. MPI, and
 * not the TCP of checks/node/link_message.h, because the links are to be checked by which a run trains; MPI knows the
 * ranks of a job alone, so that no token is needed, and both ends are of one launch.
 */
#ifndef CHECKS_LINKS_MESSAGES_H
#define CHECKS_LINKS_MESSAGES_H

#include "checks/links/peers.h"
#include "libwlb/wlb.h"

/*
 * Both functions need MPI to be initialised, and return 1 where every rank has all of its messages: MPI may be ended.
 * They return 0 where one has not, or did not say so in time: messages are in flight, MPI owns their memory, and
 * MPI_Finalize would wait for them: the process has to end without it. They return -1 with the reason, in the state
 * of 0.
 */

/* Sends a message to each peer and receives one from each, all at the same time. Sets answered[i] to 1 for each of the
 * `count` peers, ranks of MPI_COMM_WORLD, whose message arrived within limit_s, else to 0. */
int wlb_exchange(const int *peers, int count, double limit_s, int *answered, struct wlb_error *error);

/* Of a message to and from each other rank at the same time. */
struct wlb_pair_times {
	int bytes;                           /* of a message in each direction; 0: nothing was measured */
	double seconds[WLB_LINK_PEERS_MOST]; /* [rank] the least that was measured; 0: of no such pair */
};

/* Measures all pairs of the `size` ranks of MPI_COMM_WORLD, which is at most WLB_LINK_PEERS_MOST, a pair of a rank at a
 * time, several times each, within the time of bounds.h. The message grows until the slowest pair takes long enough
 * to be distinguished from a busy processor. All ranks must reach each other. Where the return is not 1, *times has
 * what was measured before. */
int wlb_pair_times_measure(int rank, int size, struct wlb_pair_times *times, struct wlb_error *error);

#endif
