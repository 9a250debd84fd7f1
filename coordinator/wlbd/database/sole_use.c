#include "coordinator/wlbd/database/sole_use.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlbd/log.h"

enum {
	FIRST_RETRY_S = 5, /* this wlbd's own connection from before may end late */
	RETRY_S = 60,
};

struct wlbd_sole_use {
	struct wlbd_db *db;
	struct event *timer;
	int refused; /* tries in a row */
	char other[128];
};

/* NULL: this session has the lock. */
static const char ask_lock[] =
	"select case when not pg_try_advisory_lock(x'574c43'::bigint) then coalesce((select format('%s since %s', "
	"coalesce('from ' || host(a.client_addr), 'on the host of the database'), to_char(a.backend_start, "
	"'YYYY-MM-DD HH24:MI:SS')) from pg_locks l join pg_stat_activity a on a.pid = l.pid join pg_database d on "
	"d.oid = l.database where l.locktype = 'advisory' and l.granted and l.classid::bigint = 0 and "
	"l.objid::bigint = x'574c43'::bigint and d.datname = current_database() limit 1), 'from an unknown host') end";

static void ask_later(struct wlbd_sole_use *use, int seconds)
{
	struct timeval after = {seconds, 0};
	event_add(use->timer, &after);
}

static void note_alone(struct wlbd_sole_use *use)
{
	if (use->other[0] != '\0')
		wlbd_log(WLBD_LOG_INFO, "database: no other wlbd uses it any more");
	use->other[0] = '\0';
}

static void note_other(struct wlbd_sole_use *use, const char *other)
{
	wlb_text_format(use->other, sizeof(use->other), "%s", other);
	wlbd_log(WLBD_LOG_WARNING,
	         "database: another wlbd, connected %s, uses it too: each judges the other's runs without their "
	         "reports; stop one, or give it a database of its own",
	         other);
}

static void on_answer(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_sole_use *use = context;
	if (result->status == WLBD_DB_UNAVAILABLE && !wlbd_db_ready(use->db))
		return; /* the next connection asks again */
	if (result->status == WLBD_DB_OK && result->value == NULL) {
		note_alone(use);
		return;
	}
	if (result->status == WLBD_DB_OK && ++use->refused > 1)
		note_other(use, result->value);
	ask_later(use, use->refused > 1 ? RETRY_S : FIRST_RETRY_S);
}

static void ask(struct wlbd_sole_use *use)
{
	static const struct wlbd_params none;
	wlbd_db_execute(use->db, ask_lock, &none, on_answer, use);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	ask(context);
}

struct wlbd_sole_use *wlbd_sole_use_new(struct event_base *base, struct wlbd_db *db)
{
	struct wlbd_sole_use *use = calloc(1, sizeof(*use));
	if (use == NULL)
		return NULL;
	use->db = db;
	use->timer = evtimer_new(base, on_timer, use);
	if (use->timer != NULL)
		return use;
	free(use);
	return NULL;
}

void wlbd_sole_use_free(struct wlbd_sole_use *use)
{
	if (use == NULL)
		return;
	event_free(use->timer);
	free(use);
}

void wlbd_sole_use_connected(struct wlbd_sole_use *use)
{
	event_del(use->timer);
	use->refused = 0;
	ask(use);
}

const char *wlbd_sole_use_other(const struct wlbd_sole_use *use)
{
	return use->other;
}
