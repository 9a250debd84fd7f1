#include "coordinator/wlb/history/said_values.h"

#include <stdio.h>
#include <string.h>

#include "common/output/table.h"
#include "coordinator/wlb/output/reply_fields.h"

enum { SHOWN = 24 };

static void add_value(struct wlb_table *table, const json_t *entry)
{
	static const char *const sources[][2] = {
		{"log", "wlb.log"}, {"tensorboard", "TensorBoard"}, {"stdout", "output"}, {"hook", "hook"}};
	const char *source = wlb_field_text(entry, "source", "-");
	const json_t *json = json_object_get(entry, "value");
	char number[32], step[64], value[32], attempt[32];
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(source, sources[i][0]) == 0)
			source = sources[i][1];
	wlb_field_number(entry, "step", number, sizeof(number));
	wlb_field_number(entry, "attempt", attempt, sizeof(attempt));
	snprintf(step, sizeof(step), "%s%s", number,
	         json_is_true(json_object_get(entry, "is_of_attempt")) ? " of the attempt" : "");
	if (json_is_string(json))
		snprintf(value, sizeof(value), "%s", json_string_value(json));
	else
		snprintf(value, sizeof(value), "%.6g", json_number_value(json));
	wlb_table_add(table, (const char *const[]){wlb_field_text(entry, "name", "-"), value, step, attempt, source});
}

static int print_values(const json_t *values)
{
	static const char *const titles[] = {"NAME", "NEWEST", "STEP", "ATTEMPT", "FROM"};
	struct wlb_table table = {.columns = 5, .right = "lrrrl", .shrink = "c----", .leave = "--132"};
	size_t count = json_array_size(values);
	if (count == 0)
		return 0;
	puts("\nValues");
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	for (size_t i = 0; i < count && i < SHOWN; i++)
		add_value(&table, json_array_get(values, i));
	int rc = wlb_table_print(&table, "  ", stdout);
	wlb_table_name_left_out(&table, titles, "--json has them", 2, stdout);
	if (rc == 0 && count > SHOWN)
		printf("  %zu more names: --json\n", count - SHOWN);
	return rc;
}

int wlb_show_said_values(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts"), *attempt;
	size_t i;
	json_array_foreach(attempts, i, attempt)
	{
		char number[32], steps[32];
		wlb_field_number(attempt, "attempt", number, sizeof(number));
		wlb_field_number(attempt, "step_of_attempt", steps, sizeof(steps));
		if (strcmp(steps, "-") != 0)
			printf("%s  attempt %s: %s steps, counted from its start, since the program does not say their "
			       "numbers\n",
			       i == 0 ? "\n" : "", number, steps);
	}
	return print_values(json_object_get(run, "values"));
}
