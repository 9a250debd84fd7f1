#include "coordinator/wlb/history/steps.h"

#include <stdio.h>

#include "coordinator/wlb/api.h"

enum { PAGE_STEPS = 10000, PAGE_MS = 30000, POINTS_MAX = 2000 };

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

static int each_page(struct wlb_connection *connection, const char *run, wlb_steps_page *page, void *context,
                     struct wlb_error *error)
{
	char path[192];
	json_int_t from = 0;
	while (from >= 0) {
		snprintf(path, sizeof(path), "/v1/runs/%s/steps?from=%lld&limit=%d", run, (long long)from, PAGE_STEPS);
		json_t *reply = wlb_api_request(connection, "GET", path, NULL, PAGE_MS, NULL, error);
		if (reply == NULL)
			return -1;
		json_int_t next = next_of(reply);
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

int wlb_steps_each_page(const char *run, wlb_steps_page *page, void *context, struct wlb_error *error)
{
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return -1;
	int rc = each_page(connection, run, page, context, error);
	wlb_connection_free(connection);
	return rc;
}

json_t *wlb_steps_sample(const char *run, int points, struct wlb_error *error)
{
	char path[160];
	snprintf(path, sizeof(path), "/v1/runs/%s/steps?points=%d", run, points < POINTS_MAX ? points : POINTS_MAX);
	json_t *reply = wlb_api_get(path, error);
	json_t *steps = json_incref(json_object_get(reply, "steps"));
	if (reply != NULL && steps == NULL)
		wlb_fail(error, "the coordinator's reply to GET %s has no steps", path);
	json_decref(reply);
	return steps;
}
