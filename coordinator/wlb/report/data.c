#include "coordinator/wlb/report/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/output/printable.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/history/fold_faults.h"
#include "coordinator/wlb/history/steps.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/report/advice.h"
#include "coordinator/wlb/report/curve.h"
#include "coordinator/wlb/report/part_means.h"
#include "coordinator/wlb/report/pipeline.h"
#include "coordinator/wlb/report/rank_cells.h"
#include "coordinator/wlb/report/settings.h"

enum { POINTS_ONE = 2000, POINTS_ALL = 4000, NODES_BYTES = 256, PLANS = 4 };

/* ---- the run ---------------------------------------------------------------------------------------------------- */

/* Keeps the newest entries of a list, which are its last, and counts the others with those that the coordinator left
 * out. */
static void keep_newest(json_t *run, const char *name, size_t most)
{
	json_t *list = json_object_get(run, name), *left_out = json_object_get(run, "left_out");
	size_t cut = json_array_size(list) > most ? json_array_size(list) - most : 0;
	json_int_t before = json_integer_value(json_object_get(left_out, name));
	for (size_t i = 0; i < cut; i++)
		json_array_remove(list, 0);
	if (json_is_object(left_out) && cut > 0)
		json_object_set_new(left_out, name, json_integer(before + (json_int_t)cut));
}

/* Names nodes as one text, and takes away what the page has no use for. */
static void trim_attempt(json_t *attempt, bool has_plan, bool has_outputs)
{
	static const char *const unused[] = {"rank_map", "spares", "attempt_id"}, *const of_owner[] = {"output",
	                                                                                               "error"};
	char nodes[NODES_BYTES];
	wlb_field_nodes(attempt, nodes, sizeof(nodes));
	json_object_set_new(attempt, "nodes", json_string(nodes));
	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
		json_object_del(attempt, unused[i]);
	if (!has_plan)
		json_object_del(attempt, "plan");
	for (size_t i = 0; !has_outputs && i < sizeof(of_owner) / sizeof(of_owner[0]); i++)
		json_object_del(attempt, of_owner[i]);
}

static void trim_verdict(json_t *verdict)
{
	char nodes[NODES_BYTES];
	wlb_field_nodes(verdict, nodes, sizeof(nodes));
	json_object_set_new(verdict, "nodes", json_string(nodes));
	json_object_del(verdict, "calls");
}

/* Brings the reply of GET /v1/runs/RUN into the bounds of a page. */
static int trim_run(json_t *run, bool has_outputs)
{
	static const struct {
		const char *name;
		size_t most;
	} lists[] = {{"attempts", 100},    {"faults", 200}, {"verdicts", 100}, {"checkpoints", 300},
	             {"evaluations", 500}, {"events", 200}, {"values", 100}};
	static const char *const unused[] = {"rank_map", "nodes", "policy", "model", "dropped"};
	json_t *faults = wlb_faults_fold(json_object_get(run, "faults"));
	if (json_object_set_new(run, "faults", faults) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		keep_newest(run, lists[i].name, lists[i].most);
	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
		json_object_del(run, unused[i]);
	json_t *attempts = json_object_get(run, "attempts"), *entry;
	size_t i;
	json_array_foreach(attempts, i, entry) trim_attempt(entry, i + PLANS >= json_array_size(attempts), has_outputs);
	json_array_foreach(json_object_get(run, "verdicts"), i, entry) trim_verdict(entry);
	return 0;
}

/* ---- its steps -------------------------------------------------------------------------------------------------- */

struct thinned {
	struct wlb_report_curve *curve;
	struct wlb_part_means *means;
};

static int add_steps(json_t *steps, void *context)
{
	struct thinned *thinned = context;
	const json_t *step;
	size_t i;
	json_array_foreach(steps, i, step)
	{
		wlb_report_curve_add(thinned->curve, step);
		wlb_part_means_add(thinned->means, step);
	}
	return 0;
}

static int read_steps(const char *name, bool is_whole, struct thinned *thinned, struct wlb_error *error)
{
	if (is_whole)
		return wlb_steps_each_page(name, NULL, add_steps, thinned, error);
	json_t *steps = wlb_steps_sample(name, POINTS_ONE, error);
	if (steps == NULL)
		return -1;
	add_steps(steps, thinned);
	json_decref(steps);
	return 0;
}

static int add_curves(json_t *entry, const char *name, const json_t *run, const struct wlb_report_wanted *wanted,
                      struct wlb_error *error)
{
	int64_t first = json_integer_value(json_object_get(run, "first_step"));
	int64_t last = json_integer_value(json_object_get(run, "last_step"));
	int points = POINTS_ALL / wanted->count < POINTS_ONE ? POINTS_ALL / wanted->count : POINTS_ONE;
	bool is_whole = json_integer_value(json_object_get(run, "steps_done")) <= wanted->steps_most;
	double tokens = json_number_value(json_object_get(run, "tokens"));
	struct thinned thinned = {wlb_report_curve_new(first, last, points), wlb_part_means_new(first, last)};
	int rc = thinned.curve != NULL && thinned.means != NULL
	                 ? 0
	                 : wlb_fail(error, "out of memory for the steps of run %s", name);
	if (rc == 0)
		rc = read_steps(name, is_whole, &thinned, error);
	if (rc == 0 &&
	    (json_object_set_new(entry, "curve", wlb_report_curve_json(thinned.curve, is_whole ? 0.0 : tokens)) != 0 ||
	     json_object_set_new(entry, "parts", wlb_part_means_json(thinned.means)) != 0 ||
	     json_object_set_new(entry, "is_whole", json_boolean(is_whole)) != 0))
		rc = wlb_fail(error, "out of memory for the steps of run %s", name);
	wlb_report_curve_free(thinned.curve);
	wlb_part_means_free(thinned.means);
	return rc;
}

/* ---- all runs --------------------------------------------------------------------------------------------------- */

/* The lateness of ranks is in the coordinator's memory while the run goes on, and samples are kept of it; a page is
 * whole without it. */
static json_t *ask_rank_cells(struct wlb_connection *connection, const char *name)
{
	enum { RANKS_MS = 30000 };
	char path[128];
	snprintf(path, sizeof(path), "/v1/runs/%s/ranks", name);
	json_t *reply = wlb_api_request(connection, "GET", path, NULL, RANKS_MS, NULL, NULL);
	const json_t *sampled = json_object_get(reply, "sampled");
	json_t *cells = reply != NULL ? wlb_rank_cells(json_is_object(sampled) ? sampled : reply) : json_null();
	json_decref(reply);
	return cells;
}

static json_t *read_run(struct wlb_connection *connection, const char *name, const struct wlb_report_wanted *wanted,
                        struct wlb_error *error)
{
	enum { RUN_MS = 30000 };
	char path[128];
	snprintf(path, sizeof(path), "/v1/runs/%s", name);
	json_t *run = wlb_api_request(connection, "GET", path, NULL, RUN_MS, NULL, error);
	if (run == NULL)
		return NULL;
	json_t *entry = json_pack("{s:O}", "run", run);
	if (entry == NULL || add_curves(entry, name, run, wanted, error) != 0) {
		json_decref(entry);
		json_decref(run);
		return NULL;
	}
	int rc = json_object_set_new(entry, "pipeline", wlb_report_pipeline(run, json_object_get(entry, "parts")));
	rc |= json_object_set_new(entry, "ranks", ask_rank_cells(connection, name));
	rc |= json_object_set_new(entry, "settings", wlb_report_settings(run));
	rc |= json_object_set_new(entry, "advice", wlb_report_advice(run));
	rc |= trim_run(run, wanted->has_outputs);
	json_decref(run);
	if (rc == 0 && wlb_make_printable(entry) == 0)
		return entry;
	wlb_fail(error, "out of memory for run %s", name);
	json_decref(entry);
	return NULL;
}

json_t *wlb_report_data(const struct wlb_report_wanted *wanted, struct wlb_error *error)
{
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return NULL;
	json_t *runs = json_array();
	int rc = 0;
	for (int i = 0; rc == 0 && i < wanted->count; i++) {
		json_t *entry = read_run(connection, wanted->names[i], wanted, error);
		rc = entry != NULL ? json_array_append_new(runs, entry) : -1;
	}
	wlb_connection_free(connection);
	json_t *data = rc == 0 ? json_pack("{s:I, s:s, s:O}", "made_at", (json_int_t)time(NULL), "version", WLB_VERSION,
	                                   "runs", runs)
	                       : NULL;
	json_decref(runs);
	if (rc == 0 && data == NULL)
		wlb_fail(error, "out of memory for the report");
	return data;
}
