#include "coordinator/wlbd/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "coordinator/wlbd/log.h"

struct probe {
	int fd;
	struct event *event;
	bool alive; /* known at once; the event then only comes back to the loop */
	void (*done)(void *context, bool alive);
	void *context;
};

static void finish(struct probe *probe, bool alive)
{
	if (probe->event != NULL)
		event_free(probe->event);
	if (probe->fd >= 0)
		close(probe->fd);
	probe->done(probe->context, alive);
	free(probe);
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct probe *probe = context;
	int failure = 0;
	socklen_t size = sizeof(failure);
	if ((what & EV_WRITE) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0)
		probe->alive = failure == 0;
	finish(probe, probe->alive);
}

/* Descriptors or memory are short here: that must not make a node look dead. */
static bool out_of_means(int failure)
{
	return failure == EMFILE || failure == ENFILE || failure == ENOMEM || failure == ENOBUFS ||
	       failure == EADDRNOTAVAIL;
}

void wlbd_probe(struct event_base *base, const struct sockaddr *address, socklen_t length,
                void (*done)(void *context, bool alive), void *context)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	struct timeval limit = {WLBD_PROBE_MS / 1000, WLBD_PROBE_MS % 1000 * 1000};
	struct timeval at_once = {0, 0};
	if (probe == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "out of memory: a node was not probed and is taken for alive");
		done(context, true);
		return;
	}
	probe->done = done;
	probe->context = context;
	probe->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc = probe->fd < 0 ? -1 : connect(probe->fd, address, length);
	if (rc != 0 && errno == EINPROGRESS) {
		probe->event = event_new(base, probe->fd, EV_WRITE, on_ready, probe);
		event_add(probe->event, &limit);
		return;
	}
	probe->alive = rc == 0 || out_of_means(errno);
	probe->event = evtimer_new(base, on_ready, probe);
	event_add(probe->event, &at_once);
}
