#include "checks/links/peers.h"

/* Inserts a rank that is not there yet, in ascending order; returns the number of peers. */
static int insert(int *peers, int count, int rank)
{
	int at = 0;
	while (at < count && peers[at] < rank)
		at++;
	if (at < count && peers[at] == rank)
		return count;
	for (int i = count; i > at; i--)
		peers[i] = peers[i - 1];
	peers[at] = rank;
	return count + 1;
}

int wlb_link_peers(int rank, int size, int peers[WLB_LINK_PEERS_MOST])
{
	int count = 0;
	for (long distance = 1; distance < size && count + 2 <= WLB_LINK_PEERS_MOST;
	     distance += size <= WLB_LINK_PEERS_MOST ? 1 : distance) {
		count = insert(peers, count, (int)((rank + distance) % size));
		count = insert(peers, count, (int)((rank + size - distance) % size));
	}
	return count;
}

int wlb_link_partner(int rank, int size, int round)
{
	return (round - rank + size) % size;
}
