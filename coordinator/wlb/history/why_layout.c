#include "coordinator/wlb/history/why_layout.h"

#include <math.h>
#include <stdio.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/table.h"

enum { ATTEMPTS_SHOWN = 4 };
static const double ERROR_MOST = 0.2; /* of a prediction; above it the user is asked to calibrate */

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* "1.25 GB", "12.0 MB"; "-" for 0. */
static void format_bytes(double bytes, char *text, size_t size)
{
	if (bytes <= 0.0)
		snprintf(text, size, "-");
	else if (bytes >= 1e9)
		snprintf(text, size, "%.2f GB", bytes / 1e9);
	else
		snprintf(text, size, "%.1f MB", bytes / 1e6);
}

static void format_seconds(double seconds, char *text, size_t size)
{
	snprintf(text, size, seconds > 0.0 ? "%.4f s" : "-", seconds);
}

static void add_plan(struct wlb_table *table, const char *what, const json_t *plan)
{
	char layout[64], interleave[32], windows[32], step[32], memory[32], missing[32], note[64] = "";
	wlb_field_layout(plan, layout, sizeof(layout));
	wlb_field_number(plan, "interleave", interleave, sizeof(interleave));
	wlb_field_number(plan, "micro_batch_size", windows, sizeof(windows));
	format_seconds(number(plan, "step_s"), step, sizeof(step));
	format_bytes(number(plan, "memory_bytes"), memory, sizeof(memory));
	if (number(plan, "missing_bytes") > 0.0) {
		format_bytes(number(plan, "missing_bytes"), missing, sizeof(missing));
		snprintf(note, sizeof(note), "%s too much", missing);
	}
	wlb_table_add(table, (const char *const[]){what, layout, interleave, windows,
	                                           wlb_field_text(plan, "recompute", "-"), step, memory, note});
}

static int print_plans(const json_t *plan)
{
	static const char *const titles[] = {"",          "LAYOUT", "INTERLEAVE", "MICRO-BATCH",
	                                     "RECOMPUTE", "STEP",   "MEMORY",     ""};
	struct wlb_table table = {.columns = 8, .right = "llrrlrrl"};
	const json_t *next = json_object_get(plan, "next"), *misfits = json_object_get(plan, "misfits");
	wlb_table_add(&table, titles);
	add_plan(&table, "chosen", plan);
	for (size_t i = 0; i < json_array_size(next); i++)
		add_plan(&table, "next", json_array_get(next, i));
	for (size_t i = 0; i < json_array_size(misfits); i++)
		add_plan(&table, "does not fit", json_array_get(misfits, i));
	return wlb_table_print(&table, "    ", stdout);
}

/* Returns the difference of prediction and measurement relative to the measurement; 0 where one is missing. */
static double relative_error(double predicted, double measured)
{
	return predicted > 0.0 && measured > 0.0 ? (predicted - measured) / measured : 0.0;
}

static void print_measured(const json_t *attempt, const json_t *plan)
{
	char predicted[32], measured[32];
	double step_s = number(plan, "step_s"), took_s = number(attempt, "step_s");
	double bytes = number(plan, "memory_bytes"), used = number(attempt, "memory_bytes");
	double step_error = relative_error(step_s, took_s), memory_error = relative_error(bytes, used),
	       mfu = number(plan, "utilization");
	format_seconds(step_s, predicted, sizeof(predicted));
	format_seconds(took_s, measured, sizeof(measured));
	printf("    a step:  %s predicted, %s measured", predicted, measured);
	if (took_s > 0.0)
		printf(" (%+.0f %%); MFU %.3g predicted, %.3g measured", 100.0 * step_error, mfu,
		       mfu * step_s / took_s);
	format_bytes(bytes, predicted, sizeof(predicted));
	format_bytes(used, measured, sizeof(measured));
	printf("\n    memory:  %s predicted, %s measured", predicted, measured);
	if (used > 0.0)
		printf(" (%+.0f %%)", 100.0 * memory_error);
	puts("");
	if (fabs(step_error) > ERROR_MOST || fabs(memory_error) > ERROR_MOST)
		puts("    the prediction is off by more than 20 %: run `wlb calibrate` on these nodes, and name its "
		     "file by "
		     "WLB_MACHINE");
}

/* Prints the switches of the nodes, in the order in which ranks fill the nodes. */
static int print_placement(const json_t *list)
{
	struct wlb_table table = {.columns = 3, .right = "lll"};
	if (json_array_size(list) == 0)
		return 0;
	wlb_table_add(&table, (const char *const[]){"SWITCH", "NODES", "RANKS"});
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *at = json_array_get(list, i);
		const char *name = wlb_field_text(at, "switch", "");
		long long first = json_integer_value(json_object_get(at, "first_rank"));
		char ranks[48];
		snprintf(ranks, sizeof(ranks), "%lld-%lld", first,
		         first + (long long)json_integer_value(json_object_get(at, "ranks")) - 1);
		wlb_table_add(&table, (const char *const[]){name[0] != '\0' ? name : "(none)",
		                                            wlb_field_text(at, "nodes", "?"), ranks});
	}
	return wlb_table_print(&table, "    ", stdout);
}

static int print_attempt(const json_t *attempt, const json_t *plan)
{
	char memory[32];
	format_bytes(number(plan, "memory_limit_bytes"), memory, sizeof(memory));
	printf("  attempt %lld: %s\n", (long long)json_integer_value(json_object_get(attempt, "attempt")),
	       wlb_field_text(plan, "reason", "nothing was planned"));
	if (json_object_get(plan, "machine") == NULL)
		return print_placement(json_object_get(plan, "placement"));
	printf("    machine %s, %s of memory for a rank\n", wlb_field_text(plan, "machine", "?"), memory);
	if (json_integer_value(json_object_get(plan, "idle_ranks")) > 0)
		printf("    idle: %lld ranks%s%s\n", (long long)json_integer_value(json_object_get(plan, "idle_ranks")),
		       wlb_field_text(plan, "idle", NULL) != NULL ? ", all of " : "", wlb_field_text(plan, "idle", ""));
	int rc = print_plans(plan);
	if (rc == 0)
		rc = print_placement(json_object_get(plan, "placement"));
	print_measured(attempt, plan);
	return rc;
}

int wlb_show_why_layout(const json_t *run)
{
	const json_t *list = json_object_get(run, "attempts");
	size_t count = json_array_size(list), first = count > ATTEMPTS_SHOWN ? count - ATTEMPTS_SHOWN : 0;
	int shown = 0, rc = 0;
	for (size_t i = first; rc == 0 && i < count; i++) {
		const json_t *attempt = json_array_get(list, i), *plan = json_object_get(attempt, "plan");
		if (!json_is_object(plan))
			continue;
		if (shown++ == 0)
			puts("\nWhy this layout");
		rc = print_attempt(attempt, plan);
	}
	return rc;
}
