#include "coordinator/wlb/history/comparison_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/colour.h"
#include "common/output/side_by_side.h"
#include "common/output/wrap.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { PLOT_ROWS = 12, PLOT_MARGIN = 12, VALUE_BYTES = 512 };

/* ---- values as texts ------------------------------------------------------------------------------------------- */

/* "99999", and from there on with so many digits: "491.5 k", "1.234 M" */
static void format_count(double value, int digits, char *text, size_t size)
{
	static const char units[] = " kMGTPE";
	int unit = 0;
	for (; units[unit + 1] != '\0' && fabs(value) >= (unit == 0 ? 1e5 : 1e3); unit++)
		value /= 1e3;
	if (unit == 0)
		snprintf(text, size, "%.0f", value);
	else
		snprintf(text, size, "%.*g %c", digits, value, units[unit]);
}

static void show_text(const json_t *value, char *text, size_t size)
{
	snprintf(text, size, "%s", json_string_value(value));
}

static void show_count(const json_t *value, char *text, size_t size)
{
	format_count(json_number_value(value), 4, text, size);
}

static void show_loss(const json_t *value, char *text, size_t size)
{
	snprintf(text, size, "%.4f", json_number_value(value));
}

static void show_seconds(const json_t *value, char *text, size_t size)
{
	snprintf(text, size, "%.4g s", json_number_value(value));
}

static void show_duration(const json_t *value, char *text, size_t size)
{
	wlb_duration_format(lround(fmin(json_number_value(value), 1e12)), text, size);
}

static void show_share(const json_t *value, char *text, size_t size)
{
	snprintf(text, size, "%.3g %%", 100 * json_number_value(value));
}

static void show_bytes(const json_t *value, char *text, size_t size)
{
	wlb_bytes_text(json_number_value(value), text, size);
}

/* A setting, of any type; wlb_make_printable leaves the names of members as they are. */
static void show_setting(const json_t *value, char *text, size_t size)
{
	char *json = json_is_string(value) ? NULL
	                                   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	wlb_text_show(text, size, json != NULL ? json : json_is_string(value) ? json_string_value(value) : "-");
	free(json);
}

typedef void show_value(const json_t *value, char *text, size_t size);

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* Adds a row of the values, unless none is known; one that is null is "-". */
static void add_row(struct wlb_sides *sides, const char *name, const json_t *const *values, show_value *show)
{
	char texts[WLB_COMPARED_MAX][VALUE_BYTES];
	const char *shown[WLB_COMPARED_MAX];
	int known = 0;
	for (int i = 0; i < sides->count; i++) {
		bool is_known = values[i] != NULL && !json_is_null(values[i]);
		snprintf(texts[i], sizeof(texts[i]), "-");
		if (is_known)
			show(values[i], texts[i], sizeof(texts[i]));
		known += is_known;
		shown[i] = texts[i];
	}
	if (known > 0)
		wlb_sides_add(sides, name, shown);
}

static void add_member(struct wlb_sides *sides, const char *name, const json_t *runs, const char *field,
                       show_value *show)
{
	const json_t *values[WLB_COMPARED_MAX];
	for (int i = 0; i < sides->count; i++)
		values[i] = json_object_get(json_array_get(runs, (size_t)i), field);
	add_row(sides, name, values, show);
}

/* At each point, the loss there and the mean of the losses before it. */
static void add_losses(struct wlb_sides *sides, const json_t *report)
{
	const json_t *runs = json_object_get(report, "runs"), *values[WLB_COMPARED_MAX];
	const char *by = wlb_field_text(report, "by", "");
	size_t points = json_array_size(json_object_get(json_array_get(runs, 0), "losses"));
	for (size_t point = 0; point < 2 * points; point++) {
		char at[32], name[64];
		bool is_mean = point % 2 == 1;
		for (int i = 0; i < sides->count; i++)
			values[i] =
				json_array_get(json_object_get(json_array_get(runs, (size_t)i), "losses"), point / 2);
		format_count(json_number_value(json_object_get(values[0], "at")), 3, at, sizeof(at));
		for (int i = 0; i < sides->count; i++)
			values[i] = json_object_get(values[i], is_mean ? "mean" : "loss");
		snprintf(name, sizeof(name), is_mean ? "  mean before it" : "loss, %s %s", at, by);
		add_row(sides, name, values, show_loss);
	}
}

static int print_measures(struct wlb_sides sides, const json_t *report, int columns, FILE *out)
{
	static const struct {
		const char *name, *field;
		show_value *show;
	} before[] = {{"state", "state", show_text},
	              {"last step", "last_step", show_count},
	              {"tokens", "tokens", show_count},
	              {"last loss", "last_loss", show_loss}},
	  after[] = {{"evaluation", "evaluation_loss", show_loss},
	             {"  of step", "evaluation_step", show_count},
	             {"tokens/s", "tokens_per_s", show_count},
	             {"time of a step", "step_s", show_seconds},
	             {"MFU", "mfu", show_share},
	             {"memory", "memory_bytes", show_bytes},
	             {"elapsed", "elapsed_s", show_duration},
	             {"time lost", "lost_s", show_duration},
	             {"ETTR", "ettr", show_share},
	             {"attempts", "attempts", show_count},
	             {"faults", "faults", show_count}};
	const json_t *runs = json_object_get(report, "runs");
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		add_member(&sides, before[i].name, runs, before[i].field, before[i].show);
	add_losses(&sides, report);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		add_member(&sides, after[i].name, runs, after[i].field, after[i].show);
	return wlb_sides_print(&sides, columns, out);
}

static int print_differences(struct wlb_sides sides, const json_t *report, int columns, FILE *out)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(json_object_get(report, "differences"), i, entry)
	{
		const json_t *values[WLB_COMPARED_MAX];
		for (int side = 0; side < sides.count; side++)
			values[side] = json_array_get(json_object_get(entry, "values"), (size_t)side);
		add_row(&sides, wlb_field_text(entry, "name", "?"), values, show_setting);
	}
	fputs(sides.row_count > 0 ? "\nSettings that differ\n" : "\nNo setting differs\n", out);
	return wlb_sides_print(&sides, columns, out);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static void print_legend(const json_t *runs, bool has_colours, int columns, FILE *out)
{
	const json_t *run;
	size_t i;
	json_array_foreach(runs, i, run)
	{
		char name[80], line[VALUE_BYTES];
		int used;
		wlb_field_run(run, name, sizeof(name));
		snprintf(line, sizeof(line), "%s: '%s' of %s", name, wlb_field_text(run, "job_name", ""),
		         wlb_field_text(run, "user", "?"));
		size_t bytes = wlb_text_fit(line, columns - 4, &used);
		fprintf(out, has_colours ? "\033[%sm%s\033[0m" : "%.0s%s", wlb_series_colour((int)i),
		        wlb_field_text(run, "mark", "?"));
		fprintf(out, " %.*s\n", (int)bytes, line);
	}
}

static void print_chart(const struct wlb_comparison *comparison, int columns, bool has_colours, FILE *out)
{
	struct wlb_series series[WLB_COMPARED_MAX];
	char first[32], last[32];
	double begin, end;
	for (int i = 0; i < comparison->count; i++)
		series[i] = comparison->runs[i].losses;
	if (!wlb_series_ends(series, comparison->count, &begin, &end))
		return;
	format_count(begin, 3, first, sizeof(first));
	format_count(end, 3, last, sizeof(last));
	struct wlb_axis axis = {comparison->by_tokens ? "tokens" : "step", first, last};
	fputs("\nLoss\n", out);
	wlb_plot_series(out, series, comparison->count, &axis, columns - PLOT_MARGIN, PLOT_ROWS, has_colours);
}

int wlb_comparison_print(const struct wlb_comparison *comparison, const json_t *report, int columns, FILE *out)
{
	const json_t *runs = json_object_get(report, "runs");
	char names[WLB_COMPARED_MAX][80];
	const char *titles[WLB_COMPARED_MAX];
	bool has_colours = wlb_colour_shown();
	struct wlb_sides sides = {.count = comparison->count, .titles = titles};
	for (int i = 0; i < comparison->count; i++) {
		const json_t *run = json_array_get(runs, (size_t)i);
		snprintf(names[i], sizeof(names[i]), "%s %s", wlb_field_text(run, "mark", "?"),
		         wlb_field_text(run, "run_id", "?"));
		titles[i] = names[i];
	}
	print_legend(runs, has_colours, columns, out);
	print_chart(comparison, columns, has_colours, out);
	fputc('\n', out);
	int rc = print_measures(sides, report, columns, out);
	return rc != 0 ? rc : print_differences(sides, report, columns, out);
}
