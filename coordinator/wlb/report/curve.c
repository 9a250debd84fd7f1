#include "coordinator/wlb/report/curve.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Numbers of a row; the first are as in the reply. */
enum {
	LOSS,
	GRAD_NORM,
	RATE,
	STEP_TIME,
	SPEED,
	PREDICTED_IMBALANCE,
	IMBALANCE,
	OF_REPLY,
	TIME = OF_REPLY,
	TOKENS,
	NUMBERS
};

static const double TOKENS_MAX = 1e18; /* of a sum; more than any run has */

static const char *const names[NUMBERS] = {
	[LOSS] = "loss",
	[GRAD_NORM] = "grad_norm",
	[RATE] = "lr",
	[STEP_TIME] = "step_time_s",
	[SPEED] = "tokens_per_s",
	[PREDICTED_IMBALANCE] = "predicted_imbalance",
	[IMBALANCE] = "imbalance",
	[TIME] = "time_s",
	[TOKENS] = "tokens",
};

struct row {
	int64_t step, attempt;
	double numbers[NUMBERS]; /* NAN: none */
};

/* What a stretch keeps of its steps. */
enum { LEAST_LOSS, MOST_LOSS, LEAST_SPEED, MOST_SPEED, NO_LOSS, KEPT };

struct stretch {
	bool has[KEPT];
	struct row rows[KEPT];
};

struct wlb_report_curve {
	int64_t first, steps_each;
	int count;
	double begin_s;         /* time of the first step, since 1970 */
	double tokens, steps_s; /* sums of all steps until now: tokens, and times of those that have both */
	struct stretch stretches[];
};

struct wlb_report_curve *wlb_report_curve_new(int64_t first, int64_t last, int points)
{
	int64_t steps = last >= first ? last - first + 1 : 1;
	/* A short run may have become longer by the time its steps are read. */
	int count = steps <= points ? points : points / KEPT;
	int64_t each = (steps + count - 1) / count;
	struct wlb_report_curve *curve = calloc(1, sizeof(*curve) + (size_t)count * sizeof(curve->stretches[0]));
	if (curve == NULL)
		return NULL;
	curve->first = first;
	curve->steps_each = each;
	curve->count = count;
	curve->begin_s = NAN;
	return curve;
}

void wlb_report_curve_free(struct wlb_report_curve *curve)
{
	free(curve);
}

static double number_of(const json_t *step, const char *name)
{
	const json_t *value = json_object_get(step, name);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

static struct row read_row(struct wlb_report_curve *curve, const json_t *step)
{
	struct row row = {.step = json_integer_value(json_object_get(step, "step")),
	                  .attempt = json_integer_value(json_object_get(step, "attempt"))};
	for (int i = 0; i < OF_REPLY; i++)
		row.numbers[i] = number_of(step, names[i]);
	double time_s = number_of(step, "time");
	if (isnan(curve->begin_s))
		curve->begin_s = time_s;
	double tokens = json_number_value(json_object_get(step, "tokens"));
	curve->tokens += tokens;
	curve->steps_s += tokens > 0.0 && !isnan(row.numbers[STEP_TIME]) ? row.numbers[STEP_TIME] : 0.0;
	row.numbers[TIME] = time_s - curve->begin_s;
	row.numbers[TOKENS] = curve->tokens;
	return row;
}

static void keep(struct stretch *stretch, int place, const struct row *row)
{
	stretch->has[place] = true;
	stretch->rows[place] = *row;
}

/* Keeps the row where it is less or more than what is kept, by one of its numbers. */
static void keep_ends(struct stretch *stretch, int least, int most, int number, const struct row *row)
{
	double value = row->numbers[number];
	if (isnan(value))
		return;
	if (!stretch->has[least] || value < stretch->rows[least].numbers[number])
		keep(stretch, least, row);
	if (!stretch->has[most] || value > stretch->rows[most].numbers[number])
		keep(stretch, most, row);
}

void wlb_report_curve_add(struct wlb_report_curve *curve, const json_t *step)
{
	struct row row = read_row(curve, step);
	int64_t at = (row.step - curve->first) / curve->steps_each;
	at = at < 0 ? 0 : at < curve->count ? at : curve->count - 1;
	struct stretch *stretch = &curve->stretches[at];
	if (isnan(row.numbers[LOSS]) && !stretch->has[NO_LOSS])
		keep(stretch, NO_LOSS, &row);
	keep_ends(stretch, LEAST_LOSS, MOST_LOSS, LOSS, &row);
	keep_ends(stretch, LEAST_SPEED, MOST_SPEED, SPEED, &row);
}

static int append_row(json_t *columns, const struct row *row, double token_scale)
{
	int rc = json_array_append_new(json_object_get(columns, "step"), json_integer(row->step));
	rc |= json_array_append_new(json_object_get(columns, "attempt"), json_integer(row->attempt));
	for (int i = 0; i < NUMBERS; i++) {
		double value = row->numbers[i];
		json_t *entry = !isfinite(value) ? json_null()
		                : i == TOKENS ? json_integer(llround(fmax(0.0, fmin(value * token_scale, TOKENS_MAX))))
		                              : json_real(value);
		rc |= json_array_append_new(json_object_get(columns, names[i]), entry);
	}
	return rc;
}

/* Appends the rows that the stretch has kept in the order of steps, each once. */
static int append_stretch(json_t *columns, const struct stretch *stretch, double token_scale)
{
	for (int64_t after = INT64_MIN;;) {
		const struct row *next = NULL;
		for (int i = 0; i < KEPT; i++)
			if (stretch->has[i] && stretch->rows[i].step > after &&
			    (next == NULL || stretch->rows[i].step < next->step))
				next = &stretch->rows[i];
		if (next == NULL)
			return 0;
		if (append_row(columns, next, token_scale) != 0)
			return -1;
		after = next->step;
	}
}

json_t *wlb_report_curve_json(const struct wlb_report_curve *curve, double run_tokens)
{
	double token_scale = run_tokens > 0.0 && curve->tokens > 0.0 ? run_tokens / curve->tokens : 1.0;
	json_t *columns = json_pack("{s:[], s:[]}", "step", "attempt");
	int rc = columns != NULL ? 0 : -1;
	for (int i = 0; rc == 0 && i < NUMBERS; i++)
		rc = json_object_set_new(columns, names[i], json_array());
	for (int i = 0; rc == 0 && i < curve->count; i++)
		rc = append_stretch(columns, &curve->stretches[i], token_scale);
	double speed = curve->steps_s > 0.0 ? curve->tokens / curve->steps_s : NAN;
	if (rc == 0)
		rc = json_object_set_new(columns, "mean_tokens_per_s",
		                         isfinite(speed) ? json_real(speed) : json_null());
	if (rc == 0)
		return columns;
	json_decref(columns);
	return NULL;
}
