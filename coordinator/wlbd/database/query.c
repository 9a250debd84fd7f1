#include "coordinator/wlbd/database/query.h"

#include <jansson.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

enum {
	NAME_BYTES = 256,  /* of a column; PostgreSQL's have 63 at most */
	LOOK_MS = 100,     /* how often `end` is looked at */
	CANCEL_MS = 2000,  /* for the server to end a statement that is cancelled */
	SERVER_MS = 10000, /* of the server's own limit over that of wlbd */
};

/* A query under way. */
struct session {
	struct wlbd_query *query;
	PGconn *connection;
	int64_t deadline_ms;
	int columns;
	FILE *out; /* the reply */
	char *text;
	size_t bytes; /* of text */
	int rows;
	bool is_cut;
};

/* Settings of the session, and a transaction that the rest is in. The server's own limit is for a wlbd that is killed
 * meanwhile. */
static const char begin_sql[] =
	"set statement_timeout = %d; set lock_timeout = 2000; set jit = off; set max_parallel_workers_per_gather = 0; "
	"set work_mem = '16MB'; set client_encoding = 'UTF8'; begin read only";

/* Null where the login can do no more than it should; else what it can do. */
static const char login_sql[] =
	"select case when r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls then "
	"'is a superuser, or may make roles or databases, replicate or bypass row security' "
	"when exists (select from pg_catalog.pg_auth_members m where m.member = r.oid) then 'is a member of another "
	"role' "
	"else (select pg_catalog.format('can use %I.%I', n.nspname, c.relname) from pg_catalog.pg_class c "
	"join pg_catalog.pg_namespace n on n.oid = c.relnamespace "
	"where n.nspname not in ('pg_catalog', 'information_schema') and n.nspname !~ '^pg_(toast|temp)' and case "
	"when c.relkind = 'S' then pg_catalog.has_sequence_privilege(c.oid, 'usage, select, update') "
	"when c.relkind = 'v' then pg_catalog.has_table_privilege(c.oid, 'insert, update, delete, truncate, trigger') "
	"when c.relkind in ('r', 'p', 'm', 'f') then pg_catalog.has_any_column_privilege(c.oid, 'select, insert, "
	"update') "
	"or pg_catalog.has_table_privilege(c.oid, 'delete, truncate, trigger') end limit 1) end "
	"from pg_catalog.pg_roles r where r.rolname = session_user";

/* The first word that is refused; null: none. All words count, also those in strings and comments: what is a word of
 * the statement is so for any way of reading it. The statement is the parameter. */
static const char words_sql[] =
	"select case when s.sql ~ 'u&[\"'']' then 'u&' else (select w.word from (select distinct m[1] as word from "
	"pg_catalog.regexp_matches(s.sql, '[a-z_][a-z0-9_$]*', 'g') as m) as w where w.word ~ '^pg_' or "
	"w.word not in ('random', 'clock_timestamp') and exists (select from pg_catalog.pg_proc p where p.proname = "
	"w.word "
	"and (p.provolatile = 'v' or p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace) "
	"and not 'internal'::pg_catalog.regtype = any (p.proargtypes::pg_catalog.oid[])) order by w.word limit 1) end "
	"from (select pg_catalog.lower($1::text collate \"C\") as sql) as s";

/* ---- waiting for the server ------------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static int refuse(struct session *s, int status, const char *format, ...)
{
	va_list args;
	s->query->status = status;
	va_start(args, format);
	wlb_text_vformat(s->query->error.message, sizeof(s->query->error.message), format, args);
	va_end(args);
	return -1;
}

/* Returns 0 where the connection's socket is ready; -1 with the reason where the time is over. */
static int wait_socket(struct session *s, short events)
{
	for (;;) {
		int64_t left_ms = s->deadline_ms - wlb_clock_ms();
		struct pollfd socket = {.fd = PQsocket(s->connection), .events = events};
		if (*s->query->end)
			return refuse(s, 503, "wlbd is stopping; try again");
		if (left_ms <= 0)
			return refuse(
				s, 503,
				"the query took longer than %d s and was cancelled; ask for less, such as one run",
				s->query->limit_ms / 1000);
		if (poll(&socket, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS) > 0)
			return 0;
	}
}

static int connect_login(struct session *s)
{
	static const char *const keys[] = {"fallback_application_name", "tcp_user_timeout", "dbname", NULL};
	const char *const values[] = {"wlbd query", "5000", s->query->conninfo, NULL};
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;
	s->connection = PQconnectStartParams(keys, values, 1);
	if (s->connection == NULL || PQstatus(s->connection) == CONNECTION_BAD)
		next = PGRES_POLLING_FAILED;
	while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
		if (wait_socket(s, next == PGRES_POLLING_READING ? POLLIN : POLLOUT) != 0)
			return -1;
		next = PQconnectPoll(s->connection);
	}
	if (next == PGRES_POLLING_OK)
		return 0;
	const char *why = s->connection != NULL ? PQerrorMessage(s->connection) : "out of memory";
	wlb_text_show(s->query->detail, sizeof(s->query->detail), why);
	return refuse(s, 503, "wlbd cannot connect as query_database of wlbd.conf says; wlbd's log says why");
}

/* Returns the next result, which the caller clears; NULL at the end of a statement's results, or with the reason. */
static PGresult *next_result(struct session *s)
{
	int unsent;
	while ((unsent = PQflush(s->connection)) > 0 || PQisBusy(s->connection)) {
		if (wait_socket(s, unsent > 0 ? POLLIN | POLLOUT : POLLIN) != 0)
			return NULL;
		if (PQconsumeInput(s->connection) == 0) {
			refuse(s, 503, "the database has closed the connection; try again");
			return NULL;
		}
	}
	return PQgetResult(s->connection);
}

/* The words of the server are about the user's own statement. */
static int refuse_error(struct session *s, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	return refuse(s, state == NULL || strncmp(state, "57", 2) == 0 || strncmp(state, "53", 2) == 0 ? 503 : 400,
	              "%s%s%s%s", message != NULL ? message : "the database has not answered", hint != NULL ? " (" : "",
	              hint != NULL ? hint : "", hint != NULL ? ")" : "");
}

/* Ends a statement that was sent: returns its last result, which the caller clears; NULL with the reason. */
static PGresult *last_result(struct session *s, int was_sent)
{
	PGresult *last = NULL, *next;
	if (was_sent != 1) {
		refuse(s, 503, "the database has closed the connection; try again");
		return NULL;
	}
	while ((next = next_result(s)) != NULL) {
		PQclear(last);
		last = next;
	}
	ExecStatusType status = PQresultStatus(last); /* of NULL: an error */
	if (s->query->status == 0 && (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK))
		return last;
	if (s->query->status == 0)
		refuse_error(s, last);
	PQclear(last);
	return NULL;
}

/* ---- before the statement -------------------------------------------------------------------------------------- */

static int begin(struct session *s)
{
	char sql[512];
	snprintf(sql, sizeof(sql), begin_sql, s->query->limit_ms + SERVER_MS);
	PGresult *result = last_result(s, PQsendQuery(s->connection, sql));
	PQclear(result);
	return result != NULL ? 0 : -1;
}

static int check_login(struct session *s)
{
	PGresult *result = last_result(s, PQsendQuery(s->connection, login_sql));
	if (result == NULL)
		return -1;
	int rc = 0;
	if (PQntuples(result) != 1 || !PQgetisnull(result, 0, 0))
		rc = refuse(
			s, 503,
			"the login of query_database in wlbd.conf %s: it must be one that can select from the views "
			"and nothing else; wlbd(8) says how an administrator makes it",
			PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "is not known");
	PQclear(result);
	return rc;
}

static int check_words(struct session *s)
{
	const char *const values[] = {s->query->sql};
	PGresult *result = last_result(s, PQsendQueryParams(s->connection, words_sql, 1, NULL, values, NULL, NULL, 0));
	if (result == NULL)
		return -1;
	int rc = 0;
	if (PQntuples(result) != 1 || !PQgetisnull(result, 0, 0))
		rc = refuse(s, 400,
		            "'%s' cannot be in a query, not even in a string: it may read the views by functions of "
		            "PostgreSQL without side effects",
		            PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "this");
	PQclear(result);
	return rc;
}

/* Ends with a ';' that a person writes. */
static void trim_end(char *sql)
{
	size_t length = strlen(sql);
	while (length > 0 && strchr("; \t\r\n", sql[length - 1]) != NULL)
		sql[--length] = '\0';
}

/* Has the server parse the statement as it is, alone: what is not one whole statement is refused here, and so cannot
 * end the brackets that it gets later. Writes the names of its columns. */
static int read_columns(struct session *s)
{
	trim_end(s->query->sql);
	PGresult *result = last_result(s, PQsendPrepare(s->connection, "", s->query->sql, 0, NULL));
	PQclear(result);
	if (result == NULL || (result = last_result(s, PQsendDescribePrepared(s->connection, ""))) == NULL)
		return -1;
	s->columns = PQnfields(result);
	json_t *names = json_array();
	for (int i = 0; i < s->columns; i++) {
		char name[NAME_BYTES];
		wlb_text_store(name, sizeof(name), PQfname(result, i));
		json_array_append_new(names, json_string(name));
	}
	char *text = json_dumps(names, JSON_COMPACT);
	fprintf(s->out, "{\"columns\":%s,\"rows\":[", text != NULL ? text : "[]");
	free(text);
	json_decref(names);
	PQclear(result);
	if (s->columns < 1 || s->columns > WLBD_QUERY_COLUMNS_MAX)
		return refuse(s, 400, "the query has %d columns: it must be a select, values or table of 1 to %d",
		              s->columns, WLBD_QUERY_COLUMNS_MAX);
	return 0;
}

/* ---- the statement --------------------------------------------------------------------------------------------- */

/* Returns the statement as a subquery, of which each row is an array of JSON, or null where it is too long; the caller
 * frees it. What readers of JSON refuse is sent as text: integers of more than 18 digits, numbers from 1e100 on, and
 * strings with escapes. */
static char *wrap(const struct session *s)
{
	char *sql = NULL;
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	if (out == NULL)
		return NULL;
	fprintf(out, "select case when octet_length(r.t) <= %d then r.t end from (select json_build_array(",
	        WLBD_QUERY_ROW_BYTES_MAX);
	for (int i = 0; i < s->columns; i++)
		fprintf(out,
		        "%scase when to_json(q.c%d)::text ~ '(^|[^0-9.])[0-9]{19}|[eE][+]?[0-9]{3}|\\\\u' then "
		        "to_json(q.c%d::text) else to_json(q.c%d) end",
		        i > 0 ? ", " : "", i, i, i);
	fprintf(out, ")::text as t from (\n%s\n) as q(", s->query->sql);
	for (int i = 0; i < s->columns; i++)
		fprintf(out, "%sc%d", i > 0 ? ", " : "", i);
	fprintf(out, ")) as r limit %d", WLBD_QUERY_ROWS_MAX + 1);
	if (fclose(out) == 0)
		return sql;
	free(sql);
	return NULL;
}

/* Returns false where the reply has no place for the row, which is then cut. */
static bool add_row(struct session *s, const PGresult *result)
{
	size_t length = (size_t)PQgetlength(result, 0, 0);
	if (s->rows == WLBD_QUERY_ROWS_MAX || PQgetisnull(result, 0, 0) || s->bytes + length > WLBD_QUERY_BYTES_MAX) {
		s->is_cut = true;
		return false;
	}
	fprintf(s->out, "%s%s", s->rows > 0 ? "," : "", PQgetvalue(result, 0, 0));
	s->bytes += length + 1;
	s->rows++;
	return true;
}

/* Reads row by row, so that one is in memory beside the reply. */
static int read_rows(struct session *s)
{
	char *sql = wrap(s);
	int was_sent = sql != NULL && PQsendQueryParams(s->connection, sql, 0, NULL, NULL, NULL, NULL, 0) == 1 &&
	               PQsetSingleRowMode(s->connection) == 1;
	PGresult *result;
	bool goes_on = true;
	free(sql);
	if (!was_sent)
		return refuse(s, 503, "the query could not be sent; try again");
	while (goes_on && (result = next_result(s)) != NULL) {
		ExecStatusType status = PQresultStatus(result);
		if (status == PGRES_SINGLE_TUPLE)
			goes_on = add_row(s, result);
		else if (status != PGRES_TUPLES_OK)
			refuse_error(s, result);
		PQclear(result);
	}
	return s->query->status == 0 ? 0 : -1;
}

/* A statement that still runs is cancelled; it gets a moment to end, since the server notices a closed connection only
 * when it sends. */
static void end_session(struct session *s)
{
	char reason[256];
	int64_t end_ms = wlb_clock_ms() + CANCEL_MS;
	if (s->connection != NULL && PQtransactionStatus(s->connection) == PQTRANS_ACTIVE) {
		PGcancel *cancel = PQgetCancel(s->connection);
		if (cancel != NULL)
			PQcancel(cancel, reason, sizeof(reason));
		PQfreeCancel(cancel);
		struct pollfd socket = {.fd = PQsocket(s->connection), .events = POLLIN};
		while (PQtransactionStatus(s->connection) == PQTRANS_ACTIVE && wlb_clock_ms() < end_ms) {
			if (poll(&socket, 1, LOOK_MS) > 0 && PQconsumeInput(s->connection) == 0)
				break;
			while (!PQisBusy(s->connection) && PQtransactionStatus(s->connection) == PQTRANS_ACTIVE)
				PQclear(PQgetResult(s->connection));
		}
	}
	PQfinish(s->connection);
}

static int carry_out(struct session *s)
{
	if (connect_login(s) != 0 || PQsetnonblocking(s->connection, 1) != 0 || begin(s) != 0 || check_login(s) != 0 ||
	    check_words(s) != 0 || read_columns(s) != 0 || read_rows(s) != 0)
		return -1;
	fprintf(s->out, "],\"is_cut\":%s}", s->is_cut ? "true" : "false");
	return 0;
}

void wlbd_query_run(struct wlbd_query *query)
{
	struct session s = {.query = query, .deadline_ms = wlb_clock_ms() + query->limit_ms};
	size_t size;
	query->status = 0;
	s.out = open_memstream(&s.text, &size);
	int rc = s.out != NULL ? carry_out(&s) : refuse(&s, 503, "out of memory; try again");
	end_session(&s);
	if (s.out != NULL && fclose(s.out) != 0)
		rc = refuse(&s, 503, "out of memory for the rows; ask for less");
	if (rc == 0)
		query->reply = s.text;
	else
		free(s.text);
}
