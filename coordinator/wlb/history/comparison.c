#include "coordinator/wlb/history/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "coordinator/wlb/history/curve.h"
#include "coordinator/wlb/history/differences.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { PARTS = 4 /* of the common length, at whose ends losses are compared */ };

static const double mean_share = 0.1; /* of what came before a point: over that much a mean is taken */

/* A number, or null where it is none that JSON has. */
static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- curves -------------------------------------------------------------------------------------------------- */

static int make_curve(struct wlb_compared *compared, const char *axis)
{
	const json_t *step;
	size_t i;
	compared->losses.points = calloc(json_array_size(compared->steps) + 1, sizeof(struct wlb_sample));
	if (compared->losses.points == NULL)
		return -1;
	json_array_foreach(compared->steps, i, step) compared->losses.points[compared->losses.count++] =
		(struct wlb_sample){number(step, axis), number(step, "loss")};
	return 0;
}

static bool has_tokens(const struct wlb_compared *compared)
{
	const json_t *last = json_array_get(compared->steps, json_array_size(compared->steps) - 1);
	return last == NULL || number(last, "tokens_so_far") > 0;
}

int wlb_comparison_prepare(struct wlb_comparison *comparison, bool by_steps)
{
	comparison->by_tokens = !by_steps;
	comparison->common = INFINITY;
	for (int i = 0; i < comparison->count; i++)
		comparison->by_tokens = comparison->by_tokens && has_tokens(&comparison->runs[i]);
	for (int i = 0; i < comparison->count; i++) {
		struct wlb_compared *compared = &comparison->runs[i];
		compared->losses.mark = (char)('A' + i);
		if (make_curve(compared, comparison->by_tokens ? "tokens_so_far" : "step") != 0)
			return -1;
		double end = wlb_curve_end(&compared->losses);
		if (!(comparison->common <= end)) /* also where one of them is NAN, which then stays */
			comparison->common = isnan(comparison->common) ? NAN : end;
	}
	return 0;
}

void wlb_comparison_free(struct wlb_comparison *comparison)
{
	for (int i = 0; i < comparison->count; i++) {
		json_decref(comparison->runs[i].run);
		json_decref(comparison->runs[i].steps);
		free(comparison->runs[i].losses.points);
	}
}

/* ---- what a run has reached ---------------------------------------------------------------------------------- */

static int by_size(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;
	return a < b ? -1 : a > b;
}

/* The median of a field of the sampled steps: the first step, and those beside a fault, take much longer than others.
 */
static double median(const json_t *steps, const char *field)
{
	const json_t *step;
	size_t i, count = 0;
	double *values = calloc(json_array_size(steps) + 1, sizeof(*values));
	if (values == NULL)
		return NAN;
	json_array_foreach(steps, i, step)
	{
		if (!isnan(number(step, field)))
			values[count++] = number(step, field);
	}
	qsort(values, count, sizeof(*values), by_size);
	double middle = count == 0       ? NAN
	                : count % 2 == 1 ? values[count / 2]
	                                 : (values[count / 2 - 1] + values[count / 2]) / 2;
	free(values);
	return middle;
}

/* As `wlb show` has it: what the plan predicts, at the time that a step took. */
static double mfu_of(const json_t *attempt)
{
	const json_t *plan = json_object_get(attempt, "plan");
	return number(plan, "utilization") * number(plan, "step_s") / number(attempt, "step_s");
}

static double elapsed_of(const json_t *run)
{
	time_t begin = wlb_time_parse(wlb_field_text(run, "started_at", NULL));
	time_t end = wlb_time_parse(wlb_field_text(run, "ended_at", NULL));
	if (begin == (time_t)-1)
		return NAN;
	return difftime(end != (time_t)-1 ? end : time(NULL), begin);
}

static json_t *losses_of(const struct wlb_comparison *comparison, const struct wlb_series *curve)
{
	json_t *losses = json_array();
	for (int part = 1; part <= PARTS; part++) {
		double at = comparison->common * part / PARTS;
		if (!comparison->by_tokens)
			at = floor(at);
		json_array_append_new(losses, json_pack("{s:o, s:o, s:o}", "at", real(at), "loss",
		                                        real(wlb_curve_at(curve, at)), "mean",
		                                        real(wlb_curve_mean(curve, at * (1 - mean_share), at))));
	}
	return losses;
}

/* How many entries a list of the run has, with those that the reply leaves out. */
static json_int_t count_of(const json_t *run, const char *list)
{
	return (json_int_t)json_array_size(json_object_get(run, list)) +
	       json_integer_value(json_object_get(json_object_get(run, "left_out"), list));
}

static void add_measures(json_t *object, const struct wlb_compared *compared)
{
	const json_t *run = compared->run, *attempts = json_object_get(run, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
	const json_t *lost = json_object_get(run, "time_lost"), *evaluations = json_object_get(run, "evaluations");
	const json_t *evaluation = json_array_get(evaluations, json_array_size(evaluations) - 1);
	json_object_set_new(object, "tokens_per_s", real(median(compared->steps, "tokens_per_s")));
	json_object_set_new(object, "step_s", real(median(compared->steps, "step_time_s")));
	json_object_set_new(object, "mfu", real(mfu_of(last)));
	json_object_set_new(object, "memory_bytes", real(number(last, "memory_bytes")));
	json_object_set_new(object, "elapsed_s", real(elapsed_of(run)));
	json_object_set_new(object, "ettr", real(number(lost, "ettr")));
	json_object_set_new(object, "lost_s", real(number(lost, "held_s") - number(lost, "effective_s")));
	json_object_set_new(object, "faults", json_integer(count_of(run, "faults")));
	json_object_set_new(object, "attempts", json_integer(count_of(run, "attempts")));
	json_object_set_new(object, "evaluation_step", real(number(evaluation, "step")));
	json_object_set_new(object, "evaluation_loss", real(number(evaluation, "loss")));
}

static json_t *run_object(const struct wlb_comparison *comparison, const struct wlb_compared *compared)
{
	static const char *const copied[] = {"run_id",      "alias",      "job_name", "user",
	                                     "state",       "started_at", "tags",     "last_step",
	                                     "train_iters", "first_loss", "last_loss"};
	double tokens = number(compared->run, "tokens");
	json_t *object = json_pack("{s:s%}", "mark", &compared->losses.mark, (size_t)1);
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		json_object_set(object, copied[i], json_object_get(compared->run, copied[i]));
	json_object_set_new(object, "tokens", tokens > 0 ? real(tokens) : json_null()); /* no step has said how many */
	add_measures(object, compared);
	json_object_set_new(object, "losses", losses_of(comparison, &compared->losses));
	return object;
}

/* ---- what a run was started with ----------------------------------------------------------------------------- */

static json_t *settings_of(const json_t *run)
{
	static const char *const of_run[] = {"policy", "model", "seq_length", "global_batch_size", "train_iters"};
	static const char *const of_attempt[] = {"layout", "world_size", "node_count", "device", "dtype"};
	const json_t *attempts = json_object_get(run, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
	json_t *settings = json_object();
	for (size_t i = 0; i < sizeof(of_run) / sizeof(of_run[0]); i++)
		json_object_set(settings, of_run[i], json_object_get(run, of_run[i]));
	for (size_t i = 0; i < sizeof(of_attempt) / sizeof(of_attempt[0]); i++)
		json_object_set(settings, of_attempt[i], json_object_get(last, of_attempt[i]));
	return settings;
}

json_t *wlb_comparison_report(const struct wlb_comparison *comparison)
{
	json_t *runs = json_array(), *settings = json_array();
	for (int i = 0; i < comparison->count; i++) {
		json_array_append_new(runs, run_object(comparison, &comparison->runs[i]));
		json_array_append_new(settings, settings_of(comparison->runs[i].run));
	}
	json_t *differences = wlb_settings_that_differ(settings);
	json_decref(settings);
	json_t *report = json_pack("{s:s, s:o, s:o, s:o}", "by", comparison->by_tokens ? "tokens" : "steps", "common",
	                           real(comparison->common), "runs", runs, "differences", differences);
	return report;
}
