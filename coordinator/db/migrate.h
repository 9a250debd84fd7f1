/*
 * The schema of the database: files NNNN_name.sql, numbered from 0001 without a gap, applied in order and forward
 * only, each in one transaction. The table schema_version records which are applied.
 *
 * WLB_SCHEMA_VERSION (from the build) is the schema that these programs use: the number of the last file in
 * sql/migrations. These calls block; the service reads the version through its own connection and checks it with
 * wlb_schema_check.
 */
#ifndef COORDINATOR_DB_MIGRATE_H
#define COORDINATOR_DB_MIGRATE_H

#include <stddef.h>

#include "libwlb/wlb.h"

/* The folder of the files: WLB_MIGRATIONS where it is set, else ../share/wlb/migrations from the folder of the
 * running program, installed or in the build. -1 when it is not there. */
int wlb_migrations_dir(char *path, size_t size, struct wlb_error *error);

/* Called for each file once its transaction is committed. */
typedef void wlb_migrate_applied(void *context, int version, const char *file);

/* Brings the database up to WLB_SCHEMA_VERSION. If two callers do so at once, the second waits (an advisory lock), as
 * long as it takes, and finds nothing left to do. A database newer than WLB_SCHEMA_VERSION is refused and unchanged.
 * Returns the number of files applied, or -1 with PostgreSQL's message; what was committed before stays. `applied` may
 * be NULL. */
int wlb_migrate(const char *conninfo, const char *dir, wlb_migrate_applied *applied, void *context,
                struct wlb_error *error);

/* The version in the database, 0 for one without a schema; -1 if the query fails. */
int wlb_schema_version(const char *conninfo, struct wlb_error *error);

/* 0 when `encoding`, the database's server_encoding, is UTF8, or NULL, since what is between us and the database may
 * not report it; else -1, and the message says what to do. Texts are UTF-8, and in another encoding the database may
 * cut them within characters. The database works otherwise, so callers only warn. */
int wlb_encoding_check(const char *encoding, struct wlb_error *error);

/* As wlb_encoding_check, of a database; 0 also where it cannot be asked. */
int wlb_encoding_check_of(const char *conninfo, struct wlb_error *error);

/* 0 when `version` is WLB_SCHEMA_VERSION; else -1, and the message says what to do. */
int wlb_schema_check(int version, struct wlb_error *error);

#endif
