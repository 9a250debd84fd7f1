#include "coordinator/wlb/top/fetch.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/output/printable.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/top/progress.h"

/* Sets *steps to NULL where the run has none yet. */
static int fetch_steps(struct wlb_connection *connection, const char *name, int timeout_ms, const json_t *run,
                       json_t **steps, int *status, struct wlb_error *error)
{
	char path[192];
	const json_t *last = json_object_get(run, "last_step");
	json_int_t from = json_integer_value(last) - WLB_PROGRESS_STEPS + 1;
	*steps = NULL;
	if (!json_is_integer(last))
		return 0;
	snprintf(path, sizeof(path), "/v1/runs/%s/steps?from=%lld&limit=%d", name, from > 0 ? (long long)from : 0LL,
	         WLB_PROGRESS_STEPS);
	json_t *reply = wlb_api_request(connection, "GET", path, NULL, timeout_ms, status, error);
	if (reply == NULL)
		return -1;
	*steps = json_incref(json_object_get(reply, "steps"));
	json_decref(reply);
	return 0;
}

int wlb_top_fetch(struct wlb_connection *connection, const char *run, int timeout_ms, struct wlb_top_view *view,
                  int *status, struct wlb_error *error)
{
	char path[128];
	struct wlb_top_view fetched = {.fetched_ms = wlb_clock_ms()};
	snprintf(path, sizeof(path), "/v1/runs/%s/ranks", run);
	fetched.run = wlb_api_request(connection, "GET", path, NULL, timeout_ms, status, error);
	if (fetched.run == NULL ||
	    fetch_steps(connection, run, timeout_ms, fetched.run, &fetched.steps, status, error) != 0) {
		json_decref(fetched.run);
		return -1;
	}
	int rc = wlb_make_printable(fetched.run);
	if (rc != 0)
		wlb_fail(error, "out of memory for the run");
	else
		rc = wlb_top_ranks_read(fetched.run, &fetched.ranks, error);
	if (rc != 0) {
		wlb_top_view_free(&fetched);
		return -1;
	}
	wlb_top_view_free(view);
	*view = fetched;
	return 0;
}

void wlb_top_view_free(struct wlb_top_view *view)
{
	wlb_top_ranks_free(&view->ranks);
	json_decref(view->run);
	json_decref(view->steps);
	*view = (struct wlb_top_view){0};
}

bool wlb_top_view_has_ended(const struct wlb_top_view *view)
{
	static const char *const ends[] = {"complete", "failed", "out_of_nodes", "cancelled"};
	const char *state = wlb_field_text(view->run, "state", "");
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(state, ends[i]) == 0)
			return true;
	return false;
}
