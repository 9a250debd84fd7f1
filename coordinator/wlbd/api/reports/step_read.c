#include "coordinator/wlbd/api/reports/step_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/entry_values.h"
#include "coordinator/wlbd/http/fields.h"

#define MICROSECONDS_MAX INT64_C(10000000000000)
#define STEP_MAX INT64_C(1000000000000)
#define CALLS_MAX INT64_C(1000000000000000)
#define BYTES_MAX INT64_C(1000000000000000000)

static const double work_max = 1e30, value_max = 1e100;

/* The places of the values in an entry. */
enum place { RANK, STEP, SECONDS, ASIDE, COMPUTED, WORK, LOADER, STORAGE, LOSS, GRADIENT_NORM, TRANSFERS, VALUES };

/* A length of time in microseconds; negative where it is null. */
static int read_seconds(const char *what, const json_t *value, double *value_s, struct wlb_error *error)
{
	int64_t microseconds = 0;
	*value_s = -1.0;
	if (json_is_null(value))
		return 0;
	if (wlbd_value_integer(what, value, 0, MICROSECONDS_MAX, &microseconds, error) != 0)
		return -1;
	*value_s = 1e-6 * (double)microseconds;
	return 0;
}

static int read_work(const json_t *value, double *work, struct wlb_error *error)
{
	*work = json_is_null(value) ? -1.0 : json_number_value(value);
	if (json_is_null(value) || (json_is_number(value) && *work >= 0.0 && *work <= work_max))
		return 0;
	return wlbd_value_refuse("work", value, "a number from 0 to 1e+30, or null", error);
}

/* A loss or norm: a number not below `min`, or the name of one that is not finite. */
static int read_value(const char *what, const json_t *value, double min, int *is_known, double *number,
                      struct wlb_error *error)
{
	char rule[96];
	static const struct {
		const char *name;
		double value;
	} names[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
	*is_known = !json_is_null(value);
	*number = json_number_value(value);
	if (json_is_null(value) || (json_is_number(value) && *number >= min && *number <= value_max))
		return 0;
	for (size_t i = 0; json_is_string(value) && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(json_string_value(value), names[i].name) == 0 && (min < 0.0 || !(names[i].value < 0.0))) {
			*number = names[i].value;
			return 0;
		}
	snprintf(rule, sizeof(rule), "a number from %g to %g, \"nan\", \"inf\"%s, or null", min, value_max,
	         min < 0.0 ? ", \"-inf\"" : "");
	return wlbd_value_refuse(what, value, rule, error);
}

/* [name of the group, calls, microseconds, bytes] */
static int read_transfer(const json_t *entry, struct wlbd_rank_transfer *transfer, struct wlb_error *error)
{
	int64_t bytes = 0;
	if (json_array_size(entry) != 4)
		return wlbd_value_refuse("transfer", entry, "an array of group, calls, microseconds and bytes", error);
	if (wlbd_value_name("group", json_array_get(entry, 0), transfer->group, sizeof(transfer->group), error) != 0 ||
	    wlbd_value_integer("calls", json_array_get(entry, 1), 0, CALLS_MAX, &transfer->transfer.calls, error) !=
	            0 ||
	    read_seconds("time", json_array_get(entry, 2), &transfer->transfer.transfer_s, error) != 0 ||
	    wlbd_value_integer("bytes", json_array_get(entry, 3), 0, BYTES_MAX, &bytes, error) != 0)
		return -1;
	transfer->transfer.bytes = (double)bytes;
	return 0;
}

static int read_transfers(const json_t *list, struct wlbd_rank_step *step, struct wlb_error *error)
{
	if (!json_is_array(list) || json_array_size(list) > WLBD_ACTIVITY_GROUPS_MAX)
		return wlbd_value_refuse("transfers", list, "an array of at most 16 entries", error);
	step->transfer_count = (int)json_array_size(list);
	for (int i = 0; i < step->transfer_count; i++)
		if (read_transfer(json_array_get(list, (size_t)i), &step->transfers[i], error) != 0)
			return wlb_fail_in(error, "transfers[%d]", i);
	return 0;
}

int wlbd_step_read(const json_t *entry, struct wlbd_rank_step *step, struct wlb_error *error)
{
	int64_t rank = 0;
	const json_t *value[VALUES];
	*step = (struct wlbd_rank_step){0};
	struct wlb_verdict_step *ended = &step->ended;
	if (json_array_size(entry) != VALUES)
		return wlbd_value_refuse("entry", entry, "an array of 11 values", error);
	for (size_t i = 0; i < VALUES; i++)
		value[i] = json_array_get(entry, i);
	if (wlbd_value_integer("rank", value[RANK], 0, WLBD_RANKS_MAX, &rank, error) != 0 ||
	    wlbd_value_integer("step", value[STEP], 0, STEP_MAX, &ended->step, error) != 0 ||
	    read_seconds("seconds", value[SECONDS], &ended->seconds, error) != 0 ||
	    read_seconds("time aside", value[ASIDE], &ended->aside_s, error) != 0 ||
	    read_seconds("time computed", value[COMPUTED], &ended->computed_s, error) != 0 ||
	    read_work(value[WORK], &ended->work, error) != 0 ||
	    read_seconds("time of the loader", value[LOADER], &ended->loader_s, error) != 0 ||
	    read_seconds("time of storage", value[STORAGE], &ended->storage_s, error) != 0 ||
	    read_value("loss", value[LOSS], -value_max, &ended->has_loss, &ended->loss, error) != 0 ||
	    read_value("gradient norm", value[GRADIENT_NORM], 0.0, &ended->has_gradient_norm, &ended->gradient_norm,
	               error) != 0 ||
	    read_transfers(value[TRANSFERS], step, error) != 0)
		return -1;
	ended->rank = (int32_t)rank;
	return 0;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct place_of_step {
	int rank;
	int64_t step;
};

static int by_place(const void *a, const void *b)
{
	const struct place_of_step *x = a, *y = b;
	if (x->rank != y->rank)
		return (x->rank > y->rank) - (x->rank < y->rank);
	return (x->step > y->step) - (x->step < y->step);
}

static int check_each_once(struct place_of_step *places, size_t count, struct wlb_error *error)
{
	qsort(places, count, sizeof(*places), by_place);
	for (size_t i = 1; i < count; i++)
		if (by_place(&places[i], &places[i - 1]) == 0)
			return wlb_fail(error,
			                "field 'steps': step %lld of rank %d is listed twice; list each step of a rank "
			                "once",
			                (long long)places[i].step, places[i].rank);
	return 0;
}

int wlbd_steps_check(const json_t *body, const json_t **steps, struct wlb_error *error)
{
	struct wlbd_rank_step step;
	struct place_of_step places[WLBD_STEPS_MAX];
	if (wlbd_field_array(body, "steps", WLBD_OPTIONAL, WLBD_STEPS_MAX, steps, error) != 0)
		return -1;
	size_t count = json_array_size(*steps);
	for (size_t i = 0; i < count; i++) {
		if (wlbd_step_read(json_array_get(*steps, i), &step, error) != 0)
			return wlb_fail_in(error, "steps[%zu]", i);
		places[i] = (struct place_of_step){step.ended.rank, step.ended.step};
	}
	return check_each_once(places, count, error);
}
