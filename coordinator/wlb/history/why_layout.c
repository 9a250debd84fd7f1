#include "coordinator/wlb/history/why_layout.h"

#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "common/output/table.h"
#include "coordinator/wlb/calibration.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { ATTEMPTS_SHOWN = 4 };
static const double ERROR_MAX = 0.2;   /* of a prediction; above it the user is asked to calibrate */
static const double DIFFERENCE = 0.05; /* of a speed; below it speeds are called equal */

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void format_seconds(double seconds, char *text, size_t size)
{
	snprintf(text, size, seconds > 0.0 ? "%.4f s" : "-", seconds);
}

static void add_plan(struct wlb_table *table, const char *what, const json_t *plan)
{
	char layout[64], interleave[32], windows[32], step[32], memory[32], missing[32], recompute[64], note[64];
	int head_on_all = strcmp(wlb_field_text(plan, "head_stages", ""), "all") == 0;
	long long layers = (long long)json_integer_value(json_object_get(plan, "recompute_layers"));
	wlb_field_layout(plan, layout, sizeof(layout));
	wlb_field_number(plan, "interleave", interleave, sizeof(interleave));
	wlb_field_number(plan, "micro_batch_size", windows, sizeof(windows));
	format_seconds(number(plan, "step_s"), step, sizeof(step));
	wlb_bytes_text(number(plan, "memory_bytes"), memory, sizeof(memory));
	wlb_bytes_text(number(plan, "missing_bytes"), missing, sizeof(missing));
	int lacks = number(plan, "missing_bytes") > 0.0;
	snprintf(note, sizeof(note), "%s%s%s%s", lacks ? missing : "", lacks ? " too much" : "",
	         lacks && head_on_all ? ", " : "", head_on_all ? "head on all stages" : "");
	snprintf(recompute, sizeof(recompute), layers > 0 ? "%s of %lld" : "%s", wlb_field_text(plan, "recompute", "-"),
	         layers);
	wlb_table_add(table, (const char *const[]){what, layout, interleave, windows, recompute, step, memory, note});
}

static int print_plans(const json_t *plan)
{
	static const char *const titles[] = {"",          "LAYOUT", "INTERLEAVE", "MICRO-BATCH",
	                                     "RECOMPUTE", "STEP",   "MEMORY",     ""};
	struct wlb_table table = {.columns = 8, .right = "llrrlrrl", .shrink = "-------n", .leave = "--543-2-"};
	const json_t *next = json_object_get(plan, "next"), *misfits = json_object_get(plan, "misfits"),
		     *before = json_object_get(plan, "before");
	int listed = 0;
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	add_plan(&table, "chosen", plan);
	for (size_t i = 0; i < json_array_size(next); i++) {
		const json_t *other = json_array_get(next, i);
		int is_before = json_equal(json_object_get(other, "layout"), json_object_get(before, "layout"));
		listed |= is_before;
		add_plan(&table, is_before ? "before" : "next", other);
	}
	if (!listed && number(before, "step_s") > 0.0)
		add_plan(&table, "before", before);
	for (size_t i = 0; i < json_array_size(misfits); i++)
		add_plan(&table, "does not fit", json_array_get(misfits, i));
	int rc = wlb_table_print(&table, "    ", stdout);
	wlb_table_name_left_out(&table, titles, "--json has them", 4, stdout);
	return rc;
}

/* Returns the difference of prediction and measurement relative to the measurement; 0 where one is missing. */
static double relative_error(double predicted, double measured)
{
	return predicted > 0.0 && measured > 0.0 ? (predicted - measured) / measured : 0.0;
}

/* Asks for a calibration with as many ranks on a node as the attempt has: on CPUs another number does not count. */
static void print_calibrate(const json_t *attempt, const json_t *plan)
{
	static const char *const degrees[] = {"tp", "cp", "pp", "dp"};
	const json_t *layout = json_object_get(plan, "layout");
	double nodes = (double)json_array_size(json_object_get(attempt, "nodes")), ranks = 1.0;
	char on_node[32] = "N";
	for (size_t i = 0; i < sizeof(degrees) / sizeof(degrees[0]); i++)
		ranks *= number(layout, degrees[i]);
	if (ranks > 0.0 && nodes > 0.0)
		snprintf(on_node, sizeof(on_node), "%.0f", (ranks + number(plan, "idle_ranks")) / nodes);
	printf("    the prediction is off by more than 20 %%: run `srun --mpi=pmix --ntasks-per-node=%s wlb calibrate` "
	       "in a job on these nodes; runs after it are planned with what it measures\n",
	       on_node);
}

static void print_measured(const json_t *attempt, const json_t *plan)
{
	char predicted[32], measured[32];
	double step_s = number(plan, "step_s"), took_s = number(attempt, "step_s");
	/* The margin is for what no rank allocates itself. */
	double bytes = number(plan, "memory_bytes") - number(plan, "memory_margin_bytes");
	double used = number(attempt, "memory_bytes");
	double step_error = relative_error(step_s, took_s), memory_error = relative_error(bytes, used),
	       mfu = number(plan, "utilization");
	format_seconds(step_s, predicted, sizeof(predicted));
	format_seconds(took_s, measured, sizeof(measured));
	printf("    a step:  %s predicted, %s measured", predicted, measured);
	if (took_s > 0.0)
		printf(" (%+.0f %%); MFU %.3g predicted, %.3g measured", 100.0 * step_error, mfu,
		       mfu * step_s / took_s);
	wlb_bytes_text(bytes, predicted, sizeof(predicted));
	wlb_bytes_text(used, measured, sizeof(measured));
	printf("\n    memory:  %s predicted, %s measured", predicted, measured);
	if (used > 0.0)
		printf(" (%+.0f %%)", 100.0 * memory_error);
	puts("");
	if (fabs(step_error) > ERROR_MAX || fabs(memory_error) > ERROR_MAX)
		print_calibrate(attempt, plan);
}

/* Prints the parts of a calibration that differ from the one before it. */
static void print_differences(const json_t *calibration)
{
	static const struct {
		const char *key, *name;
	} parts[] = {{"matrix_products", "matrix products"},
	             {"attention", "attention"},
	             {"memory", "memory"},
	             {"node_link", "links in a node"},
	             {"network_link", "links between nodes"},
	             {"switch_link", "links between switches"}};
	const json_t *times = json_object_get(calibration, "times_as_fast");
	const char *with = wlb_field_text(calibration, "compared_with", "");
	int printed = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const json_t *range = json_object_get(times, parts[i].key);
		double least = json_number_value(json_array_get(range, 0)),
		       most = json_number_value(json_array_get(range, 1));
		if (json_array_size(range) != 2 || (least > 1.0 - DIFFERENCE && most < 1.0 + DIFFERENCE))
			continue;
		if (printed++ == 0)
			printf("      times as fast as %s:", with);
		printf("%s %s %.3g", printed > 1 ? "," : "", parts[i].name, least);
		if (most > least * (1.0 + DIFFERENCE))
			printf(" to %.3g", most);
	}
	if (printed > 0)
		puts("");
	else if (json_is_object(times))
		printf("      within %.0f %% as fast as %s\n", 100.0 * DIFFERENCE, with);
}

static void print_calibration(const json_t *calibration)
{
	char when[32], job[32] = "";
	uid_t uid = (uid_t)json_integer_value(json_object_get(calibration, "uid"));
	const struct passwd *user = getpwuid(uid);
	const json_t *job_id = json_object_get(calibration, "job_id");
	wlb_time_format((time_t)number(calibration, "at"), when, sizeof(when));
	if (json_is_integer(job_id))
		snprintf(job, sizeof(job), " in job %lld", (long long)json_integer_value(job_id));
	long long types = (long long)json_integer_value(json_object_get(calibration, "types"));
	char slowest[64] = "";
	if (types > 1)
		snprintf(slowest, sizeof(slowest), ", the slowest of %lld types", types);
	long long users = (long long)json_integer_value(json_object_get(calibration, "users"));
	char median[96] = "";
	if (users > 0)
		snprintf(median, sizeof(median),
		         ": the median of %lld users' calibrations, to which this is the nearest", users);
	printf("    calibration %lld, measured by %s%s, %s, of nodes of type '%s'%s, used as %s%s\n",
	       (long long)json_integer_value(json_object_get(calibration, "id")),
	       user != NULL ? user->pw_name : "a user whom this host does not know", job, when,
	       wlb_field_text(calibration, "node_type", "?"), slowest, wlb_field_text(calibration, "source", "?"),
	       median);
	print_differences(calibration);
	char names[WLB_OUTVOTED_NAMES_SIZE];
	if (wlb_calibration_outvoted(calibration, names, sizeof(names)) > 0)
		printf("      of other users' calibrations, since it differs from theirs: %s\n", names);
}

/* Prints what the machine is and who named it. */
static void print_machine(const json_t *plan)
{
	char memory[32];
	const char *from = wlb_field_text(plan, "machine_from", NULL);
	const json_t *calibration = json_object_get(plan, "calibration");
	wlb_bytes_text(number(plan, "memory_limit_bytes"), memory, sizeof(memory));
	printf("    machine %s", wlb_field_text(plan, "machine", "?"));
	if (from != NULL && !json_is_object(calibration))
		printf(" (from %s)", from);
	printf(", %s of memory for a rank\n", memory);
	if (json_is_object(calibration))
		print_calibration(calibration);
}

static void print_before(const json_t *before)
{
	char layout[64];
	const char *reason = wlb_field_text(before, "reason", NULL);
	wlb_field_layout(before, layout, sizeof(layout));
	if (reason != NULL)
		printf("    before: %s: %s\n", layout, reason);
}

/* Prints the switches of the nodes, in the order in which ranks fill the nodes. */
static int print_placement(const json_t *list)
{
	struct wlb_table table = {.columns = 3, .right = "lll", .shrink = "-c-"};
	if (json_array_size(list) == 0)
		return 0;
	wlb_table_fit_terminal(&table);
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

/* Prints which ranks of the attempt's nodes no layout uses. */
static void print_idle(const json_t *plan)
{
	const json_t *list = json_object_get(plan, "idle_local_ranks");
	long long idle = (long long)json_integer_value(json_object_get(plan, "idle_ranks"));
	if (idle < 1)
		return;
	printf("    idle: %lld rank%s%s%s", idle, idle == 1 ? "" : "s",
	       wlb_field_text(plan, "idle", NULL) != NULL ? ", all of " : "", wlb_field_text(plan, "idle", ""));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *at = json_array_get(list, i);
		long long first = (long long)json_integer_value(json_object_get(at, "first")),
			  last = (long long)json_integer_value(json_object_get(at, "last"));
		const char *nodes = wlb_field_text(at, "nodes", "?");
		if (last > first)
			printf(", local ranks %lld-%lld of %s", first, last, nodes);
		else
			printf(", local rank %lld of %s", first, nodes);
	}
	puts("");
}

static int print_attempt(const json_t *attempt, const json_t *plan)
{
	printf("  attempt %lld: %s\n", (long long)json_integer_value(json_object_get(attempt, "attempt")),
	       wlb_field_text(plan, "reason", "nothing was planned"));
	if (json_object_get(plan, "machine") == NULL)
		return print_placement(json_object_get(plan, "placement"));
	print_machine(plan);
	print_idle(plan);
	int rc = print_plans(plan);
	if (rc == 0)
		rc = print_placement(json_object_get(plan, "placement"));
	print_before(json_object_get(plan, "before"));
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
