#include "coordinator/db/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <libpq-fe.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"

enum {
	MIGRATION_LIMIT_BYTES = 4 << 20,
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
		snprintf(path, size, "%s/../share/wlb/migrations", program);
	}
	if (access(path, R_OK | X_OK) != 0)
		return wlb_fail(error,
		                "migrations directory %s: %s; set WLB_MIGRATIONS to sql/migrations of the source", path,
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

int wlb_schema_check(int version, struct wlb_error *error)
{
	if (version == WLB_SCHEMA_VERSION)
		return 0;
	if (version > WLB_SCHEMA_VERSION)
		return wlb_fail(error,
		                "the database has schema %d, newer than %d, the newest this version %s knows; upgrade "
		                "WLB on this host",
		                version, WLB_SCHEMA_VERSION, WLB_VERSION);
	return wlb_fail(error, "the database has schema %d and this version %s needs %d; run wlb db migrate", version,
	                WLB_VERSION, WLB_SCHEMA_VERSION);
}

/* libpq's messages end in a newline and may have several lines; ours have one. */
static int fail_pq(PGconn *connection, const char *what, struct wlb_error *error)
{
	wlb_fail(error, "%s: %s", what, PQerrorMessage(connection));
	for (char *c = error != NULL ? error->message : NULL; c != NULL && *c != '\0'; c++)
		if (*c == '\n')
			*c = c[1] == '\0' ? '\0' : ' ';
	return -1;
}

static PGconn *connect_to(const char *conninfo, struct wlb_error *error)
{
	/* Settings in the connection string come last and take precedence. */
	static const char *const keys[] = {"connect_timeout", "fallback_application_name", "dbname", NULL};
	const char *const values[] = {"10", "wlb", conninfo, NULL};
	PGconn *connection = PQconnectdbParams(keys, values, 1);
	if (PQstatus(connection) == CONNECTION_OK)
		return connection;
	fail_pq(connection, "database", error);
	PQfinish(connection);
	return NULL;
}

int wlb_encoding_check_of(const char *conninfo, struct wlb_error *error)
{
	PGconn *connection = connect_to(conninfo, NULL);
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
	PQclear(result);
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return 0;
	return fail_pq(connection, what, error);
}

static int read_version(PGconn *connection, struct wlb_error *error)
{
	/* Two statements: the second does not parse where the table does not exist. */
	PGresult *result = PQexec(connection, "select to_regclass('schema_version') is not null");
	bool exists = PQresultStatus(result) == PGRES_TUPLES_OK && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
	bool asked = PQresultStatus(result) == PGRES_TUPLES_OK;
	PQclear(result);
	if (!asked)
		return fail_pq(connection, "schema_version", error);
	if (!exists)
		return 0;
	result = PQexec(connection, "select coalesce(max(version), 0) from schema_version");
	int version = PQresultStatus(result) == PGRES_TUPLES_OK ? atoi(PQgetvalue(result, 0, 0)) : -1;
	PQclear(result);
	return version >= 0 ? version : fail_pq(connection, "schema_version", error);
}

int wlb_schema_version(const char *conninfo, struct wlb_error *error)
{
	PGconn *connection = connect_to(conninfo, error);
	if (connection == NULL)
		return -1;
	int version = read_version(connection, error);
	PQfinish(connection);
	return version;
}

/* The file NNNN_*.sql of a version: its name within dir. */
static int find_file(const char *dir, int version, char name[NAME_MAX + 1], struct wlb_error *error)
{
	char prefix[16];
	int length = snprintf(prefix, sizeof(prefix), "%04d_", version);
	DIR *folder = opendir(dir);
	if (folder == NULL)
		return wlb_fail(error, "migrations directory %s: %s", dir, strerror(errno));
	int found = 0;
	for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
		size_t end = strlen(entry->d_name);
		if (strncmp(entry->d_name, prefix, (size_t)length) != 0 || end < 4 ||
		    strcmp(entry->d_name + end - 4, ".sql") != 0)
			continue;
		snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
		found++;
	}
	closedir(folder);
	if (found != 1)
		return wlb_fail(error,
		                "migrations directory %s: has %d files %s*.sql and must have one; is it of version %s?",
		                dir, found, prefix, WLB_VERSION);
	return 0;
}

/* Applies one file and adds its row to schema_version, or does neither. */
static int apply(PGconn *connection, const char *dir, const char *name, int version, struct wlb_error *error)
{
	char path[PATH_MAX];
	char number[16];
	char *sql;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (wlb_file_read(path, MIGRATION_LIMIT_BYTES, &sql, NULL, error) != 0)
		return -1;
	int rc = execute(connection, "begin", name, error);
	if (rc == 0)
		rc = execute(connection, sql, name, error);
	free(sql);
	if (rc == 0) {
		snprintf(number, sizeof(number), "%d", version);
		const char *values[] = {number, name};
		PGresult *result =
			PQexecParams(connection, "insert into schema_version (version, file) values ($1, $2)", 2, NULL,
		                     values, NULL, NULL, 0);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			rc = fail_pq(connection, name, error);
		PQclear(result);
	}
	if (rc == 0)
		return execute(connection, "commit", name, error);
	execute(connection, "rollback", name, NULL);
	return -1;
}

static int apply_missing(PGconn *connection, const char *dir, wlb_migrate_applied *applied, void *context,
                         struct wlb_error *error)
{
	int version = read_version(connection, error);
	if (version < 0)
		return -1;
	if (version > WLB_SCHEMA_VERSION)
		return wlb_schema_check(version, error);
	int count = 0;
	while (version < WLB_SCHEMA_VERSION) {
		char name[NAME_MAX + 1];
		version++;
		if (find_file(dir, version, name, error) != 0 || apply(connection, dir, name, version, error) != 0)
			return -1;
		count++;
		if (applied != NULL)
			applied(context, version, name);
	}
	return count;
}

/* Returns once no other migration is under way, which may take minutes; until the connection ends none begins. A
 * migration has as long as it needs, but it waits 60 s at most for a table that others use. */
static int wait_for_others(PGconn *connection, struct wlb_error *error)
{
	char lock[64];
	snprintf(lock, sizeof(lock), "select pg_advisory_lock(%d)", ADVISORY_LOCK);
	if (execute(connection, "set client_min_messages = warning; set statement_timeout = 0; set lock_timeout = 0",
	            "database", error) != 0 ||
	    execute(connection, lock, "waiting for another migration", error) != 0)
		return -1;
	return execute(connection, "set lock_timeout = '60s'", "database", error);
}

int wlb_migrate(const char *conninfo, const char *dir, wlb_migrate_applied *applied, void *context,
                struct wlb_error *error)
{
	PGconn *connection = connect_to(conninfo, error);
	if (connection == NULL)
		return -1;
	int count = -1;
	if (wait_for_others(connection, error) == 0 &&
	    execute(connection,
	            "create table if not exists schema_version (version integer primary key, file text not null, "
	            "applied_at timestamptz not null default now())",
	            "schema_version", error) == 0)
		count = apply_missing(connection, dir, applied, context, error);
	PQfinish(connection);
	return count;
}
