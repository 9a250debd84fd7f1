/* The ranks with which a rank of a link check exchanges messages. Pure. */
#ifndef CHECKS_LINKS_PEERS_H
#define CHECKS_LINKS_PEERS_H

enum { WLB_LINK_PEERS_MOST = 64 };

/* Writes the peers of `rank`, ascending, and returns their number: all other ranks of up to WLB_LINK_PEERS_MOST, and of
 * more those at a distance of a power of two around the ring of ranks, so that a rank of 16,384 has 28. Where a is a
 * peer of b, b is one of a. */
int wlb_link_peers(int rank, int size, int peers[WLB_LINK_PEERS_MOST]);

/* Returns the rank with which `rank` is paired in a round, itself in one of them. In the rounds 0 to size - 1 each pair
 * of the `size` ranks comes once. */
int wlb_link_partner(int rank, int size, int round);

#endif
