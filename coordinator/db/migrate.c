#include "coordinator/db/migrate.h"

#include <errno.h>
#include <glob.h>
#include <libpq-fe.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "coordinator/db/connection.h"

enum {
	FILE_LIMIT_BYTES = 4 << 20,
	LOCK_TIMEOUT_S = 10,
	DEADLOCK = -2, /* PostgreSQL has ended the transaction, which may be tried again */
	TRIES_MAX = 5,
	/* Any number that nothing else uses: "WLB" in ASCII. */
	ADVISORY_LOCK = 0x574c42,
};

int wlb_migrations_dir(char *path, size_t size, struct wlb_error *error)
{
	const char *named = getenv("WLB_MIGRATIONS");
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (named != NULL && *named != '\0') {
		snprintf(path, size, "%s", named);
	} else {
		program[length > 0 ? length : 0] = '\0';
		char *slash = strrchr(program, '/');
		if (slash != NULL)
			*slash = '\0';
		snprintf(path, size, "%s/../share/wlb/sql", program);
	}
	if (access(path, R_OK | X_OK) != 0)
		return wlb_fail(error, "migrations directory %s: %s; set WLB_MIGRATIONS to sql of the source", path,
		                strerror(errno));
	return 0;
}

int wlb_encoding_check(const char *encoding, struct wlb_error *error)
{
	if (encoding == NULL || strcmp(encoding, "UTF8") == 0)
		return 0;
	return wlb_fail(error,
	                "the database has the encoding %s and should have UTF8, since a text with other letters than "
	                "those of ASCII may be cut within a character and lists that have it cannot be read then; "
	                "dump it, make it anew with createdb -E UTF8 -T template0, and restore the dump",
	                encoding);
}

int wlb_schema_of(const PGresult *result, struct wlb_schema *schema)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	*schema = (struct wlb_schema){0};
	if (sqlstate != NULL && strcmp(sqlstate, "42P01") == 0) /* there is no table schema_version */
		return 0;
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQnfields(result) != 3)
		return -1;
	schema->version = atoi(PQgetvalue(result, 0, 0));
	schema->is_unreleased = *PQgetvalue(result, 0, 1) == 't';
	snprintf(schema->code, sizeof(schema->code), "%s", PQgetvalue(result, 0, 2));
	return 0;
}

/* Whether the schema is one that wlb_migrate can change. */
static int check_known(const struct wlb_schema *schema, struct wlb_error *error)
{
	if (schema->is_unreleased)
		return wlb_fail(
			error,
			"the database was made before version 0.2.0 and is left as it is; keep it with pg_dump, "
			"and give this version " WLB_VERSION " an empty database (createdb -E UTF8 -T template0)");
	if (schema->version > WLB_SCHEMA_VERSION)
		return wlb_fail(error,
		                "the database has schema %d, newer than %d, the newest this version %s knows; upgrade "
		                "WLB on this host",
		                schema->version, WLB_SCHEMA_VERSION, WLB_VERSION);
	return 0;
}

int wlb_schema_check(const struct wlb_schema *schema, struct wlb_error *error)
{
	if (check_known(schema, error) != 0)
		return -1;
	if (schema->version < WLB_SCHEMA_VERSION)
		return wlb_fail(error, "the database has schema %d and this version %s needs %d; run wlb db migrate",
		                schema->version, WLB_VERSION, WLB_SCHEMA_VERSION);
	if (strcmp(schema->code, WLB_SCHEMA_CODE) != 0)
		return wlb_fail(error,
		                "the functions and views of the database are not those of this version %s; run wlb db "
		                "migrate",
		                WLB_VERSION);
	return 0;
}

static int fail_result(const PGresult *result, const char *what, struct wlb_error *error)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	if (sqlstate != NULL && detail != NULL && strcmp(sqlstate, "2BP01") == 0)
		wlb_fail(
			error,
			"nothing was changed, since functions and views of WLB are made anew, and not all that depends "
			"on them is WLB's: %s; drop that, run wlb db migrate, and make it again",
			detail);
	else if (sqlstate != NULL && strcmp(sqlstate, "55P03") == 0)
		wlb_fail(error,
		         "%s: nothing was changed, since another session has used a table or a view for %d s; run wlb "
		         "db migrate again when it has ended",
		         what, LOCK_TIMEOUT_S);
	else
		wlb_fail(error, "%s: %s", what, PQresultErrorMessage(result));
	wlb_db_fail_line(error);
	return sqlstate != NULL && strcmp(sqlstate, "40P01") == 0 ? DEADLOCK : -1;
}

int wlb_encoding_check_of(const char *conninfo, struct wlb_error *error)
{
	PGconn *connection = wlb_db_connect(conninfo, NULL);
	if (connection == NULL)
		return 0;
	int rc = wlb_encoding_check(PQparameterStatus(connection, "server_encoding"), error);
	PQfinish(connection);
	return rc;
}

static int execute(PGconn *connection, const char *sql, const char *what, struct wlb_error *error)
{
	PGresult *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);
	bool is_done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
	int rc = is_done ? 0 : fail_result(result, what, error);
	PQclear(result);
	return rc;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int read_schema(PGconn *connection, struct wlb_schema *schema, struct wlb_error *error)
{
	PGresult *result = PQexec(connection, WLB_SCHEMA_QUERY);
	int rc = wlb_schema_of(result, schema);
	if (rc != 0)
		fail_result(result, "schema_version", error);
	PQclear(result);
	return rc;
}

int wlb_schema_read(const char *conninfo, struct wlb_schema *schema, struct wlb_error *error)
{
	PGconn *connection = wlb_db_connect(conninfo, error);
	if (connection == NULL)
		return -1;
	int rc = read_schema(connection, schema, error);
	PQfinish(connection);
	return rc;
}

/* Appends the text of a file to `out`. */
static int append_file(FILE *out, const char *path, struct wlb_error *error)
{
	char *text;
	if (wlb_file_read(path, FILE_LIMIT_BYTES, &text, NULL, error) != 0)
		return -1;
	fputs(text, out);
	free(text);
	return 0;
}

/* Returns the files of functions and views, one after the other in the order of their names, which the caller frees;
 * NULL on failure. */
static char *read_code(const char *dir, struct wlb_error *error)
{
	char pattern[PATH_MAX];
	char *code = NULL;
	size_t length;
	glob_t files;
	snprintf(pattern, sizeof(pattern), "%s/functions/*.sql", dir);
	int rc = glob(pattern, 0, NULL, &files);
	snprintf(pattern, sizeof(pattern), "%s/views/*.sql", dir);
	rc = rc == 0 ? glob(pattern, GLOB_APPEND, NULL, &files) : rc;
	if (rc != 0)
		wlb_fail(error, "migrations directory %s: has no functions/*.sql or views/*.sql; is it of version %s?",
		         dir, WLB_VERSION);
	FILE *out = rc == 0 ? open_memstream(&code, &length) : NULL;
	if (rc == 0 && out == NULL)
		rc = wlb_fail(error, "out of memory");
	for (size_t i = 0; rc == 0 && i < files.gl_pathc; i++)
		rc = append_file(out, files.gl_pathv[i], error);
	globfree(&files);
	if (out != NULL && fclose(out) == 0 && rc == 0)
		return code;
	free(code);
	return NULL;
}

/* As CMake calculates WLB_SCHEMA_CODE. The server does it, since nothing else here needs SHA-256. */
static int digest_of(PGconn *connection, const char *code, char digest[65], struct wlb_error *error)
{
	PGresult *result = PQexecParams(connection, "select encode(sha256(convert_to($1, 'UTF8')), 'hex')", 1, NULL,
	                                &code, NULL, NULL, 0);
	int rc = PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : fail_result(result, "digest", error);
	if (rc == 0)
		snprintf(digest, 65, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return rc;
}

/* ---- changing ------------------------------------------------------------------------------------ */

static int execute_file(PGconn *connection, const char *dir, const char *name, struct wlb_error *error)
{
	char path[PATH_MAX];
	char *sql;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (wlb_file_read(path, FILE_LIMIT_BYTES, &sql, NULL, error) != 0)
		return -1;
	int rc = execute(connection, sql, name, error);
	free(sql);
	return rc;
}

/* Applies the files of tables after `version`, each with its row of schema_version. */
static int apply_tables(PGconn *connection, const char *dir, int version, struct wlb_error *error)
{
	int rc;
	while (++version <= WLB_SCHEMA_VERSION) {
		char name[32], note[128];
		snprintf(name, sizeof(name), "tables/%04d.sql", version);
		snprintf(note, sizeof(note), "insert into schema_version (version, file) values (%d, '%04d.sql')",
		         version, version);
		if ((rc = execute_file(connection, dir, name, error)) != 0 ||
		    (rc = execute(connection, note, name, error)) != 0)
			return rc;
	}
	return 0;
}

/* Functions are made first without looking at their bodies, which may use what comes later. */
static int make_code(PGconn *connection, const char *code, const char *digest, struct wlb_error *error)
{
	int rc;
	char note[256];
	snprintf(
		note, sizeof(note),
		"comment on schema wlb_code is 'Functions and views of WLB, which wlb db migrate drops and makes anew: "
		"nothing else belongs here. %s'",
		digest);
	static const char settings[] =
		"set local check_function_bodies = off; "
		"select set_config('search_path', 'wlb_code, ' || current_setting('search_path'), true)";
	if ((rc = execute(connection, settings, "search_path", error)) != 0 ||
	    (rc = execute(connection, code, "functions and views", error)) != 0)
		return rc;
	return execute(connection, note, "wlb_code", error);
}

/* Within a transaction. Returns DEADLOCK where a statement of another session, which uses several views, held one and
 * waited for another that was locked already. */
static int make_anew(PGconn *connection, const char *dir, int version, const char *code, const char *digest,
                     struct wlb_error *error)
{
	int rc;
	if ((rc = execute_file(connection, dir, "drop_code.sql", error)) != 0 ||
	    (rc = apply_tables(connection, dir, version, error)) != 0 ||
	    (rc = make_code(connection, code, digest, error)) != 0)
		return rc;
	return execute_file(connection, dir, "finish_code.sql", error);
}

/* In a transaction, which is undone unless it is committed. Returns like make_anew. */
static int change(PGconn *connection, const char *dir, const char *code, int *changed, struct wlb_error *error)
{
	struct wlb_schema schema;
	char digest[65];
	int rc = 0;
	if (read_schema(connection, &schema, error) != 0 || check_known(&schema, error) != 0 ||
	    digest_of(connection, code, digest, error) != 0 || execute(connection, "begin", "begin", error) != 0 ||
	    execute_file(connection, dir, "search_path.sql", error) != 0)
		return -1;
	*changed = schema.version < WLB_SCHEMA_VERSION || strcmp(schema.code, digest) != 0;
	if (*changed)
		rc = make_anew(connection, dir, schema.version, code, digest, error);
	return rc != 0 ? rc : execute(connection, "commit", "commit", error);
}

static int try_change(PGconn *connection, const char *dir, const char *code, int *changed, struct wlb_error *error)
{
	int rc = change(connection, dir, code, changed, error);
	for (int tries = 1; rc == DEADLOCK && tries < TRIES_MAX; tries++) {
		if (execute(connection, "rollback", "rollback", error) != 0)
			return -1;
		rc = change(connection, dir, code, changed, error);
	}
	return rc;
}

/* Returns once no other migration is under way, which may take minutes; until the connection ends no other begins. A
 * migration may take as long as it needs, but its waits for locks are bounded: whoever uses a view waits behind a
 * migration that waits for the view's lock. */
static int wait_for_others(PGconn *connection, struct wlb_error *error)
{
	char lock[64], timeout[64];
	snprintf(lock, sizeof(lock), "select pg_advisory_lock(%d)", ADVISORY_LOCK);
	snprintf(timeout, sizeof(timeout), "set lock_timeout = '%ds'", LOCK_TIMEOUT_S);
	if (execute(connection, "set client_min_messages = warning; set statement_timeout = 0; set lock_timeout = 0",
	            "database", error) != 0 ||
	    execute(connection, lock, "waiting for another migration", error) != 0)
		return -1;
	return execute(connection, timeout, "database", error);
}

int wlb_migrate(const char *conninfo, const char *dir, struct wlb_error *error)
{
	int changed = 0, rc = -1;
	char *code = read_code(dir, error);
	PGconn *connection = code != NULL ? wlb_db_connect(conninfo, error) : NULL;
	if (connection != NULL && wait_for_others(connection, error) == 0)
		rc = try_change(connection, dir, code, &changed, error);
	PQfinish(connection);
	free(code);
	return rc != 0 ? -1 : changed;
}
