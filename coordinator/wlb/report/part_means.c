#include "coordinator/wlb/report/part_means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCHES = 200, NAMES = 32, NAME_BYTES = 65 };

static const double SECONDS_MAX = 1e7; /* as of records (docs/api.md) */

struct stretch {
	int64_t first_step, steps;
	double sums_s[NAMES];
};

struct wlb_part_means {
	int64_t first, steps_each;
	int names;
	char name[NAMES][NAME_BYTES];
	struct stretch stretches[STRETCHES];
};

struct wlb_part_means *wlb_part_means_new(int64_t first, int64_t last)
{
	struct wlb_part_means *means = calloc(1, sizeof(*means));
	if (means == NULL)
		return NULL;
	means->first = first;
	means->steps_each = last > first ? (last - first + STRETCHES) / STRETCHES : 1;
	return means;
}

void wlb_part_means_free(struct wlb_part_means *means)
{
	free(means);
}

/* Returns the index of the name, which is new where it was not added before; -1 where there are too many. */
static int index_of(struct wlb_part_means *means, const char *name)
{
	for (int i = 0; i < means->names; i++)
		if (strcmp(means->name[i], name) == 0)
			return i;
	if (means->names == NAMES || strlen(name) >= NAME_BYTES)
		return -1;
	strcpy(means->name[means->names], name);
	return means->names++;
}

void wlb_part_means_add(struct wlb_part_means *means, const json_t *step)
{
	json_t *parts = json_object_get(step, "parts"), *value;
	const char *name;
	int64_t number = json_integer_value(json_object_get(step, "step"));
	int64_t at = (number - means->first) / means->steps_each;
	struct stretch *stretch = &means->stretches[at < 0 ? 0 : at < STRETCHES ? at : STRETCHES - 1];
	if (json_object_size(parts) == 0)
		return;
	if (stretch->steps++ == 0)
		stretch->first_step = number;
	json_object_foreach(parts, name, value)
	{
		int i = index_of(means, name);
		if (i >= 0 && fabs(json_number_value(value)) <= SECONDS_MAX)
			stretch->sums_s[i] += json_number_value(value);
	}
}

json_t *wlb_part_means_json(const struct wlb_part_means *means)
{
	json_t *result = json_pack("{s:[], s:[], s:[]}", "step", "names", "seconds");
	int rc = result != NULL ? 0 : -1;
	for (int k = 0; rc == 0 && k < means->names; k++) {
		rc = json_array_append_new(json_object_get(result, "names"), json_string(means->name[k]));
		rc |= json_array_append_new(json_object_get(result, "seconds"), json_array());
	}
	for (int i = 0; rc == 0 && i < STRETCHES; i++) {
		const struct stretch *stretch = &means->stretches[i];
		if (stretch->steps == 0)
			continue;
		rc = json_array_append_new(json_object_get(result, "step"), json_integer(stretch->first_step));
		for (int k = 0; rc == 0 && k < means->names; k++)
			rc = json_array_append_new(json_array_get(json_object_get(result, "seconds"), (size_t)k),
			                           json_real(stretch->sums_s[k] / (double)stretch->steps));
	}
	if (rc == 0)
		return result;
	json_decref(result);
	return NULL;
}
