/* wlb db: the schema of the database. */
#include <stdio.h>
#include <string.h>

#include "coordinator/db/migrate.h"
#include "coordinator/wlb/command.h"
#include "coordinator/wlbd/config.h"

static const char help[] =
	"Usage: wlb db migrate [OPTIONS]\n"
	"       wlb db status [OPTIONS]\n\n"
	"migrate brings the database to the schema of this version; what is newer is refused and left alone.\n"
	"status says which schema the database has; exit code 1 when it is another one than this version needs.\n\n"
	"  --database CONNINFO  the database, as libpq names it (default: as wlbd.conf says)\n"
	"  --config FILE        the wlbd.conf (default: WLBD_CONF, else /etc/wlb/wlbd.conf)\n";

static void print_applied(void *context, int version, const char *file)
{
	(void)context;
	printf("applied %s (schema %d)\n", file, version);
	fflush(stdout);
}

static int migrate(const char *conninfo, struct wlb_error *error)
{
	char dir[4096];
	if (wlb_migrations_dir(dir, sizeof(dir), error) != 0)
		return -1;
	int applied = wlb_migrate(conninfo, dir, print_applied, NULL, error);
	if (applied == 0)
		printf("schema %d is up to date\n", WLB_SCHEMA_VERSION);
	return applied < 0 ? -1 : 0;
}

static int status(const char *conninfo, struct wlb_error *error)
{
	int version = wlb_schema_version(conninfo, error);
	if (version < 0)
		return -1;
	printf("the database has schema %d, this version needs %d\n", version, WLB_SCHEMA_VERSION);
	return wlb_schema_check(version, error);
}

static int db_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {{"database", required_argument, NULL, 'd'},
	                                        {"config", required_argument, NULL, 'c'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	struct wlbd_config config = {0};
	struct wlb_error error;
	const char *database = NULL, *file = wlbd_config_path();
	const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	int option;
	optind = verb != NULL ? 2 : 1;
	while ((option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		*(option == 'd' ? &database : &file) = optarg;
	}
	bool migrating = verb != NULL && strcmp(verb, "migrate") == 0;
	if (optind < argc || (!migrating && (verb == NULL || strcmp(verb, "status") != 0)))
		return wlb_command_fail(self, WLB_EXIT_USAGE, "migrate or status: see 'wlb help db'");
	int rc = database == NULL ? wlbd_config_load(file, &config, &error) : 0;
	if (rc == 0) {
		database = database != NULL ? database : config.database;
		rc = migrating ? migrate(database, &error) : status(database, &error);
	}
	return rc == 0 ? WLB_EXIT_DONE : wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
}

const struct wlb_command wlb_command_db = {
	.name = "db",
	.summary = "Set up or look at the database's schema",
	.help = help,
	.main = db_main,
};
