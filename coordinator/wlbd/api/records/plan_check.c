#include "coordinator/wlbd/api/records/plan_check.h"

#include <string.h>

#include "coordinator/wlbd/http/fields.h"

enum { OTHERS_MAX = 16, SWITCHES_MAX = 64, PLAN_BYTES_MAX = 16384 };
enum { OUTVOTED_MAX = 64, NAME_BYTES_MAX = 64 };
#define COUNT_MAX (1 << 24)
#define PLANS_MAX INT64_C(1000000000000)
#define SECONDS_MAX 1e7
#define BYTES_MAX 1e18
#define TIME_MAX_S 1e11

static int check_layout(const json_t *data, struct wlb_error *error)
{
	static const char *const dimensions[] = {"tp", "cp", "pp", "dp"};
	const json_t *layout = NULL;
	int64_t degree;
	double ranks = 1.0;
	if (wlbd_field_object(data, "layout", WLBD_REQUIRED, &layout, error) != 0)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (wlbd_field_integer(layout, dimensions[i], WLBD_REQUIRED, 1, WLBD_RANKS_MAX, &degree, error) != 0)
			return wlb_fail_in(error, "layout");
		ranks *= (double)degree;
	}
	if (ranks <= WLBD_RANKS_MAX)
		return 0;
	return wlb_fail(error, "layout: tp x cp x pp x dp is %.0f: must be %d at most", ranks, WLBD_RANKS_MAX);
}

/* Checks a plan, the chosen one or another. */
static int check_plan(const json_t *data, struct wlb_error *error)
{
	static const char *const recompute[] = {"none", "selective", "full", NULL};
	static const char *const head_stages[] = {"last", "all", NULL};
	static const char *const counts[] = {"interleave", "micro_batches", "micro_batch_size", "recompute_layers"};
	static const struct {
		const char *name;
		double most;
	} numbers[] = {{"step_s", SECONDS_MAX}, {"memory_bytes", BYTES_MAX}, {"missing_bytes", BYTES_MAX}};
	const char *text;
	int64_t count;
	double number;
	if (check_layout(data, error) != 0 ||
	    wlbd_field_choice(data, "recompute", WLBD_OPTIONAL, recompute, &text, error) != 0 ||
	    wlbd_field_choice(data, "head_stages", WLBD_OPTIONAL, head_stages, &text, error) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (wlbd_field_integer(data, counts[i], WLBD_OPTIONAL, 1, COUNT_MAX, &count, error) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (wlbd_field_number(data, numbers[i].name, WLBD_OPTIONAL, 0, numbers[i].most, &number, error) != 0)
			return -1;
	return 0;
}

static int check_others(const json_t *data, const char *name, struct wlb_error *error)
{
	const json_t *list = NULL;
	if (wlbd_field_array(data, name, WLBD_OPTIONAL, OTHERS_MAX, &list, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *other = json_array_get(list, i);
		if (!json_is_object(other))
			return wlb_fail(error, "%s[%zu]: must be an object", name, i);
		if (check_plan(other, error) != 0)
			return wlb_fail_in(error, "%s[%zu]", name, i);
	}
	return 0;
}

/* A list of a plan whose entries name nodes: what else an entry has. */
struct node_list {
	const char *name;
	struct {
		const char *name; /* NULL at the end */
		int64_t most;     /* bytes */
	} texts[3];
	struct {
		const char *name; /* NULL at the end */
		int64_t least;
	} counts[3];
};

static const struct node_list node_lists[] = {
	/* The switches of the nodes, in the order in which ranks fill the nodes. */
	{"placement", {{"switch", WLBD_NAME_MAX}, {"nodes", WLBD_TEXT_MAX}}, {{"first_rank", 0}, {"ranks", 1}}},
	/* Of nodes with ranks, the tasks that no layout uses. */
	{"idle_local_ranks", {{"nodes", WLBD_TEXT_MAX}}, {{"first", 0}, {"last", 0}}},
};

static int check_nodes(const json_t *data, const struct node_list *list, struct wlb_error *error)
{
	const json_t *entries = NULL;
	const char *text;
	int64_t count;
	if (wlbd_field_array(data, list->name, WLBD_OPTIONAL, SWITCHES_MAX, &entries, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const json_t *at = json_array_get(entries, i);
		int rc = json_is_object(at) ? 0 : wlb_fail(error, "must be an object");
		for (int n = 0; rc == 0 && list->texts[n].name != NULL; n++)
			rc = wlbd_field_text(at, list->texts[n].name, WLBD_REQUIRED, list->texts[n].most, &text, error);
		for (int n = 0; rc == 0 && list->counts[n].name != NULL; n++)
			rc = wlbd_field_integer(at, list->counts[n].name, WLBD_REQUIRED, list->counts[n].least,
			                        WLBD_RANKS_MAX, &count, error);
		if (rc != 0)
			return wlb_fail_in(error, "%s[%zu]", list->name, i);
	}
	return 0;
}

/* A list of the operations or parts for which a calibration has what others measured. */
static int check_outvoted(const json_t *calibration, const char *list, struct wlb_error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	const json_t *names = json_object_get(calibration, list);
	if (names == NULL)
		return 0;
	if (!json_is_array(names) || json_array_size(names) > OUTVOTED_MAX)
		return wlb_fail(error, "%s: it must be a list of %d names at most", list, OUTVOTED_MAX);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		size_t length = json_string_length(name);
		if (length < 1 || length > NAME_BYTES_MAX || strspn(json_string_value(name), letters) != length)
			return wlb_fail(error, "%s[%zu]: it must be a name of 1 to %d of a-z and _", list, i,
			                NAME_BYTES_MAX);
	}
	return 0;
}

/* The layout of the attempt before, and the calibration that the machine is of; both may be absent. */
static int check_origin(const json_t *data, struct wlb_error *error)
{
	const json_t *before = NULL, *calibration = NULL;
	const char *text;
	int64_t count;
	double number;
	if (wlbd_field_object(data, "before", WLBD_OPTIONAL, &before, error) != 0)
		return -1;
	if (before != NULL && (check_plan(before, error) != 0 ||
	                       wlbd_field_text(before, "reason", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0))
		return wlb_fail_in(error, "before");
	if (wlbd_field_object(data, "calibration", WLBD_OPTIONAL, &calibration, error) != 0)
		return -1;
	if (calibration != NULL &&
	    (wlbd_field_integer(calibration, "id", WLBD_OPTIONAL, 1, INT64_MAX, &count, error) != 0 ||
	     wlbd_field_integer(calibration, "uid", WLBD_OPTIONAL, 0, UINT32_MAX, &count, error) != 0 ||
	     wlbd_field_integer(calibration, "job_id", WLBD_OPTIONAL, 1, UINT32_MAX, &count, error) != 0 ||
	     wlbd_field_integer(calibration, "users", WLBD_OPTIONAL, 1, UINT32_MAX, &count, error) != 0 ||
	     wlbd_field_integer(calibration, "types", WLBD_OPTIONAL, 1, WLBD_RANKS_MAX, &count, error) != 0 ||
	     wlbd_field_number(calibration, "at", WLBD_OPTIONAL, 0, TIME_MAX_S, &number, error) != 0 ||
	     wlbd_field_text(calibration, "node_type", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	     wlbd_field_text(calibration, "source", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	     wlbd_field_text(calibration, "compared_with", WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0 ||
	     check_outvoted(calibration, "outvoted_operations", error) != 0 ||
	     check_outvoted(calibration, "outvoted_parts", error) != 0))
		return wlb_fail_in(error, "calibration");
	return 0;
}

int wlbd_plan_check(const json_t *data, struct wlb_error *error)
{
	static const char *const texts[] = {"reason", "machine", "machine_from", "idle"};
	static const char *const counts[] = {"tried", "no_memory", "idle_ranks"};
	const char *text;
	int64_t count;
	double number;
	if (check_plan(data, error) != 0 || check_others(data, "next", error) != 0 ||
	    check_others(data, "misfits", error) != 0 || check_nodes(data, &node_lists[0], error) != 0 ||
	    check_nodes(data, &node_lists[1], error) != 0 || check_origin(data, error) != 0 ||
	    wlbd_field_number(data, "utilization", WLBD_OPTIONAL, 0, 1e6, &number, error) != 0 ||
	    wlbd_field_number(data, "memory_limit_bytes", WLBD_OPTIONAL, 0, BYTES_MAX, &number, error) != 0 ||
	    wlbd_field_number(data, "memory_margin_bytes", WLBD_OPTIONAL, 0, BYTES_MAX, &number, error) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (wlbd_field_text(data, texts[i], WLBD_OPTIONAL, WLBD_TEXT_MAX, &text, error) != 0)
			return -1;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (wlbd_field_integer(data, counts[i], WLBD_OPTIONAL, 0, PLANS_MAX, &count, error) != 0)
			return -1;
	/* Fields that are not known here are stored too, and are bounded with the rest. */
	json_t *wrapped = json_pack("{s:O}", "plan", data);
	int rc = wrapped != NULL ? wlbd_field_bounded(wrapped, "plan", PLAN_BYTES_MAX, error)
	                         : wlb_fail(error, "out of memory");
	json_decref(wrapped);
	return rc;
}
