/*
 * The schema of the database, made from the folder sql. The files tables/NNNN.sql, numbered from 0001 without a gap,
 * are applied in order and forward only, and recorded in the table schema_version. Those of the folders functions and
 * views are dropped, in the PostgreSQL schema wlb_code, and made again whenever they or the tables are other ones.
 *
 * WLB_SCHEMA_VERSION (from the build) is the number of the last file of tables that these programs use. These calls
 * block; the service reads the schema through its own connection and checks it with wlb_schema_check.
 */
#ifndef COORDINATOR_DB_MIGRATE_H
#define COORDINATOR_DB_MIGRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

struct pg_result;

/* Which schema a database has. */
struct wlb_schema {
	int version;        /* 0: none */
	bool is_unreleased; /* it was made before version 0.2.0 */
	char code[65];      /* SHA-256 of functions and views, in hexadecimal; "": none */
};

/* The statement whose result wlb_schema_of reads. */
#define WLB_SCHEMA_QUERY                                                                                               \
	"select coalesce(max(version), 0), coalesce(bool_or(file like '%\\_%'), false), coalesce(substring("           \
	"obj_description(to_regnamespace('wlb_code'), 'pg_namespace') from '[0-9a-f]{64}$'), '') from schema_version"

/* Returns -1 for the result of another statement, and where it failed for another reason than that there is no schema.
 */
int wlb_schema_of(const struct pg_result *result, struct wlb_schema *schema);

/* 0 when the schema is the one that these programs use; else -1, and the message says what to do. */
int wlb_schema_check(const struct wlb_schema *schema, struct wlb_error *error);

/* Reads which schema a database has; -1 if that fails. */
int wlb_schema_read(const char *conninfo, struct wlb_schema *schema, struct wlb_error *error);

/* The folder of the files: WLB_MIGRATIONS where it is set, else ../share/wlb/sql from the folder of the running
 * program, installed or in the build. -1 when it is not there. */
int wlb_migrations_dir(char *path, size_t size, struct wlb_error *error);

/* Brings the database to the schema of the folder, in one transaction, or changes nothing. If two callers do so at
 * once, the second waits (an advisory lock), as long as it takes, and finds nothing left to do. Refused, and unchanged:
 * a database that is newer than WLB_SCHEMA_VERSION, or was made before version 0.2.0, and one in which something that
 * is not WLB's depends on a function or view, which the message names. What was granted on views and functions stays.
 * Returns 1 when it changed the schema, 0 when that was right, or -1 with PostgreSQL's message. */
int wlb_migrate(const char *conninfo, const char *dir, struct wlb_error *error);

/* 0 when `encoding`, the database's server_encoding, is UTF8, or NULL, since what is between us and the database may
 * not report it; else -1, and the message says what to do. Texts are UTF-8, and in another encoding the database may
 * cut them within characters. The database works otherwise, so callers only warn. */
int wlb_encoding_check(const char *encoding, struct wlb_error *error);

/* As wlb_encoding_check, of a database; 0 also where it cannot be asked. */
int wlb_encoding_check_of(const char *conninfo, struct wlb_error *error);

#endif
