#include "worker/checkpoint/recent_norms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void wlb_recent_norms_add(struct wlb_recent_norms *n, int64_t step, double norm)
{
	if (n->count == WLB_RECENT_NORMS)
		memmove(&n->list[0], &n->list[1], (size_t)--n->count * sizeof(n->list[0]));
	n->list[n->count++] = (struct wlb_step_norm){step, norm};
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double wlb_recent_norms_median(const struct wlb_recent_norms *n, int64_t last_step)
{
	double sorted[WLB_NORMS_OF_MEDIAN];
	int count = 0;
	for (int i = n->count - 1; i >= 0 && count < WLB_NORMS_OF_MEDIAN; i--)
		if (n->list[i].step <= last_step)
			sorted[count++] = n->list[i].norm;
	if (count < WLB_NORMS_LEAST)
		return NAN;
	qsort(sorted, (size_t)count, sizeof(sorted[0]), ascending);
	return sorted[(count - 1) / 2];
}

json_t *wlb_recent_norms_format(const struct wlb_recent_norms *n)
{
	json_t *list = json_array();
	int failed = 0;
	for (int i = 0; i < n->count; i++)
		failed |=
			json_array_append_new(list, json_pack("[I, f]", (json_int_t)n->list[i].step, n->list[i].norm));
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

int wlb_recent_norms_parse(const json_t *json, struct wlb_recent_norms *n, struct wlb_error *error)
{
	*n = (struct wlb_recent_norms){0};
	if (!json_is_array(json) || json_array_size(json) > WLB_RECENT_NORMS)
		return wlb_fail(error, "it must be a list of at most %d steps", WLB_RECENT_NORMS);
	for (size_t i = 0; i < json_array_size(json); i++) {
		const json_t *entry = json_array_get(json, i), *step = json_array_get(entry, 0);
		const json_t *norm = json_array_get(entry, 1);
		int64_t before = i > 0 ? n->list[i - 1].step : 0;
		if (json_array_size(entry) != 2 || !json_is_integer(step) || json_integer_value(step) <= before ||
		    !json_is_number(norm) || json_number_value(norm) < 0.0)
			return wlb_fail(error,
			                "entry %zu: it must be the number of a step, above the one before, and its "
			                "gradient norm",
			                i);
		wlb_recent_norms_add(n, json_integer_value(step), json_number_value(norm));
	}
	return 0;
}
