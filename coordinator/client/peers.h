/* The other ranks of this node, whose ends are noticed within milliseconds. */
#ifndef COORDINATOR_CLIENT_PEERS_H
#define COORDINATOR_CLIENT_PEERS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlb_peer {
	int rank;
	pid_t pid;
	int pidfd; /* -1: lost, or the kernel is older than 5.3 and the process is checked with kill(pid, 0) */
	bool lost;
	bool reported;      /* the coordinator knows that it is lost */
	double lost_time_s; /* since 1970 */
};

struct wlb_peers {
	struct wlb_peer *list;
	int count;
};

int wlb_peers_open(struct wlb_peers *peers, const int *ranks, const pid_t *pids, int count, struct wlb_error *error);
void wlb_peers_close(struct wlb_peers *peers);

/* Fills `polls` (space for peers->count) with what to wait for; returns how many. */
int wlb_peers_poll(const struct wlb_peers *peers, struct pollfd *polls);

/* Notes which peers are gone; true if one was lost since the last call. */
bool wlb_peers_check(struct wlb_peers *peers);

/* Sends SIGKILL to the peers that are not gone; returns how many there are. */
int wlb_peers_kill(const struct wlb_peers *peers);

#endif
