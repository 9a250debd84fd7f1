#include "coordinator/wlbd/nodes/program_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"

struct wlbd_program_probe {
	struct event_base *base;
	int fd;
	struct event *event;
	int64_t began_ms;
	void (*done)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms);
	void *context;
};

void wlbd_program_probe_cancel(struct wlbd_program_probe *probe)
{
	if (probe == NULL)
		return;
	if (probe->event != NULL)
		event_free(probe->event);
	close(probe->fd);
	free(probe);
}

static void finish(struct wlbd_program_probe *probe, enum wlbd_probe_outcome outcome)
{
	void (*done)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms) = probe->done;
	void *context = probe->context;
	int64_t took_ms = wlb_clock_ms() - probe->began_ms;
	wlbd_program_probe_cancel(probe);
	done(context, outcome, took_ms);
}

/* Waits until WLBD_PROBE_MS after the beginning of the probe. */
static int wait_for(struct wlbd_program_probe *probe, short what, event_callback_fn then)
{
	int64_t left_ms = probe->began_ms + WLBD_PROBE_MS - wlb_clock_ms();
	left_ms = left_ms > 0 ? left_ms : 0;
	struct timeval limit = {left_ms / 1000, left_ms % 1000 * 1000};
	if (probe->event != NULL)
		event_free(probe->event);
	probe->event = event_new(probe->base, probe->fd, what, then, probe);
	return probe->event != NULL ? event_add(probe->event, &limit) : -1;
}

/* The end of its side, or data, come from the program; a reset may come from the kernel after the program died. */
static void on_closed(evutil_socket_t fd, short what, void *context)
{
	char byte;
	if (!(what & EV_READ))
		finish(context, WLBD_PROBE_ACCEPTED);
	else
		finish(context, recv(fd, &byte, 1, 0) >= 0 ? WLBD_PROBE_ANSWERED : WLBD_PROBE_REFUSED);
}

static void on_connected(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_program_probe *probe = context;
	int failure = ETIMEDOUT;
	socklen_t size = sizeof(failure);
	if (what & EV_WRITE)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
	if (failure == 0 && shutdown(fd, SHUT_WR) != 0)
		failure = errno;
	if (failure != 0)
		finish(probe,
		       failure == ECONNREFUSED || failure == ECONNRESET ? WLBD_PROBE_REFUSED : WLBD_PROBE_FAILED);
	else if (wait_for(probe, EV_READ, on_closed) != 0) /* out of memory, which says nothing about the program */
		finish(probe, WLBD_PROBE_ANSWERED);
}

/* wlbd itself lacks descriptors or memory, which says nothing about the program. */
static bool is_own_failure(int failure)
{
	return failure == EMFILE || failure == ENFILE || failure == ENOMEM || failure == ENOBUFS ||
	       failure == EADDRNOTAVAIL;
}

struct wlbd_program_probe *
wlbd_program_probe_start(struct event_base *base, const struct sockaddr *address, socklen_t length,
                         void (*done)(void *context, enum wlbd_probe_outcome outcome, int64_t took_ms), void *context)
{
	struct wlbd_program_probe *probe = calloc(1, sizeof(*probe));
	if (probe == NULL)
		return NULL;
	*probe =
		(struct wlbd_program_probe){.base = base, .began_ms = wlb_clock_ms(), .done = done, .context = context};
	probe->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (probe->fd < 0) {
		free(probe);
		return NULL;
	}
	/* A connection that is refused at once is writable too, so that on_connected sees the failure. */
	int rc = connect(probe->fd, address, length);
	if ((rc != 0 && is_own_failure(errno)) || wait_for(probe, EV_WRITE, on_connected) != 0) {
		wlbd_program_probe_cancel(probe);
		return NULL;
	}
	return probe;
}
