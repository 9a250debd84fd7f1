/* wlb db: the schema of the database. */
#include <stdio.h>
#include <string.h>

#include "coordinator/db/conninfo.h"
#include "coordinator/db/migrate.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlbd/config.h"

static void warn_of_encoding(const char *conninfo)
{
	struct wlb_error warning;
	if (wlb_encoding_check_of(conninfo, &warning) != 0)
		fprintf(stderr, "wlb db: warning: %s\n", warning.message);
}

static int migrate(const char *conninfo, struct wlb_error *error)
{
	char dir[4096];
	if (wlb_migrations_dir(dir, sizeof(dir), error) != 0)
		return -1;
	int changed = wlb_migrate(conninfo, dir, error);
	if (changed >= 0)
		printf("schema %d is %s\n", WLB_SCHEMA_VERSION, changed ? "applied" : "up to date");
	return changed < 0 ? -1 : 0;
}

static int status(const char *conninfo, struct wlb_error *error)
{
	struct wlb_schema schema;
	if (wlb_schema_read(conninfo, &schema, error) != 0)
		return -1;
	printf("the database has schema %d, this version needs %d\n", schema.version, WLB_SCHEMA_VERSION);
	return wlb_schema_check(&schema, error);
}

enum verb { MIGRATE, STATUS };

struct request {
	enum verb verb;
	const char *database;
	const char *file;
};

/* Checks the option --database. */
static int check_database(const char *conninfo, struct wlb_error *error)
{
	if (wlb_conninfo_check(conninfo, error) != 0)
		return wlb_fail_in(error, "--database");
	if (wlb_conninfo_has_secret(conninfo))
		fputs("wlb db: warning: every user of this host can read a password of a command line while the "
		      "command "
		      "runs; keep it in wlbd.conf or ~/.pgpass\n",
		      stderr);
	return 0;
}

static int db(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	const char *database = request->database;
	struct wlbd_config config = {0};
	int rc = 0;
	if (database == NULL) {
		rc = wlbd_config_load(request->file != NULL ? request->file : wlbd_config_path(), &config, error);
		database = config.database;
	} else if (check_database(database, error) != 0) {
		return WLB_EXIT_USAGE;
	}
	if (rc == 0)
		rc = request->verb == MIGRATE ? migrate(database, error) : status(database, error);
	if (rc == 0)
		warn_of_encoding(database);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(CHOICE, NULL, FIELD(verb), NULL, "what to do"), .required = true, .choices = "migrate|status"},
	{WLB_OPTION(TEXT, "database", FIELD(database), "CONNINFO",
                    "the database, as libpq names it, without a password (default: that of wlbd.conf)")},
	{WLB_OPTION(TEXT, "config", FIELD(file), "FILE",
                    "the wlbd.conf to read (default: WLBD_CONF, else /etc/wlb/wlbd.conf)")},
};

static const struct wlb_option_table table = {
	.command = "wlb db",
	.about = "For administrators. migrate brings the database to the schema of this version, forward only, or "
		 "changes "
		 "nothing; a newer one is refused. status prints which schema the database has; the exit code is 1 "
		 "when this version needs another one.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_db = {
	.name = "db",
	.summary = "Apply or print the database's schema",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = db,
};
