/* wlb db: the schema of the database, who reads it, and how long it is kept. */
#include <stdio.h>
#include <string.h>

#include "coordinator/db/conninfo.h"
#include "coordinator/db/migrate.h"
#include "coordinator/db/prune.h"
#include "coordinator/db/reader.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlbd/config.h"

static void warn_of_encoding(const char *conninfo)
{
	struct wlb_error warning;
	if (wlb_encoding_check_of(conninfo, &warning) != 0)
		fprintf(stderr, "wlb db: warning: %s\n", warning.message);
}

struct request {
	struct wlb_option_list words;
	const char *database;
	const char *file;
	struct wlb_prune prune;
};

static int migrate(const char *conninfo, const struct request *request, struct wlb_error *error)
{
	(void)request;
	char dir[4096];
	if (wlb_migrations_dir(dir, sizeof(dir), error) != 0)
		return -1;
	int changed = wlb_migrate(conninfo, dir, error);
	if (changed >= 0)
		printf("schema %d is %s\n", WLB_SCHEMA_VERSION, changed ? "applied" : "up to date");
	return changed < 0 ? -1 : 0;
}

static int status(const char *conninfo, const struct request *request, struct wlb_error *error)
{
	(void)request;
	struct wlb_schema schema;
	if (wlb_schema_read(conninfo, &schema, error) != 0)
		return -1;
	printf("the database has schema %d, this version needs %d\n", schema.version, WLB_SCHEMA_VERSION);
	return wlb_schema_check(&schema, error);
}

/* Functions of another version may remove or grant something else. */
static int check_schema(const char *conninfo, struct wlb_error *error)
{
	struct wlb_schema schema;
	return wlb_schema_read(conninfo, &schema, error) == 0 ? wlb_schema_check(&schema, error) : -1;
}

static int reader(const char *conninfo, const struct request *request, struct wlb_error *error)
{
	if (check_schema(conninfo, error) != 0)
		return -1;
	return wlb_db_reader(conninfo, request->words.texts[1], stdout, error);
}

static int prune(const char *conninfo, const struct request *request, struct wlb_error *error)
{
	if (check_schema(conninfo, error) != 0)
		return -1;
	return wlb_db_prune(conninfo, &request->prune, stdout, error);
}

static const struct verb {
	const char *name;
	int words; /* after the name */
	int (*run)(const char *conninfo, const struct request *request, struct wlb_error *error);
} verbs[] = {{"migrate", 0, migrate}, {"status", 0, status}, {"reader", 1, reader}, {"prune", 0, prune}};

/* Returns the verb of the command line; NULL with the rule that it breaks. */
static const struct verb *check_words(const struct request *request, struct wlb_error *error)
{
	const struct wlb_option_list *words = &request->words;
	const struct wlb_prune *days = &request->prune;
	bool has_days = days->runs_days > 0 || days->details_days > 0;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const struct verb *verb = &verbs[i];
		if (strcmp(words->texts[0], verb->name) != 0)
			continue;
		if (words->count != 1 + verb->words)
			wlb_fail(error, "%s takes %s", verb->name,
			         verb->words > 0 ? "one name, that of the role" : "no more words");
		else if (has_days != (verb->run == prune) || (days->is_dry && !has_days))
			wlb_fail(error,
			         "prune needs --older-than, --detail-older-than or both, which are for it alone");
		else
			return verb;
		return NULL;
	}
	wlb_fail(error, "argument: '%s' must be migrate, status, reader or prune", words->texts[0]);
	return NULL;
}

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
	const struct verb *verb = check_words(request, error);
	const char *database = request->database;
	struct wlbd_config config = {0};
	int rc = 0;
	if (verb == NULL)
		return WLB_EXIT_USAGE;
	if (database == NULL) {
		rc = wlbd_config_load(request->file != NULL ? request->file : wlbd_config_path(), &config, error);
		database = config.database;
	} else if (check_database(database, error) != 0) {
		return WLB_EXIT_USAGE;
	}
	if (rc == 0)
		rc = verb->run(database, request, error);
	if (rc == 0)
		warn_of_encoding(database);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(words), "migrate|status|reader NAME|prune", "what to do; NAME: of the role"),
         .required = true, .choices = "migrate|status|reader|prune"},
	{WLB_OPTION(TEXT, "database", FIELD(database), "CONNINFO",
                    "the database, as libpq names it, without a password (default: that of wlbd.conf)")},
	{WLB_OPTION(TEXT, "config", FIELD(file), "FILE",
                    "the wlbd.conf to read (default: WLBD_CONF, else /etc/wlb/wlbd.conf)")},
	{WLB_OPTION(
		 INT, "older-than", FIELD(prune.runs_days), "DAYS",
		 "prune: removes runs that ended so many days ago, 30 at least, since losses of nodes count so long"),
         .min = 30, .max = 36500},
	{WLB_OPTION(INT, "detail-older-than", FIELD(prune.details_days), "DAYS",
                    "prune: of runs that ended so many days ago, removes what ranks and trainers said and steps that "
                    "were done "
                    "again, and rolls their steps up into 2,000"),
         .min = 1, .max = 36500},
	{WLB_OPTION(FLAG, "dry-run", FIELD(prune.is_dry), NULL, "prune: only counts")},
};

static const struct wlb_option_table table = {
	.command = "wlb db",
	.about = "For administrators. migrate brings the database to the schema of this version, forward only, or "
		 "changes nothing; a newer one is refused. status prints which schema the database has; the exit code "
		 "is 1 when this version needs another one. reader makes a role that reads the views and nothing else, "
		 "for people and Grafana, or gives one these rights alone. prune removes what is old, beside a wlbd "
		 "that serves, and may be interrupted.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_db = {
	.name = "db",
	.summary = "Apply the database's schema, make a reader, remove what is old",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = db,
};
