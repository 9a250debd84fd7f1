#include "coordinator/client/peers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"

int wlb_peers_open(struct wlb_peers *peers, const int *ranks, const pid_t *pids, int count, struct wlb_error *error)
{
	*peers = (struct wlb_peers){0};
	if (count == 0)
		return 0;
	peers->list = calloc((size_t)count, sizeof(*peers->list));
	if (peers->list == NULL)
		return wlb_fail(error, "no memory to watch %d processes", count);
	peers->count = count;
	for (int i = 0; i < count; i++) {
		/* If the process is gone already this fails, and the first check finds the process lost. */
		int pidfd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		peers->list[i] = (struct wlb_peer){.rank = ranks[i], .pid = pids[i], .pidfd = pidfd};
	}
	return 0;
}

void wlb_peers_close(struct wlb_peers *peers)
{
	for (int i = 0; i < peers->count; i++)
		if (peers->list[i].pidfd >= 0)
			close(peers->list[i].pidfd);
	free(peers->list);
	*peers = (struct wlb_peers){0};
}

int wlb_peers_poll(const struct wlb_peers *peers, struct pollfd *polls)
{
	int n = 0;
	for (int i = 0; i < peers->count; i++)
		if (peers->list[i].pidfd >= 0)
			polls[n++] = (struct pollfd){.fd = peers->list[i].pidfd, .events = POLLIN};
	return n;
}

static bool is_gone(const struct wlb_peer *peer)
{
	struct pollfd ready = {.fd = peer->pidfd, .events = POLLIN};
	if (peer->pidfd >= 0)
		return poll(&ready, 1, 0) > 0;
	return kill(peer->pid, 0) != 0 && errno == ESRCH;
}

bool wlb_peers_check(struct wlb_peers *peers)
{
	bool news = false;
	for (int i = 0; i < peers->count; i++) {
		struct wlb_peer *peer = &peers->list[i];
		if (peer->lost || !is_gone(peer))
			continue;
		peer->lost = true;
		peer->lost_time_s = wlb_clock_unix_s();
		if (peer->pidfd >= 0)
			close(peer->pidfd);
		peer->pidfd = -1;
		news = true;
	}
	return news;
}

int wlb_peers_kill(const struct wlb_peers *peers)
{
	int killed = 0;
	for (int i = 0; i < peers->count; i++) {
		const struct wlb_peer *peer = &peers->list[i];
		if (peer->lost)
			continue;
		killed++;
		/* With the descriptor, no other process that is given the number later is killed. */
		if (peer->pidfd >= 0)
			syscall(SYS_pidfd_send_signal, peer->pidfd, SIGKILL, NULL, 0);
		else
			kill(peer->pid, SIGKILL);
	}
	return killed;
}
