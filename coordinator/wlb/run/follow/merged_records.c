#include "coordinator/wlb/run/follow/merged_records.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json_text.h"

#define VALUE_MAX 1e300 /* docs/api.md */
#define SECONDS_MAX 1e7 /* likewise */
#define BYTES_MAX 1e18  /* likewise */
#define RESTARTS_MAX 1e6
static const double AHEAD_S = 600.0; /* a time that a trainer says may be so far in the future */

int wlb_merged_records_open(struct wlb_merged_records *records, wlb_merged_write *write, void *context)
{
	*records = (struct wlb_merged_records){.merge = wlb_merge_open(), .write = write, .context = context};
	return records->merge != NULL ? 0 : -1;
}

static void write_held(struct wlb_merged_records *records)
{
	if (records->held != NULL)
		records->write(records->context, "followed", records->held, records->held_s);
	records->held = NULL;
}

void wlb_merged_records_close(struct wlb_merged_records *records)
{
	write_held(records);
	wlb_merge_close(records->merge);
}

/* JSON has neither NaN nor infinities. */
static json_t *value_json(double value)
{
	if (isnan(value))
		return json_string("nan");
	if (fabs(value) > VALUE_MAX)
		return json_string(value > 0 ? "inf" : "-inf");
	return json_real(value);
}

static json_t *values_json(const struct wlb_followed *record, const struct wlb_merged *merged)
{
	json_t *values = json_object();
	for (int i = 0; i < merged->count; i++) {
		const struct wlb_followed_value *value = &record->values[merged->values[i]];
		json_object_set_new(values, value->name, value_json(value->value));
	}
	return values;
}

static json_t *record_json(const struct wlb_origin *origin, const struct wlb_followed *record,
                           const struct wlb_merged *merged)
{
	static const char *const sources[] = {"log", "tensorboard", "stdout", "hook"};
	return json_pack("{s:I, s:b, s:b, s:s, s:i, s:I, s:I, s:o}", "step", (json_int_t)merged->step, "is_of_attempt",
	                 merged->step_kind == WLB_FOLLOWED_STEP_OF_ATTEMPT, "is_step", merged->is_progress, "source",
	                 sources[origin->source], "stream", origin->stream, "generation",
	                 (json_int_t)origin->generation, "at", (json_int_t)origin->at, "values",
	                 values_json(record, merged));
}

/* Adds from where to this step training went, and in which time, without the saves. */
static void add_interval(struct wlb_merged_records *records, json_t *data, int64_t step, double time_s)
{
	double seconds = time_s - records->step_s - fmax(records->reported_s, records->seen_s);
	if (records->has_step && step > records->step && seconds >= 0.0 && seconds <= SECONDS_MAX) {
		json_object_set_new(data, "span", json_integer((json_int_t)(step - records->step)));
		json_object_set_new(data, "interval_s", json_real(seconds));
	}
	records->has_step = true;
	records->step = step;
	records->step_s = time_s;
	records->reported_s = records->seen_s = 0.0;
}

/* Returns whether it is another second than the one that is noted, and notes it. */
static bool is_new_second(int64_t *noted_s, double now_s)
{
	bool is_new = (int64_t)now_s != *noted_s;
	*noted_s = (int64_t)now_s;
	return is_new;
}

/* Writes the step of the attempt, or holds it until the second is over. */
static void write_or_hold(struct wlb_merged_records *records, json_t *data, double time_s, double now_s)
{
	json_decref(records->held);
	records->held = data;
	records->held_s = time_s;
	if (is_new_second(&records->written_held_s, now_s))
		write_held(records);
}

static double time_of(const struct wlb_followed *record, double now_s)
{
	return record->time_s > 0.0 && record->time_s < now_s + AHEAD_S ? record->time_s : now_s;
}

void wlb_merged_records_take(struct wlb_merged_records *records, const struct wlb_origin *origin,
                             const struct wlb_followed *record, double now_s)
{
	struct wlb_merged merged;
	double time_s = time_of(record, now_s);
	records->left_out_values += record->left_out;
	if (record->step_kind == WLB_FOLLOWED_NO_STEP && !is_new_second(&records->unnumbered_s, now_s)) {
		records->left_out_records++;
		return;
	}
	wlb_merge_take(records->merge, origin, record, &merged);
	if (merged.step_kind == WLB_FOLLOWED_NO_STEP || (merged.count == 0 && !merged.is_progress))
		return;
	json_t *data = record_json(origin, record, &merged);
	if (merged.step_kind == WLB_FOLLOWED_STEP_OF_ATTEMPT && merged.count == 0) {
		write_or_hold(records, data, time_s, now_s);
		return;
	}
	if (merged.step_kind == WLB_FOLLOWED_STEP && merged.is_progress)
		add_interval(records, data, merged.step, time_s);
	records->write(records->context, "followed", data, time_s);
}

/* `save` is released; NULL: the event is of none. */
static void write_event(struct wlb_merged_records *records, const char *kind, const char *detail, json_t *save,
                        double time_s)
{
	records->write(records->context, "event",
	               json_pack("{s:s, s:o, s:o*}", "kind", kind, "detail", wlb_json_text(detail), "save", save),
	               time_s);
}

/* The value of that name, or -1 where it is not said, or outside its bounds. */
static double said_of_save(const struct wlb_followed *record, const char *name, double most)
{
	const double *said = wlb_followed_find(record, name);
	return said != NULL && *said >= 0.0 && *said <= most ? *said : -1.0;
}

/* Without a step where it is negative. */
static json_t *save_json(const char *path, const struct wlb_followed *record, int64_t step)
{
	double took_s = said_of_save(record, "save_s", SECONDS_MAX),
	       stall_s = said_of_save(record, "stall_s", SECONDS_MAX);
	double bytes = said_of_save(record, "bytes", BYTES_MAX);
	return json_pack("{s:o*, s:o, s:o*, s:o*, s:o*}", "step", step >= 0 ? json_integer((json_int_t)step) : NULL,
	                 "path", wlb_json_text(path), "bytes", bytes >= 0.0 ? json_integer((json_int_t)bytes) : NULL,
	                 "duration_s", took_s >= 0.0 ? json_real(took_s) : NULL, "stall_s",
	                 stall_s >= 0.0 ? json_real(stall_s) : NULL);
}

static void write_seen(struct wlb_merged_records *records, const char *path, double took_s, json_t *save, double time_s)
{
	char detail[WLB_JSON_TEXT_MAX];
	snprintf(detail, sizeof(detail), "%s, which took %.1f s", path, took_s);
	write_event(records, "saved", detail, save, time_s);
}

void wlb_merged_records_restarted(struct wlb_merged_records *records, double restarts,
                                  const struct wlb_followed *record, double now_s)
{
	char detail[96];
	if (!(restarts > (double)records->restarts) || restarts > RESTARTS_MAX)
		return;
	records->restarts = (int64_t)restarts;
	snprintf(detail, sizeof(detail), "the launcher has started its ranks again, restart %lld of this attempt",
	         (long long)records->restarts);
	write_event(records, "ranks_restarted", detail, NULL, time_of(record, now_s));
}

void wlb_merged_records_saved(struct wlb_merged_records *records, enum wlb_source source, const char *path,
                              const struct wlb_followed *record, double now_s)
{
	double took_s = fmax(said_of_save(record, "save_s", SECONDS_MAX), 0.0);
	double stall_s = said_of_save(record, "stall_s", SECONDS_MAX);
	int64_t step = record->step_kind == WLB_FOLLOWED_STEP ? record->step : records->has_step ? records->step : -1;
	*(source == WLB_SOURCE_HOOK ? &records->seen_s : &records->reported_s) += stall_s >= 0.0 ? stall_s : took_s;
	if (source == WLB_SOURCE_HOOK && is_new_second(&records->save_s, now_s))
		write_seen(records, path, took_s, save_json(path, record, step), time_of(record, now_s));
	else if (source != WLB_SOURCE_HOOK && step < 0)
		records->left_out_records++;
	else if (source != WLB_SOURCE_HOOK)
		records->write(records->context, "checkpoint", save_json(path, record, step), time_of(record, now_s));
}
