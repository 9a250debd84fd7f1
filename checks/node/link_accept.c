#include "checks/node/link_accept.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checks/node/link_message.h"
#include "common/seconds.h"

/* How long a peer may take to prove that it has the token. */
static const double PROOF_S = 2.0;

/* A connection that has proved nothing yet. */
struct waiting {
	int fd;
	double until_s;
	struct wlb_link_greeting greeting; /* of this side */
	struct wlb_link_hello hello;       /* of the other, as far as it was received */
	size_t bytes;
};

struct waiters {
	const char *token;
	int count;
	struct waiting list[WLB_LINK_WAITING_MOST]; /* the oldest first */
};

static void forget(struct waiters *waiters, int index)
{
	struct waiting *at = waiters->list + index;
	waiters->count--;
	memmove(at, at + 1, (size_t)(waiters->count - index) * sizeof(*at));
}

static void drop(struct waiters *waiters, int index)
{
	close(waiters->list[index].fd);
	forget(waiters, index);
}

/* Takes a connection and greets it; the few bytes fit into the buffer of a new socket. */
static void admit(struct waiters *waiters, int listener, struct wlb_error *error)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (waiters->count == WLB_LINK_WAITING_MOST)
		drop(waiters, 0);
	struct waiting *last = &waiters->list[waiters->count++];
	*last = (struct waiting){.fd = fd, .until_s = wlb_now_s() + PROOF_S};
	if (wlb_link_prepare(fd, error) < 0 || wlb_link_greet(&last->greeting, error) < 0 ||
	    wlb_link_send(fd, &last->greeting, sizeof(last->greeting), last->until_s, error) < 0)
		drop(waiters, waiters->count - 1);
}

/* Returns 0 where the peer has the token; it is told the result. */
static int judge_hello(const struct waiting *waiting, const char *token, struct wlb_error *error)
{
	struct wlb_link_answer answer = {.kind = WLB_LINK_REFUSED};
	const struct wlb_link_greeting *theirs = &waiting->hello.greeting;
	char proof[WLB_LINK_PROOF_BYTES];
	wlb_link_prove(WLB_LINK_PEER, token, &waiting->greeting, theirs, proof);
	if (!wlb_link_same_proof(waiting->hello.proof, proof)) {
		wlb_link_send(waiting->fd, &answer.kind, sizeof(answer.kind), waiting->until_s, error);
		return wlb_fail(error, "a peer has another WLB_CHECK_NODE_TOKEN");
	}
	answer.kind = WLB_LINK_ACCEPTED;
	wlb_link_prove(WLB_LINK_SERVER, token, &waiting->greeting, theirs, answer.proof);
	return wlb_link_send(waiting->fd, &answer, sizeof(answer), waiting->until_s, error);
}

/* Takes what has come. Returns 1 where the peer has proved that it has the token, 0 where more has to come, and -1 with
 * the reason where it is none. */
static int receive_hello(struct waiting *waiting, const char *token, struct wlb_error *error)
{
	char *hello = (char *)&waiting->hello;
	ssize_t n = recv(waiting->fd, hello + waiting->bytes, sizeof(waiting->hello) - waiting->bytes, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return wlb_fail(error, "a peer has closed its connection before its proof");
	waiting->bytes += (size_t)n;
	if (waiting->bytes >= WLB_LINK_VERSION_BYTES && !wlb_link_is_same_version(&waiting->hello.greeting))
		return wlb_fail(error,
		                "a peer is no wlb check-node of this version; run the same version on both sides");
	if (waiting->bytes < sizeof(waiting->hello))
		return 0;
	return judge_hello(waiting, token, error) == 0 ? 1 : -1;
}

/* Returns the connection of the peer, or -1. From the last one on, since those behind one that is dropped move. */
static int receive_all(struct waiters *waiters, const struct pollfd *ready, struct wlb_error *error)
{
	for (int i = waiters->count - 1; i >= 0; i--) {
		int fd = waiters->list[i].fd;
		int rc = ready[i].revents != 0 ? receive_hello(&waiters->list[i], waiters->token, error) : 0;
		if (rc > 0) {
			forget(waiters, i);
			return fd;
		}
		if (rc < 0)
			drop(waiters, i);
	}
	return -1;
}

static void drop_late(struct waiters *waiters, struct wlb_error *error)
{
	while (waiters->count > 0 && waiters->list[0].until_s <= wlb_now_s()) {
		drop(waiters, 0);
		wlb_fail(error, "a peer has not proved within %g s that it has WLB_CHECK_NODE_TOKEN", PROOF_S);
	}
}

/* Waits for what the connections send, or another one. Returns the connection of the peer, or -1. */
static int wait_once(struct waiters *waiters, int listener, double until_s, struct wlb_error *error)
{
	struct pollfd ready[WLB_LINK_WAITING_MOST + 1];
	int count = waiters->count;
	double next_s = count > 0 ? fmin(until_s, waiters->list[0].until_s) : until_s;
	double left_s = fmax(next_s - wlb_now_s(), 0.0);
	for (int i = 0; i < count; i++)
		ready[i] = (struct pollfd){.fd = waiters->list[i].fd, .events = POLLIN};
	ready[count] = (struct pollfd){.fd = listener, .events = POLLIN};
	if (poll(ready, (nfds_t)count + 1, (int)(1e3 * left_s) + 1) < 0)
		return -1;
	int fd = receive_all(waiters, ready, error);
	drop_late(waiters, error);
	if (fd < 0 && ready[count].revents != 0)
		admit(waiters, listener, error);
	return fd;
}

int wlb_link_accept(int listener, const char *token, double until_s, struct wlb_error *error)
{
	struct waiters waiters = {.token = token};
	int fd = -1;
	wlb_fail(error, "no peer came");
	while (fd < 0 && wlb_now_s() < until_s)
		fd = wait_once(&waiters, listener, until_s, error);
	while (waiters.count > 0)
		drop(&waiters, 0);
	return fd;
}
