#include "coordinator/wlb/history/steps.h"

#include <stdio.h>

#include "coordinator/wlb/api.h"

enum { PAGE_STEPS = 10000, PAGE_MS = 30000 };

/* The first step of the next page; -1 if this was the last. Coordinators before 0004_records send no `next`. */
static json_int_t next_of(const json_t *reply)
{
	const json_t *steps = json_object_get(reply, "steps"), *next = json_object_get(reply, "next");
	size_t count = json_array_size(steps);
	if (json_is_integer(next))
		return json_integer_value(next);
	if (next != NULL || count < PAGE_STEPS)
		return -1;
	return json_integer_value(json_object_get(json_array_get(steps, count - 1), "step")) + 1;
}

/* Writes the request for the page that begins at `from`. */
static void make_path(const char *run, const struct wlb_steps_choice *choice, int64_t from, char *path, size_t size)
{
	int64_t limit = PAGE_STEPS;
	if (choice->to > 0 && (choice->to - from) / choice->every < limit)
		limit = (choice->to - from) / choice->every + 1;
	int used =
		snprintf(path, size, "/v1/runs/%s/steps?from=%lld&limit=%lld", run, (long long)from, (long long)limit);
	if (choice->every > 1)
		snprintf(path + used, size - (size_t)used, "&every=%lld", (long long)choice->every);
}

/* Removes the steps after the last one of the choice. */
static void cut(json_t *steps, int64_t to)
{
	for (size_t i = json_array_size(steps); to > 0 && i > 0; i--) {
		if (json_integer_value(json_object_get(json_array_get(steps, i - 1), "step")) <= to)
			return;
		json_array_remove(steps, i - 1);
	}
}

static int each_page(struct wlb_connection *connection, const char *run, const struct wlb_steps_choice *choice,
                     wlb_steps_page *page, void *context, struct wlb_error *error)
{
	char path[256];
	json_int_t from = choice->from;
	while (from >= 0 && (choice->to == 0 || from <= choice->to)) {
		make_path(run, choice, from, path, sizeof(path));
		json_t *reply = wlb_api_request(connection, "GET", path, NULL, PAGE_MS, NULL, error);
		if (reply == NULL)
			return -1;
		json_int_t next = next_of(reply);
		cut(json_object_get(reply, "steps"), choice->to);
		int rc = page(json_object_get(reply, "steps"), context);
		json_decref(reply);
		if (rc != 0)
			return wlb_fail(error, "the steps could not be written");
		if (next >= 0 && next <= from)
			return wlb_fail(
				error,
				"the coordinator's page of steps from %lld follows the one from %lld: pages must "
				"ascend; upgrade wlbd",
				(long long)next, (long long)from);
		from = next;
	}
	return 0;
}

static int one_sample(const char *run, int points, wlb_steps_page *page, void *context, struct wlb_error *error)
{
	json_t *steps = wlb_steps_sample(run, points, error);
	if (steps == NULL)
		return -1;
	int rc = page(steps, context);
	json_decref(steps);
	return rc == 0 ? 0 : wlb_fail(error, "the steps could not be written");
}

int wlb_steps_each_page(const char *run, const struct wlb_steps_choice *choice, wlb_steps_page *page, void *context,
                        struct wlb_error *error)
{
	static const struct wlb_steps_choice all = {.every = 1};
	if (choice != NULL && choice->points > 0)
		return one_sample(run, choice->points, page, context, error);
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return -1;
	int rc = each_page(connection, run, choice != NULL ? choice : &all, page, context, error);
	wlb_connection_free(connection);
	return rc;
}

json_t *wlb_steps_sample(const char *run, int points, struct wlb_error *error)
{
	char path[160];
	snprintf(path, sizeof(path), "/v1/runs/%s/steps?points=%d", run,
	         points < WLB_STEPS_POINTS_MAX ? points : WLB_STEPS_POINTS_MAX);
	json_t *reply = wlb_api_get(path, error);
	json_t *steps = json_incref(json_object_get(reply, "steps"));
	if (reply != NULL && steps == NULL)
		wlb_fail(error, "the coordinator's reply to GET %s has no steps", path);
	json_decref(reply);
	return steps;
}
