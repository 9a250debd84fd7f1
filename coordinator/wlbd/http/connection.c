#include "coordinator/wlbd/http/connection.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "common/clock.h"

enum { SWEEP_MS = 1000, LOOKED_AT_MAX = 64 };

TAILQ_HEAD(list, wlbd_connection);

struct wlbd_connection {
	TAILQ_ENTRY(wlbd_connection) link; /* in one of the two lists */
	struct wlbd_connections *all;
	int fd;
	bool busy;
	bool checking; /* munged is asked about the credential of its request */
	bool proved;
	bool given_up;            /* by wlbd itself */
	uid_t uid;                /* of its client, once proved */
	int64_t waiting_since_ms; /* for a request to be completed */
	void (*on_close)(struct wlbd_connection *connection, void *context);
	void *context;
};

struct wlbd_connections {
	struct list unproved; /* oldest first */
	struct list proved;
	int unproved_count;
	int unproved_max;
	int max_ms; /* from one completed request to the next */
	struct wlbd_budget *budget;
	struct event *timer;
};

/* The HTTP library sees the end of the stream, and closes the connection itself. */
static void cut_off(struct wlbd_connection *connection)
{
	connection->given_up = true;
	shutdown(connection->fd, SHUT_RDWR);
}

void wlbd_connection_refuse(struct wlbd_connection *connection, const char *reply)
{
	ssize_t sent = send(connection->fd, reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)sent; /* the client sees the end of the connection in any case */
	cut_off(connection);
}

static void sweep_list(const struct wlbd_connections *all, const struct list *list)
{
	int64_t now_ms = wlb_clock_ms();
	struct wlbd_connection *connection;
	TAILQ_FOREACH(connection, list, link)
	if (!connection->busy && now_ms - connection->waiting_since_ms > all->max_ms)
		cut_off(connection);
}

static void on_sweep(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_connections *all = context;
	(void)fd;
	(void)what;
	sweep_list(all, &all->unproved);
	sweep_list(all, &all->proved);
}

struct wlbd_connections *wlbd_connections_new(struct event_base *base, struct wlbd_budget *budget, int max_ms,
                                              int unproved_max)
{
	struct wlbd_connections *all = calloc(1, sizeof(*all));
	struct timeval period = {SWEEP_MS / 1000, 0};
	if (all == NULL)
		return NULL;
	TAILQ_INIT(&all->unproved);
	TAILQ_INIT(&all->proved);
	all->budget = budget;
	all->max_ms = max_ms;
	all->unproved_max = unproved_max;
	all->timer = event_new(base, -1, EV_PERSIST, on_sweep, all);
	event_add(all->timer, &period);
	return all;
}

void wlbd_connections_free(struct wlbd_connections *connections)
{
	if (connections == NULL)
		return;
	event_free(connections->timer);
	free(connections);
}

/* Looks at the LOOKED_AT_MAX oldest connections, and returns the oldest that waits for no answer of munged or of a
 * handler; where all of them wait, the oldest. So a client whose credential is being checked is not cut off by clients
 * that only connect. */
static struct wlbd_connection *oldest_idle(const struct wlbd_connections *all)
{
	struct wlbd_connection *connection;
	int looked_at = 0;
	TAILQ_FOREACH(connection, &all->unproved, link)
	{
		if (!connection->checking && !connection->busy)
			return connection;
		if (++looked_at == LOOKED_AT_MAX)
			break;
	}
	return TAILQ_FIRST(&all->unproved);
}

/* It is removed from the list when the library closes it; until then others must be before it. */
static void cut_off_one(struct wlbd_connections *all)
{
	struct wlbd_connection *one = oldest_idle(all);
	cut_off(one);
	TAILQ_REMOVE(&all->unproved, one, link);
	TAILQ_INSERT_TAIL(&all->unproved, one, link);
}

struct wlbd_connection *wlbd_connection_opened(struct wlbd_connections *connections, int fd)
{
	struct wlbd_connection *connection = calloc(1, sizeof(*connection));
	if (connection == NULL)
		return NULL;
	connection->all = connections;
	connection->fd = fd;
	connection->waiting_since_ms = wlb_clock_ms();
	if (connections->unproved_count >= connections->unproved_max)
		cut_off_one(connections);
	TAILQ_INSERT_TAIL(&connections->unproved, connection, link);
	connections->unproved_count++;
	return connection;
}

static void leave_unproved(struct wlbd_connection *connection)
{
	TAILQ_REMOVE(&connection->all->unproved, connection, link);
	connection->all->unproved_count--;
}

void wlbd_connection_closed(struct wlbd_connection *connection)
{
	if (connection->on_close != NULL)
		connection->on_close(connection, connection->context);
	if (connection->proved) {
		TAILQ_REMOVE(&connection->all->proved, connection, link);
		wlbd_budget_leave(connection->all->budget, connection->uid);
	} else {
		leave_unproved(connection);
	}
	free(connection);
}

bool wlbd_connection_was_given_up(const struct wlbd_connection *connection)
{
	return connection->given_up;
}

int wlbd_connection_peer(const struct wlbd_connection *connection, struct sockaddr_storage *peer)
{
	socklen_t length = sizeof(*peer);
	return getpeername(connection->fd, (struct sockaddr *)peer, &length);
}

enum wlbd_budget_answer wlbd_connection_proved(struct wlbd_connection *connection, uid_t uid)
{
	if (connection->proved)
		return WLBD_BUDGET_TAKEN;
	enum wlbd_budget_answer answer = wlbd_budget_enter(connection->all->budget, uid);
	if (answer != WLBD_BUDGET_TAKEN)
		return answer;
	leave_unproved(connection);
	connection->proved = true;
	connection->uid = uid;
	TAILQ_INSERT_TAIL(&connection->all->proved, connection, link);
	return WLBD_BUDGET_TAKEN;
}

void wlbd_connection_begin_check(struct wlbd_connection *connection)
{
	connection->checking = true;
}

void wlbd_connection_set_busy(struct wlbd_connection *connection, bool busy)
{
	connection->busy = busy;
	connection->checking = false;
	connection->waiting_since_ms = wlb_clock_ms();
}

void wlbd_connection_on_close(struct wlbd_connection *connection,
                              void (*callback)(struct wlbd_connection *connection, void *context), void *context)
{
	connection->on_close = callback;
	connection->context = context;
}
