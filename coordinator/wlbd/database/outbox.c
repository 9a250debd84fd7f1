#include "coordinator/wlbd/database/outbox.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/log.h"

enum {
	STATEMENTS_MAX = 20000,
	STATEMENTS_OF_RUN_MAX = 1000,
	TRIES_MAX = 3,
	RETRY_MS = 200,
	UNAVAILABLE_RETRY_MS = 1000, /* where the server answers and cannot do it now */
	LOST_NAMED_MAX = 20,         /* in the log, of those that are left at the end */
	DELAYED_MAX = 64,            /* runs that wait for their next try while others are stored */
};

struct queued_statement {
	TAILQ_ENTRY(queued_statement) link;
	int64_t run_pk;
	uid_t uid; /* of the run's owner */
	const char *sql;
	struct wlbd_params *params; /* owned */
	int tries;                  /* that the database cancelled, or that failed since it is damaged */
	int64_t retry_at_ms;        /* it is not sent before */
	struct wlbd_outbox *outbox;
};

struct wlbd_outbox {
	struct wlbd_db *db;
	struct event *timer;
	uint64_t *dropped; /* the number of statements that were dropped; the caller's */
	TAILQ_HEAD(, queued_statement) statements;
	struct wlbd_budget *places; /* of the owners of runs */
	int count;
	bool is_sending; /* a statement is under way */
};

static void send_next(struct wlbd_outbox *outbox);

static void statement_free(struct wlbd_outbox *outbox, struct queued_statement *statement)
{
	TAILQ_REMOVE(&outbox->statements, statement, link);
	outbox->count--;
	wlbd_budget_leave(outbox->places, statement->uid);
	free(statement->params);
	free(statement);
}

static void drop(struct wlbd_outbox *outbox, struct queued_statement *statement, const char *why)
{
	(*outbox->dropped)++;
	wlbd_log(WLBD_LOG_ERROR, "not recorded: %s, of the run with id %lld (%s)", statement->sql,
	         (long long)statement->run_pk, why);
	statement_free(outbox, statement);
}

static void set_timer(struct wlbd_outbox *outbox)
{
	struct timeval after = {0, RETRY_MS * 1000};
	if (!evtimer_pending(outbox->timer, NULL))
		event_add(outbox->timer, &after);
}

/* The database answers: statements of other runs are sent meanwhile. */
static void delay(struct queued_statement *statement, const char *why)
{
	if (statement->retry_at_ms == 0)
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE,
		                 "not recorded yet: %s, of the run with id %lld (%s); it is tried again",
		                 statement->sql, (long long)statement->run_pk, why);
	statement->retry_at_ms = wlb_clock_ms() + UNAVAILABLE_RETRY_MS;
}

static void on_sent(void *context, const struct wlbd_db_result *result)
{
	struct queued_statement *statement = context;
	struct wlbd_outbox *outbox = statement->outbox;
	outbox->is_sending = false;
	switch (result->status) {
	case WLBD_DB_OK:
		statement_free(outbox, statement);
		break;
	case WLBD_DB_REFUSED:
		drop(outbox, statement, result->detail);
		break;
	case WLBD_DB_SLOW:
	case WLBD_DB_DAMAGED:
		statement->retry_at_ms = wlb_clock_ms() + RETRY_MS;
		if (++statement->tries >= TRIES_MAX)
			drop(outbox, statement, result->detail);
		break;
	case WLBD_DB_UNAVAILABLE:
		if (!wlbd_db_ready(outbox->db))
			return; /* wlbd_outbox_resume sends again */
		delay(statement, result->detail);
		break;
	case WLBD_DB_BUSY: /* it was not tried */
		set_timer(outbox);
		return;
	}
	send_next(outbox);
}

static bool is_in(int64_t run_pk, const int64_t *runs, int count)
{
	for (int i = 0; i < count; i++)
		if (runs[i] == run_pk)
			return true;
	return false;
}

/* Returns the oldest statement that may be sent: a run's statements wait for its older ones. */
static struct queued_statement *next_statement(struct wlbd_outbox *outbox)
{
	struct queued_statement *statement;
	int64_t delayed[DELAYED_MAX];
	int count = 0;
	int64_t now_ms = wlb_clock_ms();
	TAILQ_FOREACH(statement, &outbox->statements, link)
	{
		if (is_in(statement->run_pk, delayed, count))
			continue;
		if (statement->retry_at_ms <= now_ms)
			return statement;
		if (count == DELAYED_MAX)
			return NULL;
		delayed[count++] = statement->run_pk;
	}
	return NULL;
}

static void send_next(struct wlbd_outbox *outbox)
{
	if (outbox->is_sending || outbox->count == 0 || !wlbd_db_ready(outbox->db))
		return;
	struct queued_statement *statement = next_statement(outbox);
	if (statement == NULL) {
		set_timer(outbox);
		return;
	}
	outbox->is_sending = true;
	wlbd_db_execute_reserved(outbox->db, statement->sql, statement->params, on_sent, statement);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	send_next(context);
}

struct wlbd_outbox *wlbd_outbox_new(struct event_base *base, struct wlbd_db *db, uint64_t *dropped)
{
	/* One user's runs, however many, leave places for the runs of others. */
	static const struct wlbd_budget_limits limits = {.user_count = STATEMENTS_MAX / 2, .all_count = STATEMENTS_MAX};
	struct wlbd_outbox *outbox = calloc(1, sizeof(*outbox));
	if (outbox == NULL)
		return NULL;
	outbox->db = db;
	outbox->dropped = dropped;
	TAILQ_INIT(&outbox->statements);
	outbox->places = wlbd_budget_new(&limits);
	outbox->timer = evtimer_new(base, on_timer, outbox);
	if (outbox->places != NULL && outbox->timer != NULL)
		return outbox;
	wlbd_outbox_free(outbox);
	return NULL;
}

void wlbd_outbox_free(struct wlbd_outbox *outbox)
{
	if (outbox == NULL)
		return;
	for (int i = 0; i < LOST_NAMED_MAX && outbox->count > 0; i++)
		drop(outbox, TAILQ_FIRST(&outbox->statements), "wlbd ends, and the database did not store it before");
	if (outbox->count > 0)
		wlbd_log(WLBD_LOG_ERROR, "not recorded: %d statements more, since wlbd ends", outbox->count);
	while (!TAILQ_EMPTY(&outbox->statements))
		statement_free(outbox, TAILQ_FIRST(&outbox->statements));
	if (outbox->timer != NULL)
		event_free(outbox->timer);
	wlbd_budget_free(outbox->places);
	free(outbox);
}

static int count_of(const struct wlbd_outbox *outbox, int64_t run_pk)
{
	const struct queued_statement *statement;
	int count = 0;
	TAILQ_FOREACH(statement, &outbox->statements, link)
	count += statement->run_pk == run_pk;
	return count;
}

/* Returns NULL if out of memory. */
static struct queued_statement *statement_new(const char *sql, const struct wlbd_params *params)
{
	struct queued_statement *statement = calloc(1, sizeof(*statement));
	if (statement != NULL)
		statement->params = wlbd_params_copy(params, NULL);
	if (statement == NULL || statement->params == NULL) {
		free(statement);
		return NULL;
	}
	statement->sql = sql;
	return statement;
}

static bool take_place(struct wlbd_outbox *outbox, uid_t uid, int64_t run_pk)
{
	bool is_run_full = outbox->count >= STATEMENTS_OF_RUN_MAX && count_of(outbox, run_pk) >= STATEMENTS_OF_RUN_MAX;
	return !is_run_full && wlbd_budget_enter(outbox->places, uid) == WLBD_BUDGET_TAKEN;
}

void wlbd_outbox_put(struct wlbd_outbox *outbox, uid_t uid, int64_t run_pk, const char *sql,
                     const struct wlbd_params *params)
{
	bool has_place = take_place(outbox, uid, run_pk);
	struct queued_statement *statement = has_place ? statement_new(sql, params) : NULL;
	if (statement == NULL) {
		if (has_place)
			wlbd_budget_leave(outbox->places, uid);
		(*outbox->dropped)++;
		wlbd_log(WLBD_LOG_ERROR,
		         "not recorded: %s, of the run with id %lld of uid %u (too many statements wait for the "
		         "database, or out of memory)",
		         sql, (long long)run_pk, uid);
		return;
	}
	statement->outbox = outbox;
	statement->run_pk = run_pk;
	statement->uid = uid;
	TAILQ_INSERT_TAIL(&outbox->statements, statement, link);
	outbox->count++;
	send_next(outbox);
}

bool wlbd_outbox_holds(const struct wlbd_outbox *outbox, int64_t run_pk)
{
	return count_of(outbox, run_pk) > 0;
}

int wlbd_outbox_count(const struct wlbd_outbox *outbox)
{
	return outbox->count;
}

void wlbd_outbox_resume(struct wlbd_outbox *outbox)
{
	send_next(outbox);
}
