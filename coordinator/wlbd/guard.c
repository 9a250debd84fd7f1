#include "coordinator/wlbd/guard.h"

#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "coordinator/client/clock.h"

enum { SWEEP_MS = 1000 };
static const int64_t HANDLED = INT64_MAX;

struct guard {
	TAILQ_ENTRY(guard) link;
	struct bufferevent *connection;
	int64_t waiting_since_ms; /* for a request to be completed; HANDLED while one is being handled */
};

struct wlbd_guards {
	TAILQ_HEAD(, guard) list;
	void *tree; /* tsearch(3) by connection */
	struct event *timer;
	int most_ms; /* from one completed request to the next */
};

static int by_connection(const void *a, const void *b)
{
	const struct guard *x = a;
	const struct guard *y = b;
	return (x->connection > y->connection) - (x->connection < y->connection);
}

static void guard_free(struct wlbd_guards *guards, struct guard *guard)
{
	TAILQ_REMOVE(&guards->list, guard, link);
	tdelete(guard, &guards->tree, by_connection);
	bufferevent_decref(guard->connection);
	free(guard);
}

/* evhttp keeps its callbacks on a connection for as long as it has it. */
static bool given_up(struct bufferevent *connection)
{
	bufferevent_event_cb event = NULL;
	bufferevent_getcb(connection, NULL, NULL, &event, NULL);
	return event == NULL;
}

static void on_sweep(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_guards *guards = context;
	int64_t now = wlb_clock_ms();
	(void)fd;
	(void)what;
	struct guard *next;
	for (struct guard *guard = TAILQ_FIRST(&guards->list); guard != NULL; guard = next) {
		next = TAILQ_NEXT(guard, link);
		if (given_up(guard->connection))
			guard_free(guards, guard);
		else if (guard->waiting_since_ms != HANDLED && now - guard->waiting_since_ms > guards->most_ms)
			/* evhttp sees the end of the stream and closes it in its own order. */
			shutdown(bufferevent_getfd(guard->connection), SHUT_RDWR);
	}
}

struct wlbd_guards *wlbd_guards_new(struct event_base *base, int most_ms)
{
	struct wlbd_guards *guards = calloc(1, sizeof(*guards));
	struct timeval period = {SWEEP_MS / 1000, 0};
	if (guards == NULL)
		return NULL;
	TAILQ_INIT(&guards->list);
	guards->most_ms = most_ms;
	guards->timer = event_new(base, -1, EV_PERSIST, on_sweep, guards);
	event_add(guards->timer, &period);
	return guards;
}

void wlbd_guards_free(struct wlbd_guards *guards)
{
	if (guards == NULL)
		return;
	while (!TAILQ_EMPTY(&guards->list))
		guard_free(guards, TAILQ_FIRST(&guards->list));
	event_free(guards->timer);
	free(guards);
}

struct bufferevent *wlbd_guards_connection(struct event_base *base, void *context)
{
	struct wlbd_guards *guards = context;
	struct bufferevent *connection = bufferevent_socket_new(base, -1, 0);
	struct guard *guard = calloc(1, sizeof(*guard));
	if (connection == NULL || guard == NULL) {
		free(guard);
		return connection;
	}
	guard->connection = connection;
	guard->waiting_since_ms = wlb_clock_ms();
	bufferevent_incref(connection); /* so that its address is not used again before we know that it is gone */
	tsearch(guard, &guards->tree, by_connection);
	TAILQ_INSERT_TAIL(&guards->list, guard, link);
	return connection;
}

static void note(struct wlbd_guards *guards, struct bufferevent *connection, int64_t waiting_since_ms)
{
	struct guard key = {.connection = connection};
	struct guard **found = tfind(&key, &guards->tree, by_connection);
	if (found != NULL)
		(*found)->waiting_since_ms = waiting_since_ms;
}

void wlbd_guards_request(struct wlbd_guards *guards, struct bufferevent *connection)
{
	note(guards, connection, HANDLED);
}

void wlbd_guards_reply(struct wlbd_guards *guards, struct bufferevent *connection)
{
	note(guards, connection, wlb_clock_ms());
}
