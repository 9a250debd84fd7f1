#include "coordinator/wlbd/database/db_server.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/thread_pool.h"

enum { LATE_MS = 5000 }; /* longer than a connection pauses between tries */

TAILQ_HEAD(waiter_list, wlbd_db_waiter);

/* All that the thread reads and writes. */
struct look_up {
	struct wlbd_task task;
	struct wlbd_db_server *server; /* for the event loop; NULL: it was freed */
	struct wlbd_db_hosts asked, found;
	struct wlb_error error;
	int rc;
};

struct wlbd_db_server {
	char *conninfo;
	int64_t term;
	struct wlbd_thread_pool *resolver; /* one thread */
	struct look_up *look_up;           /* under way; NULL: none */
	struct waiter_list waiters;        /* for its answer */
	struct look_up *late;              /* answered after all had given up; NULL: none */
	int64_t late_until_ms;             /* for how long that is used */
};

static void look_up_free(struct look_up *look_up)
{
	wlbd_db_hosts_clear(&look_up->asked);
	wlbd_db_hosts_clear(&look_up->found);
	free(look_up);
}

static void run_look_up(struct wlbd_task *task)
{
	struct look_up *look_up = (struct look_up *)task;
	look_up->rc = wlbd_db_hosts_resolve(&look_up->asked, &look_up->found, &look_up->error);
}

/* On the event loop, or on the thread that the freed server has left to itself. */
static void discard_look_up(struct wlbd_task *task)
{
	look_up_free((struct look_up *)task);
}

static void answer(struct wlbd_db_waiter *waiter, const struct wlbd_db_hosts *hosts, const struct wlb_error *error)
{
	waiter->done(waiter->context, hosts, error);
}

/* Addresses that nobody waits for any more are kept for the next try, which would else give up as early. */
static void keep_or_free(struct wlbd_db_server *server, struct look_up *look_up, bool is_late)
{
	if (!is_late || look_up->rc != 0) {
		look_up_free(look_up);
		return;
	}
	server->late = look_up;
	server->late_until_ms = wlb_clock_ms() + LATE_MS;
}

/* Who asks again during `done` gets the same answer: the look-up is under way until all have it. */
static void finish_look_up(struct wlbd_task *task)
{
	struct look_up *look_up = (struct look_up *)task;
	struct wlbd_db_server *server = look_up->server;
	bool is_late = server != NULL && TAILQ_EMPTY(&server->waiters);
	while (server != NULL && !TAILQ_EMPTY(&server->waiters)) {
		struct wlbd_db_waiter *waiter = TAILQ_FIRST(&server->waiters);
		wlbd_db_server_forget(server, waiter);
		answer(waiter, look_up->rc == 0 ? &look_up->found : NULL, &look_up->error);
	}
	if (server != NULL)
		server->look_up = NULL;
	keep_or_free(server, look_up, is_late);
}

/* Returns whether there was a late answer. */
static bool answer_late(struct wlbd_db_server *server, struct wlbd_db_waiter *waiter)
{
	struct look_up *late = server->late;
	if (late != NULL && wlb_clock_ms() < server->late_until_ms) {
		answer(waiter, &late->found, NULL);
		return true;
	}
	server->late = NULL;
	if (late != NULL)
		look_up_free(late);
	return false;
}

/* Takes the strings of `hosts`, also on error. */
static int begin_look_up(struct wlbd_db_server *server, struct wlbd_db_hosts *hosts, struct wlb_error *error)
{
	struct look_up *look_up = calloc(1, sizeof(*look_up));
	if (look_up == NULL) {
		wlbd_db_hosts_clear(hosts);
		return wlb_fail(error, "out of memory");
	}
	look_up->task = (struct wlbd_task){.run = run_look_up, .done = finish_look_up, .discard = discard_look_up};
	look_up->server = server;
	look_up->asked = *hosts;
	server->look_up = look_up;
	wlbd_thread_pool_submit(server->resolver, &look_up->task);
	return 0;
}

/* Sets `is_given` where there is no name to look up; else a look-up is under way. The settings are read at every try,
 * since a service file may have changed. */
static int ensure_look_up(struct wlbd_db_server *server, bool *is_given, struct wlb_error *error)
{
	struct wlbd_db_hosts hosts;
	*is_given = false;
	if (server->look_up != NULL)
		return 0;
	if (wlbd_db_hosts_read(server->conninfo, &hosts, error) != 0)
		return -1;
	if (wlbd_db_hosts_have_name(&hosts))
		return begin_look_up(server, &hosts, error);
	wlbd_db_hosts_clear(&hosts);
	*is_given = true;
	return 0;
}

/* ---- public ---------------------------------------------------------------------------------- */

struct wlbd_db_server *wlbd_db_server_new(struct event_base *base, const char *conninfo, struct wlb_error *error)
{
	struct wlbd_db_server *server = calloc(1, sizeof(*server));
	char *copy = strdup(conninfo);
	if (server == NULL || copy == NULL) {
		free(server);
		free(copy);
		wlb_fail(error, "out of memory");
		return NULL;
	}
	server->conninfo = copy;
	TAILQ_INIT(&server->waiters);
	server->resolver = wlbd_thread_pool_new(base, "names of the database's hosts", 1, 1, error);
	if (server->resolver != NULL)
		return server;
	wlbd_db_server_free(server);
	return NULL;
}

void wlbd_db_server_free(struct wlbd_db_server *server)
{
	if (server == NULL)
		return;
	if (server->look_up != NULL)
		server->look_up->server = NULL;
	if (server->late != NULL)
		look_up_free(server->late);
	wlbd_thread_pool_abandon(server->resolver);
	free(server->conninfo);
	free(server);
}

const char *wlbd_db_server_conninfo(const struct wlbd_db_server *server)
{
	return server->conninfo;
}

void wlbd_db_server_set_term(struct wlbd_db_server *server, int64_t term)
{
	server->term = term;
}

int64_t wlbd_db_server_term(const struct wlbd_db_server *server)
{
	return server->term;
}

const char *wlbd_db_server_asked(const struct wlbd_db_server *server)
{
	return server->look_up != NULL ? server->look_up->asked.host : "";
}

void wlbd_db_server_find(struct wlbd_db_server *server, struct wlbd_db_waiter *waiter)
{
	static const struct wlbd_db_hosts as_given;
	struct wlb_error error = {0};
	bool is_given;
	if (answer_late(server, waiter))
		return;
	if (ensure_look_up(server, &is_given, &error) != 0) {
		answer(waiter, NULL, &error);
	} else if (is_given) {
		answer(waiter, &as_given, &error);
	} else {
		TAILQ_INSERT_TAIL(&server->waiters, waiter, link);
		waiter->is_waiting = true;
	}
}

void wlbd_db_server_forget(struct wlbd_db_server *server, struct wlbd_db_waiter *waiter)
{
	if (waiter->is_waiting)
		TAILQ_REMOVE(&server->waiters, waiter, link);
	waiter->is_waiting = false;
}
