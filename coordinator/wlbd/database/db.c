#include "coordinator/wlbd/database/db.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "coordinator/db/migrate.h"
#include "coordinator/wlbd/database/db_reason.h"
#include "coordinator/wlbd/log.h"

enum {
	RETRY_FIRST_MS = 100,
	RETRY_MAX_MS = 2000,
	WATCH_MS = 100,
	BACKSTOP_MS = 1000, /* for the answer after the server's limit */
	CALLS_MAX = 4000,
	RESERVED_CALLS = 16, /* over that */
};

struct statement {
	TAILQ_ENTRY(statement) link;
	wlbd_db_done *done;
	void *context;
	int64_t deadline_ms;
	struct wlbd_db_result result;
	char *value; /* owned; result.value */
	char message[256];
	char detail[512];
};
TAILQ_HEAD(statement_list, statement);

enum state {
	CLOSED,    /* until the timer */
	RESOLVING, /* names of hosts */
	CONNECTING,
	CHECKING, /* the schema */
	READY,
};

struct wlbd_db {
	struct event_base *base;
	struct wlbd_db_server *server;
	struct wlbd_db_waiter waiter; /* RESOLVING */
	int timeout_ms;
	struct wlbd_db_hooks hooks;
	enum state state;
	PGconn *connection;
	struct event *io;
	struct event *timer; /* CLOSED: connects again; else: checks deadlines */
	int retry_ms;
	int64_t connect_deadline_ms;
	bool has_schema; /* while it is checked: `schema` is known */
	struct wlb_schema schema;
	struct statement_list statements; /* sent, in order */
	int count;                        /* of statements */
	char reason[512];                 /* for clients */
};

static const char read_only[] = "25006"; /* the SQLSTATE of a statement that cannot be carried out for that */

static void on_io(evutil_socket_t fd, short what, void *context);
static void close_connection(struct wlbd_db *db, const char *reason, const char *detail);
static void close_failed(struct wlbd_db *db);

/* ---- the outcome of a statement ----------------------------------------------------------------- */

static void copy_line(char *to, size_t size, const char *text)
{
	wlb_text_show(to, size, text != NULL && *text != '\0' ? text : "no reason given");
	to[strcspn(to, "\n")] = '\0';
}

static void write_unavailable(char *message, size_t size, const char *reason)
{
	snprintf(message, size, "the database is unavailable (%.200s); try again", reason);
}

/* SQLSTATE classes of a server that cannot serve now; the statement may be right. */
static bool means_unavailable(const char *sqlstate)
{
	static const char *const classes[] = {"08", "53", "57", "58", "25006", "XX"};
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strncmp(sqlstate, classes[i], strlen(classes[i])) == 0)
			return true;
	return false;
}

/* Whether the server answers and can store nothing, whatever it is sent: its disk has no space (53100), or it is
 * read-only. Other errors of means_unavailable may concern one statement alone, which must not count for all runs. */
static bool means_not_stored(const char *sqlstate)
{
	return strcmp(sqlstate, "53100") == 0 || strcmp(sqlstate, read_only) == 0;
}

/* Cancelled by statement_timeout (57014), by lock_timeout (55P03) or to end a deadlock (class 40). */
static bool means_slow(const char *sqlstate)
{
	return strcmp(sqlstate, "57014") == 0 || strcmp(sqlstate, "55P03") == 0 || strncmp(sqlstate, "40", 2) == 0;
}

/* The client's mistake, which the checks of the body missed: rows that must be one (class 21), values (22), constraints
 * (23). */
static bool means_wrong_data(const char *sqlstate)
{
	return strncmp(sqlstate, "21", 2) == 0 || strncmp(sqlstate, "22", 2) == 0 || strncmp(sqlstate, "23", 2) == 0;
}

/* Of the data (XX001), of an index (XX002), or of the files below them (class 58). */
static bool means_damaged(const char *sqlstate)
{
	return strcmp(sqlstate, "XX001") == 0 || strcmp(sqlstate, "XX002") == 0 || strncmp(sqlstate, "58", 2) == 0;
}

/* Without an SQLSTATE the connection has ended, which the hook `unavailable` tells. */
static void note_unavailable(struct wlbd_db *db, const char *sqlstate, const char *message)
{
	if (sqlstate == NULL)
		return;
	wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE, "database: %s: %s", sqlstate, message);
	if (means_not_stored(sqlstate) && db->hooks.not_stored != NULL)
		db->hooks.not_stored(db->hooks.context);
}

/* The messages of the schema's own functions are for clients; those of the server are for the log. */
static void store_error(struct wlbd_db *db, struct statement *statement, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	char *message = statement->message;
	copy_line(statement->detail, sizeof(statement->detail),
	          primary != NULL ? primary : PQresultErrorMessage(result));
	statement->result.message = message;
	statement->result.detail = statement->detail;
	statement->result.status = WLBD_DB_REFUSED;
	if (sqlstate != NULL && means_slow(sqlstate)) {
		statement->result.status = WLBD_DB_SLOW;
		statement->result.http_status = 503;
		snprintf(message, sizeof(statement->message), "the database took too long; try again");
		wlb_text_format(statement->detail, sizeof(statement->detail), "the database took too long (%.200s)",
		                primary);
	} else if (sqlstate == NULL || means_unavailable(sqlstate)) {
		statement->result.status =
			sqlstate != NULL && means_damaged(sqlstate) ? WLBD_DB_DAMAGED : WLBD_DB_UNAVAILABLE;
		statement->result.http_status = 503;
		write_unavailable(message, sizeof(statement->message), wlbd_db_reason_of_state(sqlstate));
		note_unavailable(db, sqlstate, statement->detail);
	} else if (strncmp(sqlstate, "WL", 2) == 0) {
		statement->result.http_status = atoi(sqlstate + 2);
		statement->result.message = statement->detail;
	} else {
		statement->result.http_status = means_wrong_data(sqlstate) ? 400 : 500;
		snprintf(message, sizeof(statement->message),
		         "the database refuses what was sent to it (SQLSTATE %.5s); wlbd's log says why", sqlstate);
		wlbd_log_limited(WLBD_LOG_ERROR, WLBD_LIMIT_DATABASE, "database: %s: %s", sqlstate, statement->detail);
	}
}

static void store_value(struct statement *statement, const PGresult *result)
{
	if (PQntuples(result) > 0 && PQnfields(result) > 0 && !PQgetisnull(result, 0, 0))
		statement->value = strdup(PQgetvalue(result, 0, 0));
	statement->result.value = statement->value;
}

static void finish_statement(struct wlbd_db *db, struct statement *statement)
{
	TAILQ_REMOVE(&db->statements, statement, link);
	db->count--;
	struct statement *next = TAILQ_FIRST(&db->statements);
	if (next != NULL) /* the time before it was first does not count */
		next->deadline_ms = wlb_clock_ms() + db->timeout_ms + BACKSTOP_MS;
	if (statement->done != NULL)
		statement->done(statement->context, &statement->result);
	free(statement->value);
	free(statement);
}

static void answer_busy(const struct wlbd_db *db, wlbd_db_done *done, void *context)
{
	char message[128];
	snprintf(message, sizeof(message), "%d statements wait for the database; try again", db->count);
	struct wlbd_db_result result = {
		.status = WLBD_DB_BUSY, .http_status = 503, .message = message, .detail = message};
	if (done != NULL)
		done(context, &result);
}

static void answer_unavailable(const char *reason, wlbd_db_done *done, void *context)
{
	char message[256];
	write_unavailable(message, sizeof(message), reason);
	struct wlbd_db_result result = {
		.status = WLBD_DB_UNAVAILABLE, .http_status = 503, .message = message, .detail = message};
	if (done != NULL)
		done(context, &result);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void set_timer(struct wlbd_db *db, int ms)
{
	struct timeval after = {ms / 1000, ms % 1000 * 1000};
	event_add(db->timer, &after);
}

static void watch(struct wlbd_db *db, short what)
{
	int fd = PQsocket(db->connection);
	if (db->io != NULL)
		event_free(db->io);
	db->io = event_new(db->base, fd, what, on_io, db);
	event_add(db->io, NULL);
}

/* What follows the connection string takes precedence over it, unless it is NULL or "". Of several hosts libpq takes
 * the first that can be written to: after a failover another than the first may be the primary. */
static void begin_connecting(struct wlbd_db *db, const struct wlbd_db_hosts *hosts)
{
	static const char *const keys[] = {"fallback_application_name",
	                                   "tcp_user_timeout",
	                                   "dbname",
	                                   "host",
	                                   "hostaddr",
	                                   "port",
	                                   "target_session_attrs",
	                                   NULL};
	const char *const values[] = {
		"wlbd",       "5000", wlbd_db_server_conninfo(db->server), hosts->host, hosts->hostaddr, hosts->port,
		"read-write", NULL};

	db->state = CONNECTING;
	db->connection = PQconnectStartParams(keys, values, 1);
	if (PQstatus(db->connection) == CONNECTION_BAD) {
		close_failed(db);
		return;
	}
	PQsetErrorVerbosity(db->connection, PQERRORS_VERBOSE); /* with the SQLSTATE */
	watch(db, EV_WRITE);
	set_timer(db, WATCH_MS);
}

static void on_hosts(void *context, const struct wlbd_db_hosts *hosts, const struct wlb_error *error)
{
	struct wlbd_db *db = context;
	if (hosts != NULL)
		begin_connecting(db, hosts);
	else
		close_connection(db, "its host's name cannot be resolved", error->message);
}

static void begin_resolving(struct wlbd_db *db)
{
	db->state = RESOLVING;
	db->connect_deadline_ms = wlb_clock_ms() + db->timeout_ms;
	set_timer(db, WATCH_MS);
	wlbd_db_server_find(db->server, &db->waiter);
}

static void ignore_notice(void *context, const PGresult *result)
{
	(void)context;
	wlbd_log(WLBD_LOG_DEBUG, "database: %s", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
}

static void ask_schema(struct wlbd_db *db)
{
	char sql[704], session[64] = "";
	int64_t term = wlbd_db_server_term(db->server);
	if (term != 0)
		snprintf(session, sizeof(session), "select wlb_coordinator_session(%lld); ", (long long)term);
	PQsetNoticeReceiver(db->connection, ignore_notice, NULL);
	/* jit: where the statistics of the tables are old, PostgreSQL compiles statements for longer than they run. */
	snprintf(sql, sizeof(sql),
	         "set statement_timeout = %d; set lock_timeout = %d; set jit = off; "
	         "select set_config('search_path', current_setting('search_path') || ', wlb_code', false); %s%s",
	         db->timeout_ms, db->timeout_ms / 2, session, WLB_SCHEMA_QUERY);
	if (PQsetnonblocking(db->connection, 1) != 0 || PQsendQuery(db->connection, sql) != 1) {
		close_failed(db);
		return;
	}
	db->has_schema = false;
	db->state = CHECKING;
	watch(db, EV_READ | EV_WRITE | EV_PERSIST);
	on_io(-1, EV_WRITE, db);
}

static void poll_connection(struct wlbd_db *db)
{
	PostgresPollingStatusType next = PQconnectPoll(db->connection);
	if (next == PGRES_POLLING_OK)
		ask_schema(db);
	else if (next == PGRES_POLLING_FAILED)
		close_failed(db);
	else
		watch(db, next == PGRES_POLLING_READING ? EV_READ : EV_WRITE);
}

static void begin_serving(struct wlbd_db *db)
{
	struct wlb_error error;
	if (wlb_schema_check(&db->schema, &error) != 0) {
		close_connection(db, error.message, error.message);
		db->hooks.wrong_schema(db->hooks.context, &error);
		return;
	}
	if (PQenterPipelineMode(db->connection) != 1) {
		close_failed(db);
		return;
	}
	db->state = READY;
	db->retry_ms = RETRY_FIRST_MS;
	db->reason[0] = '\0';
	if (db->hooks.ready != NULL)
		db->hooks.ready(db->hooks.context);
}

/* Reads the answers to ask_schema that have arrived. The last one counts. */
static void read_schema(struct wlbd_db *db)
{
	while (!PQisBusy(db->connection)) {
		PGresult *result = PQgetResult(db->connection);
		if (result == NULL && db->has_schema)
			begin_serving(db);
		else if (result == NULL)
			close_failed(db);
		if (result == NULL)
			return;
		db->has_schema = wlb_schema_of(result, &db->schema) == 0;
		PQclear(result);
	}
}

/* For a reason of wlbd's own. */
static void close_own(struct wlbd_db *db, const char *reason)
{
	close_connection(db, reason, reason);
}

/* For a reason that libpq has. */
static void close_failed(struct wlbd_db *db)
{
	const char *message = PQerrorMessage(db->connection);
	close_connection(db, wlbd_db_reason_of_message(message), message);
}

/* `reason` is for clients and `detail` for the log. */
static void close_connection(struct wlbd_db *db, const char *reason, const char *detail)
{
	char line[512];
	copy_line(line, sizeof(line), detail); /* before PQfinish, which may free it */
	bool was_ready = db->state == READY;
	db->state = CLOSED;
	copy_line(db->reason, sizeof(db->reason), reason);
	if (db->io != NULL)
		event_free(db->io);
	db->io = NULL;
	wlbd_db_server_forget(db->server, &db->waiter);
	PQfinish(db->connection);
	db->connection = NULL;
	set_timer(db, was_ready ? 0 : db->retry_ms);
	if (!was_ready && db->retry_ms < RETRY_MAX_MS)
		db->retry_ms *= 2;
	/* `done` may send new statements: the state is CLOSED already, so that they are answered at once. */
	struct statement_list lost;
	TAILQ_INIT(&lost);
	TAILQ_CONCAT(&lost, &db->statements, link);
	db->count = 0;
	for (struct statement *statement = TAILQ_FIRST(&lost); statement != NULL; statement = TAILQ_FIRST(&lost)) {
		TAILQ_REMOVE(&lost, statement, link);
		answer_unavailable(db->reason, statement->done, statement->context);
		free(statement->value);
		free(statement);
	}
	if (db->hooks.unavailable != NULL)
		db->hooks.unavailable(db->hooks.context, line);
}

/* ---- the pipeline -------------------------------------------------------------------------- */

static void handle_result(struct wlbd_db *db, struct statement *statement, const PGresult *result)
{
	switch (PQresultStatus(result)) {
	case PGRES_TUPLES_OK:
		store_value(statement, result);
		break;
	case PGRES_COMMAND_OK:
	case PGRES_PIPELINE_ABORTED:
		break;
	case PGRES_PIPELINE_SYNC: /* the transaction is committed, or its error is known */
		finish_statement(db, statement);
		break;
	default:
		store_error(db, statement, result);
	}
}

static bool means_read_only(const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	return sqlstate != NULL && strcmp(sqlstate, read_only) == 0;
}

/* The next try takes another host, or none. It follows after the pause of a failed try, since it may reach the same
 * host. */
static void leave_read_only(struct wlbd_db *db)
{
	db->state = CHECKING;
	close_own(db, wlbd_db_reason_of_state(read_only));
}

static void read_results(struct wlbd_db *db)
{
	int empty_in_a_row = 0; /* a NULL ends each statement; two of them end what has arrived */
	while (db->state == READY && !TAILQ_EMPTY(&db->statements) && empty_in_a_row < 2 && !PQisBusy(db->connection)) {
		PGresult *result = PQgetResult(db->connection);
		empty_in_a_row = result == NULL ? empty_in_a_row + 1 : 0;
		if (result != NULL)
			handle_result(db, TAILQ_FIRST(&db->statements), result);
		if (means_read_only(result))
			leave_read_only(db);
		PQclear(result);
	}
}

static void flush(struct wlbd_db *db)
{
	int left = PQflush(db->connection);
	if (left < 0) {
		close_failed(db);
		return;
	}
	watch(db, left > 0 ? EV_READ | EV_WRITE | EV_PERSIST : EV_READ | EV_PERSIST);
}

static void on_io(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_db *db = context;
	(void)fd;
	if (db->state == CONNECTING) {
		poll_connection(db);
		return;
	}
	if ((what & EV_READ) && PQconsumeInput(db->connection) != 1) {
		/* What arrived before the connection ended may answer statements. */
		if (db->state == READY)
			read_results(db);
		if (db->state != CLOSED)
			close_failed(db);
		return;
	}
	flush(db);
	if (db->state == CHECKING)
		read_schema(db);
	else if (db->state == READY)
		read_results(db);
}

static void close_unresolved(struct wlbd_db *db)
{
	char detail[512];
	wlb_text_format(detail, sizeof(detail),
	                "the name server does not answer in time for the database's host '%.300s'",
	                wlbd_db_server_asked(db->server));
	close_connection(db, "the name server does not answer in time", detail);
}

/* The deadline is the connection's while the connection is made, then the oldest statement's. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct wlbd_db *db = context;
	int64_t now = wlb_clock_ms();
	struct statement *oldest = TAILQ_FIRST(&db->statements);
	(void)fd;
	(void)what;
	if (db->state == CLOSED) {
		begin_resolving(db);
		return;
	}
	if (db->state == READY && oldest != NULL && now >= oldest->deadline_ms)
		close_own(db, "no answer in time");
	else if (db->state == RESOLVING && now >= db->connect_deadline_ms)
		close_unresolved(db);
	else if (db->state != READY && now >= db->connect_deadline_ms)
		close_own(db, "no connection in time");
	else
		set_timer(db, WATCH_MS);
}

/* ---- public ---------------------------------------------------------------------------------- */

struct wlbd_db *wlbd_db_new(struct event_base *base, struct wlbd_db_server *server, int timeout_ms,
                            const struct wlbd_db_hooks *hooks, struct wlb_error *error)
{
	struct wlbd_db *db = calloc(1, sizeof(*db));
	if (db == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	db->base = base;
	db->server = server;
	db->waiter = (struct wlbd_db_waiter){.done = on_hosts, .context = db};
	db->timeout_ms = timeout_ms;
	db->hooks = *hooks;
	db->retry_ms = RETRY_FIRST_MS;
	db->timer = evtimer_new(base, on_timer, db);
	copy_line(db->reason, sizeof(db->reason), "not connected yet");
	TAILQ_INIT(&db->statements);
	set_timer(db, 0);
	return db;
}

void wlbd_db_stop(struct wlbd_db *db)
{
	if (db != NULL && db->state != CLOSED)
		close_own(db, "wlbd is stopping");
}

void wlbd_db_free(struct wlbd_db *db)
{
	if (db == NULL)
		return;
	for (struct statement *statement = TAILQ_FIRST(&db->statements); statement != NULL;
	     statement = TAILQ_FIRST(&db->statements)) {
		TAILQ_REMOVE(&db->statements, statement, link);
		free(statement->value);
		free(statement);
	}
	if (db->io != NULL)
		event_free(db->io);
	event_free(db->timer);
	wlbd_db_server_forget(db->server, &db->waiter);
	PQfinish(db->connection);
	free(db);
}

void wlbd_db_renew(struct wlbd_db *db)
{
	close_own(db, "the connection is made again");
}

bool wlbd_db_ready(const struct wlbd_db *db)
{
	return db->state == READY;
}

int wlbd_db_encoding_check(const struct wlbd_db *db, struct wlb_error *error)
{
	return wlb_encoding_check(PQparameterStatus(db->connection, "server_encoding"), error);
}

const char *wlbd_db_reason(const struct wlbd_db *db)
{
	return db->reason;
}

/* No more than `max` wait. */
static void send_statement(struct wlbd_db *db, int max, const char *sql, const struct wlbd_params *params,
                           wlbd_db_done *done, void *context)
{
	const char *texts[WLBD_PARAMS_MAX];
	char *memory = NULL;
	struct statement *statement = db->state == READY && db->count < max ? calloc(1, sizeof(*statement)) : NULL;
	if (statement != NULL && wlbd_params_texts(params, texts, &memory) != 0) {
		free(statement);
		statement = NULL;
	}
	if (statement == NULL && db->count >= max) {
		answer_busy(db, done, context);
		return;
	}
	if (statement == NULL) {
		answer_unavailable(db->reason, done, context);
		return;
	}
	statement->done = done;
	statement->context = context;
	statement->deadline_ms = wlb_clock_ms() + db->timeout_ms + BACKSTOP_MS;
	/* A sync after each statement makes each its own transaction. */
	int sent = PQsendQueryParams(db->connection, sql, params->count, NULL, texts, NULL, NULL, 0);
	free(memory);
	if (sent != 1 || PQpipelineSync(db->connection) != 1) {
		answer_unavailable(wlbd_db_reason_of_message(PQerrorMessage(db->connection)), done, context);
		free(statement);
		return;
	}
	TAILQ_INSERT_TAIL(&db->statements, statement, link);
	db->count++;
	flush(db);
}

void wlbd_db_execute(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                     void *context)
{
	send_statement(db, CALLS_MAX, sql, params, done, context);
}

void wlbd_db_execute_reserved(struct wlbd_db *db, const char *sql, const struct wlbd_params *params, wlbd_db_done *done,
                              void *context)
{
	send_statement(db, CALLS_MAX + RESERVED_CALLS, sql, params, done, context);
}
