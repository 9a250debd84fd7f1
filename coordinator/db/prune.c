#include "coordinator/db/prune.h"

#include <inttypes.h>
#include <string.h>

#include "coordinator/db/connection.h"

/* What wlb_prune_details and wlb_prune_runs call what they remove. */
static const struct kind {
	const char *name;
	const char *text;
} kinds[] = {
	{"runs", "runs removed"},
	{"details", "runs whose details are removed"},
	{"rank_map", "places of ranks"},
	{"rank_samples", "samples of ranks"},
	{"stacks", "stacks of ranks"},
	{"followed_values", "values that trainers said"},
	{"steps_superseded", "steps that were done again"},
	{"steps", "steps, rolled up or of runs removed"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct counts {
	int64_t rows[KINDS];
};

/* Adds "KIND ROWS". */
static void add(struct counts *counts, const char *text)
{
	char name[32];
	int64_t rows;
	if (sscanf(text, "%31s %" SCNd64, name, &rows) != 2)
		return;
	for (int i = 0; i < KINDS; i++)
		if (strcmp(name, kinds[i].name) == 0)
			counts->rows[i] += rows;
}

static void print(const struct counts *counts, const char *before, FILE *out)
{
	for (int i = 0; i < KINDS; i++)
		if (i < 2 || counts->rows[i] > 0)
			fprintf(out, "%s%s: %" PRId64 "\n", before, kinds[i].text, counts->rows[i]);
}

/* Calls a function until it has nothing left to remove. Each call is a transaction. */
static int repeat(PGconn *connection, const char *sql, int days, struct counts *counts, struct wlb_error *error)
{
	char text[16];
	const char *value = text;
	snprintf(text, sizeof(text), "%d", days);
	for (;;) {
		PGresult *result = wlb_db_call(connection, sql, 1, &value, error);
		if (result == NULL)
			return -1;
		bool is_done = PQgetisnull(result, 0, 0);
		add(counts, PQgetvalue(result, 0, 0));
		PQclear(result);
		if (is_done)
			return 0;
	}
}

static int count(PGconn *connection, const struct wlb_prune *prune, struct counts *counts, struct wlb_error *error)
{
	char runs[16], details[16];
	const char *values[] = {prune->runs_days > 0 ? runs : NULL, prune->details_days > 0 ? details : NULL};
	snprintf(runs, sizeof(runs), "%d", prune->runs_days);
	snprintf(details, sizeof(details), "%d", prune->details_days);
	PGresult *result = wlb_db_call(
		connection,
		"select wlb_prune_counts(now() - make_interval(days => $1), now() - make_interval(days => $2))", 2,
		values, error);
	for (int row = 0; row < PQntuples(result); row++)
		add(counts, PQgetvalue(result, row, 0));
	int rc = result != NULL ? 0 : -1;
	PQclear(result);
	return rc;
}

int wlb_db_prune(const char *conninfo, const struct wlb_prune *prune, FILE *out, struct wlb_error *error)
{
	struct counts counts = {0};
	PGconn *connection = wlb_db_connect(conninfo, error);
	if (connection == NULL)
		return -1;
	int rc = prune->is_dry ? count(connection, prune, &counts, error) : 0;
	if (rc == 0 && !prune->is_dry && prune->runs_days > 0)
		rc = repeat(connection, "select wlb_prune_runs(now() - make_interval(days => $1))", prune->runs_days,
		            &counts, error);
	if (rc == 0 && !prune->is_dry && prune->details_days > 0)
		rc = repeat(connection, "select wlb_prune_details(now() - make_interval(days => $1))",
		            prune->details_days, &counts, error);
	if (rc == 0 || !prune->is_dry)
		print(&counts, prune->is_dry ? "would be " : "", out);
	PQfinish(connection);
	return rc;
}
