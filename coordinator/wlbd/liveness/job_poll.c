#include "coordinator/wlbd/liveness/job_poll.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/clock.h"

enum {
	SOON_INTERVAL_MS = 1000,
	SOON_FOR_MS = 30000,
};

struct wlbd_job_poll {
	int interval_ms;
	void (*poll)(void *context);
	void *context;
	struct event *timer;
	int64_t soon_until_ms;
	bool is_under_way; /* `poll` was called, and wlbd_job_poll_done was not */
};

static void set_timer(struct wlbd_job_poll *poll)
{
	bool is_soon = wlb_clock_ms() < poll->soon_until_ms && poll->interval_ms > SOON_INTERVAL_MS;
	int ms = is_soon ? SOON_INTERVAL_MS : poll->interval_ms;
	struct timeval after = {ms / 1000, ms % 1000 * 1000};
	event_add(poll->timer, &after);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_job_poll *poll = context;
	(void)fd;
	(void)what;
	poll->is_under_way = true;
	poll->poll(poll->context);
}

struct wlbd_job_poll *wlbd_job_poll_new(struct event_base *base, int interval_ms, void (*callback)(void *context),
                                        void *context)
{
	struct wlbd_job_poll *poll = calloc(1, sizeof(*poll));
	if (poll != NULL)
		poll->timer = evtimer_new(base, on_timer, poll);
	if (poll == NULL || poll->timer == NULL) {
		free(poll);
		return NULL;
	}
	poll->interval_ms = interval_ms;
	poll->poll = callback;
	poll->context = context;
	set_timer(poll);
	return poll;
}

void wlbd_job_poll_free(struct wlbd_job_poll *poll)
{
	if (poll == NULL)
		return;
	event_free(poll->timer);
	free(poll);
}

void wlbd_job_poll_done(struct wlbd_job_poll *poll)
{
	poll->is_under_way = false;
	set_timer(poll);
}

static bool is_due_soon(const struct wlbd_job_poll *poll)
{
	struct timeval at, now;
	const struct timeval soon = {SOON_INTERVAL_MS / 1000, SOON_INTERVAL_MS % 1000 * 1000};
	if (!evtimer_pending(poll->timer, &at))
		return false;
	evutil_gettimeofday(&now, NULL);
	evutil_timeradd(&now, &soon, &now);
	return evutil_timercmp(&at, &now, <);
}

void wlbd_job_poll_soon(struct wlbd_job_poll *poll)
{
	poll->soon_until_ms = wlb_clock_ms() + SOON_FOR_MS;
	if (!poll->is_under_way && !is_due_soon(poll))
		set_timer(poll);
}
