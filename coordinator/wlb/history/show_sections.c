#include "coordinator/wlb/history/show_sections.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/output/colour.h"
#include "common/output/plot.h"
#include "common/output/table.h"
#include "common/output/terminal.h"
#include "coordinator/wlb/history/fault_table.h"
#include "coordinator/wlb/history/fold_faults.h"
#include "coordinator/wlb/history/print_steps.h"
#include "coordinator/wlb/output/error_text.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum {
	SECTION_INDENT = 2,
	PLOT_ROWS = 6,
	PLOT_MARGIN = 12,
	EVENTS_SHOWN = 20,
	VERDICTS_SHOWN = 20,
	CHECKPOINTS_SHOWN = 5,
	EVALUATIONS_SHOWN = 5
};

/* ---- summary -------------------------------------------------------------------------------------------------- */

static void print_times(const json_t *run)
{
	char started[32], ended[32], elapsed[32];
	time_t begin = wlb_time_parse(wlb_field_text(run, "started_at", NULL));
	time_t end = wlb_time_parse(wlb_field_text(run, "ended_at", NULL));
	if (begin == (time_t)-1)
		return;
	wlb_time_format(begin, started, sizeof(started));
	wlb_time_format(end, ended, sizeof(ended));
	wlb_duration_format((long)((end == (time_t)-1 ? time(NULL) : end) - begin), elapsed, sizeof(elapsed));
	if (end == (time_t)-1)
		printf("  started %s, running for %s\n", started, elapsed);
	else
		printf("  started %s, ended %s, took %s\n", started, ended, elapsed);
}

static void print_training(const json_t *run)
{
	char first[32], last[32], all[32], repeated[32], tokens[32], first_loss[32], last_loss[32];
	double parameters = json_number_value(json_object_get(json_object_get(run, "model"), "parameters"));
	if (parameters > 0) {
		char sequence[32], batch[32];
		wlb_field_number(run, "seq_length", sequence, sizeof(sequence));
		wlb_field_number(run, "global_batch_size", batch, sizeof(batch));
		printf("  model of %.2f M parameters, sequence length %s, global batch %s\n", parameters / 1e6,
		       sequence, batch);
	}
	wlb_field_number(run, "first_step", first, sizeof(first));
	wlb_field_number(run, "last_step", last, sizeof(last));
	if (strcmp(last, "-") == 0)
		return;
	wlb_field_number(run, "train_iters", all, sizeof(all));
	wlb_field_number(run, "steps_repeated", repeated, sizeof(repeated));
	wlb_field_number(run, "tokens", tokens, sizeof(tokens));
	if (json_integer_value(json_object_get(run, "tokens")) == 0) /* no step has said how many */
		snprintf(tokens, sizeof(tokens), "-");
	wlb_field_real(run, "first_loss", 4, first_loss, sizeof(first_loss));
	wlb_field_real(run, "last_loss", 4, last_loss, sizeof(last_loss));
	printf("  steps %s to %s of %s (%s repeated), loss %s to %s, %s tokens\n", first, last, all, repeated,
	       first_loss, last_loss, tokens);
}

/* The speed of the run, and what else is known of its newest attempt. */
static void print_speed(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	const json_t *newest = json_array_get(attempts, json_array_size(attempts) - 1);
	const json_t *mfu = json_object_get(newest, "mfu");
	char rate[32], share[48] = "", memory[32], most[80] = "";
	wlb_field_real(run, "tokens_per_s", 0, rate, sizeof(rate));
	if (json_is_number(mfu))
		snprintf(share, sizeof(share), "MFU %.1f %%", 100 * json_number_value(mfu));
	wlb_field_bytes(newest, "memory_bytes", memory, sizeof(memory));
	if (strcmp(memory, "-") != 0)
		snprintf(most, sizeof(most), "at most %s allocated by a rank", memory);
	if (strcmp(rate, "-") != 0)
		printf("  %s tokens/s\n", rate);
	if (*share != '\0' || *most != '\0')
		printf("  newest attempt: %s%s%s\n", share, *share != '\0' && *most != '\0' ? ", " : "", most);
}

/* A run keeps only the newest of records whose number is bounded. */
static void print_dropped(const json_t *run)
{
	static const char *const lists[] = {"events", "faults", "checkpoints", "evidence", "verdicts", "values"};
	const json_t *dropped = json_object_get(run, "dropped");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		json_int_t count = json_integer_value(json_object_get(dropped, lists[i]));
		if (count > 0)
			printf("  not kept, since the run has too many: %lld of its oldest %s\n", (long long)count,
			       lists[i]);
	}
}

/* Rank 0 spools its records in a directory that the coordinator does not know. */
static void print_missing(const json_t *run)
{
	const json_t *missing = json_object_get(run, "steps_missing"), *entry;
	size_t i;
	json_array_foreach(missing, i, entry)
	{
		char attempt[32], first[32], last[32];
		wlb_field_number(entry, "attempt", attempt, sizeof(attempt));
		wlb_field_number(entry, "first_step", first, sizeof(first));
		wlb_field_number(entry, "last_step", last, sizeof(last));
		printf("  steps %s to %s of attempt %s are not recorded: its rank 0 on %s had not delivered them. What "
		       "it "
		       "left in the job's spool directory, .wlb, is delivered by 'wlb flush' of the job's epilog "
		       "there, or "
		       "by the user's next wlb command\n",
		       first, last, attempt, wlb_field_text(entry, "node", "an unknown node"));
	}
}

/* Of the newest attempt that is known to have run a command. The coordinator tells it the run's owner, SlurmUser and
 * root. */
static void print_output(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts"), *output = NULL;
	for (size_t i = json_array_size(attempts); i > 0 && !json_is_object(output); i--)
		output = json_object_get(json_array_get(attempts, i - 1), "output");
	const char *out = wlb_field_text(output, "stdout", ""), *error = wlb_field_text(output, "stderr", "");
	if (!json_is_object(output))
		return;
	printf("  command: %s\n", wlb_field_text(output, "command", "-"));
	if (*out != '\0' || *error != '\0')
		printf("  output: %s%s%s\n", *out != '\0' ? out : "no file",
		       strcmp(out, error) != 0 ? ", errors: " : "",
		       strcmp(out, error) == 0 ? ""
		       : *error != '\0'        ? error
		                               : "no file");
}

int wlb_show_summary(const json_t *run)
{
	char name[80], nodes[512], layout[64];
	const char *reason = wlb_field_text(run, "reason", "");
	const char *on_fault = wlb_field_text(run, "on_fault", NULL), *account = wlb_field_text(run, "account", NULL);
	wlb_field_nodes(run, nodes, sizeof(nodes));
	wlb_field_layout(run, layout, sizeof(layout));
	wlb_field_run(run, name, sizeof(name));
	printf("Run %s: ", name);
	wlb_colour_print_state(wlb_field_text(run, "state", "?"), wlb_colour_shown(), stdout);
	printf("%s%s\n", *reason ? ": " : "", reason);
	printf("  job '%s' of %s%s%s, layout asked for: %s\n", wlb_field_text(run, "job_name", ""),
	       wlb_field_text(run, "user", "?"), account != NULL ? ", account " : "", account != NULL ? account : "",
	       wlb_field_text(json_object_get(run, "policy"), "layout", "-"));
	print_times(run);
	printf("  on %s, layout %s\n", nodes, layout);
	print_training(run);
	print_speed(run);
	if (on_fault != NULL)
		printf("  on fault: %s\n", on_fault);
	print_output(run);
	print_missing(run);
	print_dropped(run);
	return 0;
}

/* ---- tables: attempts, faults, checkpoints, events, steps ------------------------------------------------------ */

struct section {
	const char *heading;
	int columns;
	const char *right, *shrink, *leave; /* as in struct wlb_table */
	const char *const *titles;          /* of the columns; NULL: no line of titles */
	size_t most;                        /* the number of entries that are printed, the last ones; 0: all */
	void (*add)(struct wlb_table *table, const json_t *entry, bool has_days);
};

/* What a section prints. */
struct listing {
	const json_t *entries;
	size_t omitted; /* older ones that are stored, and not in the reply */
	bool has_days;  /* times have the day: the run is of more than one */
};

static bool is_of_several_days(const json_t *run)
{
	const json_t *first = json_array_get(json_object_get(run, "attempts"), 0);
	time_t begin = wlb_time_parse(wlb_field_text(run, "started_at", wlb_field_text(first, "created_at", NULL)));
	time_t end = wlb_time_parse(wlb_field_text(run, "ended_at", NULL));
	return begin != (time_t)-1 && !wlb_time_same_day(begin, end != (time_t)-1 ? end : time(NULL));
}

static size_t omitted_of(const json_t *run, const char *name)
{
	json_int_t count = json_integer_value(json_object_get(json_object_get(run, "left_out"), name));
	return count > 0 ? (size_t)count : 0;
}

static struct listing listing_of(const json_t *run, const char *name)
{
	return (struct listing){.entries = json_object_get(run, name),
	                        .omitted = omitted_of(run, name),
	                        .has_days = is_of_several_days(run)};
}

/* Prints nothing for an empty list. */
static int print_section(const struct section *section, struct listing listing)
{
	struct wlb_table table = {.columns = section->columns,
	                          .right = section->right,
	                          .shrink = section->shrink,
	                          .leave = section->leave,
	                          .is_untitled = section->titles == NULL};
	size_t count = json_array_size(listing.entries), most = section->most;
	size_t first = most > 0 && count > most ? count - most : 0, older = first + listing.omitted;
	if (count == 0)
		return 0;
	wlb_table_fit_terminal(&table);
	if (section->titles != NULL)
		wlb_table_add(&table, section->titles);
	for (size_t i = first; i < count; i++)
		section->add(&table, json_array_get(listing.entries, i), listing.has_days);
	printf(most > 0 && older > 0 ? "\n%s (the last %zu of %zu)\n" : "\n%s\n", section->heading, count - first,
	       count + listing.omitted);
	int rc = wlb_table_print(&table, "  ", stdout);
	if (rc == 0)
		wlb_table_name_left_out(&table, section->titles, "--json has them", SECTION_INDENT, stdout);
	if (rc == 0 && most == 0 && older > 0)
		printf("  %zu older ones are not listed\n", older);
	return rc;
}

static void add_attempt(struct wlb_table *table, const json_t *attempt, bool has_days)
{
	char number[32], nodes[256], layout[64], first[32], last[32], steps[80], resumed[32], started[32], elapsed[32],
		code[32], error[1024];
	/* Only wlb-worker reports when it started; for any other command this is the time of the request. */
	time_t begin =
		wlb_time_parse(wlb_field_text(attempt, "started_at", wlb_field_text(attempt, "created_at", NULL)));
	time_t end = wlb_time_parse(wlb_field_text(attempt, "ended_at", NULL));
	wlb_field_number(attempt, "attempt", number, sizeof(number));
	wlb_field_nodes(attempt, nodes, sizeof(nodes));
	wlb_field_layout(attempt, layout, sizeof(layout));
	wlb_field_number(attempt, "first_step", first, sizeof(first));
	wlb_field_number(attempt, "last_step", last, sizeof(last));
	snprintf(steps, sizeof(steps), strcmp(first, "-") ? "%s-%s" : "-", first, last);
	wlb_field_number(attempt, "resumed_step", resumed, sizeof(resumed));
	wlb_field_number(attempt, "exit_code", code, sizeof(code));
	wlb_time_short(begin, has_days, started, sizeof(started));
	wlb_duration_format(begin != (time_t)-1 && end != (time_t)-1 ? (long)(end - begin) : -1, elapsed,
	                    sizeof(elapsed));
	wlb_table_add(table,
	              (const char *const[]){number, wlb_field_text(attempt, "state", "-"), nodes, layout, resumed,
	                                    steps, started, elapsed, code, wlb_field_text(attempt, "reason", "")});
	wlb_error_text(json_object_get(attempt, "error"), error, sizeof(error));
	if (error[0] != '\0')
		wlb_table_note(table, error);
}

int wlb_show_attempts(const json_t *run)
{
	static const char *const titles[] = {"ATTEMPT", "STATE",   "NODES",   "LAYOUT", "FROM STEP",
	                                     "STEPS",   "STARTED", "ELAPSED", "EXIT",   "REASON"};
	static const struct section attempts = {"Attempts", 10, "rsllrrrrrl", "--c------n", "--674-532-",
	                                        titles,     0,  add_attempt};
	return print_section(&attempts, listing_of(run, "attempts"));
}

static void add_fault(struct wlb_table *table, const json_t *fault, bool has_days)
{
	char when[32], attempt[32], rank[32], step[32];
	wlb_time_short(wlb_time_parse(wlb_field_text(fault, "time", NULL)), has_days, when, sizeof(when));
	wlb_field_number(fault, "attempt", attempt, sizeof(attempt));
	wlb_field_number(fault, "rank", rank, sizeof(rank));
	wlb_field_number(fault, "step", step, sizeof(step));
	wlb_table_add(table,
	              (const char *const[]){when, attempt, wlb_field_text(fault, "kind", "-"),
	                                    wlb_field_text(fault, "node", "-"), rank, step,
	                                    json_is_true(json_object_get(fault, "cause")) ? "cause" : "consequence",
	                                    wlb_field_text(fault, "detail", "")});
}

int wlb_show_faults(const json_t *run)
{
	static const char *const titles[] = {"TIME", "ATTEMPT", "FAULT", "NODE", "RANK", "STEP", "ROLE", "DETAIL"};
	static const struct section faults = {"Faults", 8, "lrllrrsl", "-------n", "34--152-", titles, 0, add_fault};
	struct listing listing = listing_of(run, "faults");
	json_t *folded = wlb_faults_fold(listing.entries);
	if (folded == NULL)
		return -1;
	listing.entries = folded;
	int rc = print_section(&faults, listing);
	json_decref(folded);
	return rc;
}

int wlb_show_verdicts(const json_t *run)
{
	const json_t *verdicts = json_object_get(run, "verdicts");
	size_t count = json_array_size(verdicts);
	size_t first = count > VERDICTS_SHOWN ? count - VERDICTS_SHOWN : 0;
	size_t older = first + omitted_of(run, "verdicts");
	enum wlb_fault_rows rows = is_of_several_days(run) ? WLB_FAULT_ROWS_OF_DAYS : WLB_FAULT_ROWS_OF_DAY;
	if (count == 0)
		return 0;
	puts("\nVerdicts");
	if (wlb_fault_table_print(verdicts, first, rows, wlb_terminal_columns(), stdout) != 0)
		return -1;
	if (older > 0)
		printf("  %zu more: wlb faults %s\n", older, wlb_field_text(run, "run_id", "RUN"));
	return 0;
}

/* Writes the seconds of a field, "-" where there are none. */
static void format_seconds(const json_t *object, const char *field, char text[32])
{
	const json_t *value = json_object_get(object, field);
	double seconds = json_number_value(value);
	if (!json_is_number(value))
		snprintf(text, 32, "-");
	else if (seconds < 0.1)
		snprintf(text, 32, "%.1f ms", 1e3 * seconds);
	else
		snprintf(text, 32, seconds < 10.0 ? "%.2f s" : "%.0f s", seconds);
}

/* Of a save that the hook alone has seen nobody has said that a run can go on from it. */
static void add_checkpoint(struct wlb_table *table, const json_t *checkpoint, bool has_days)
{
	char when[32], attempt[32], step[32], size[32], took[32], stall[32], path[PATH_MAX + 32];
	const json_t *bytes = json_object_get(checkpoint, "bytes");
	wlb_time_short(wlb_time_parse(wlb_field_text(checkpoint, "time", NULL)), has_days, when, sizeof(when));
	wlb_field_number(checkpoint, "attempt", attempt, sizeof(attempt));
	wlb_field_number(checkpoint, "step", step, sizeof(step));
	snprintf(size, sizeof(size), json_is_number(bytes) ? "%.1f MB" : "-", json_number_value(bytes) / 1e6);
	format_seconds(checkpoint, "duration_s", took);
	format_seconds(checkpoint, "stall_s", stall);
	snprintf(path, sizeof(path), "%s%s", wlb_field_text(checkpoint, "path", "-"),
	         json_is_true(json_object_get(checkpoint, "is_seen")) ? " (seen by the hook)" : "");
	wlb_table_add(table, (const char *const[]){when, attempt, step, size, took, stall, path});
}

int wlb_show_checkpoints(const json_t *run)
{
	static const char *const titles[] = {"TIME", "ATTEMPT", "STEP", "SIZE", "DURABLE IN", "STALL", "PATH"};
	static const struct section checkpoints = {"Checkpoints", 7,      "lrrrrrl",         "------n",
	                                           "15-234-",     titles, CHECKPOINTS_SHOWN, add_checkpoint};
	return print_section(&checkpoints, listing_of(run, "checkpoints"));
}

static void add_evaluation(struct wlb_table *table, const json_t *evaluation, bool has_days)
{
	char when[32], attempt[32], step[32], loss[32], tokens[32], took[32];
	wlb_time_short(wlb_time_parse(wlb_field_text(evaluation, "time", NULL)), has_days, when, sizeof(when));
	wlb_field_number(evaluation, "attempt", attempt, sizeof(attempt));
	wlb_field_number(evaluation, "step", step, sizeof(step));
	wlb_field_real(evaluation, "loss", 6, loss, sizeof(loss));
	wlb_field_number(evaluation, "tokens", tokens, sizeof(tokens));
	format_seconds(evaluation, "duration_s", took);
	wlb_table_add(table, (const char *const[]){when, attempt, step, loss, tokens, took});
}

int wlb_show_evaluations(const json_t *run)
{
	static const char *const titles[] = {"TIME", "ATTEMPT", "STEP", "LOSS", "TOKENS", "TOOK"};
	static const struct section evaluations = {"Evaluations", 6,      "lrrrrr",          NULL,
	                                           "15--34",      titles, EVALUATIONS_SHOWN, add_evaluation};
	return print_section(&evaluations, listing_of(run, "evaluations"));
}

static void add_event(struct wlb_table *table, const json_t *event, bool has_days)
{
	char when[32];
	wlb_time_short(wlb_time_parse(wlb_field_text(event, "time", NULL)), has_days, when, sizeof(when));
	wlb_table_add(table, (const char *const[]){when, wlb_field_text(event, "kind", "-"),
	                                           wlb_field_text(event, "detail", "")});
}

int wlb_show_events(const json_t *run)
{
	static const struct section events = {"Events", 3, "lll", "--n", NULL, NULL, EVENTS_SHOWN, add_event};
	return print_section(&events, listing_of(run, "events"));
}

int wlb_show_steps(const json_t *steps)
{
	if (json_array_size(steps) == 0)
		return 0;
	puts("\nSteps");
	return wlb_steps_print_page(steps, "  ");
}

/* ---- loss ----------------------------------------------------------------------------------------------------- */

int wlb_show_loss(const json_t *run, const json_t *steps)
{
	const json_t *faults = json_object_get(run, "faults"), *item;
	size_t i, count = json_array_size(steps), known = 0, mark_count = json_array_size(faults);
	struct wlb_point *points = calloc(count + 1, sizeof(*points));
	int64_t *marks = calloc(mark_count + 1, sizeof(*marks));
	int rc = points != NULL && marks != NULL ? 0 : -1;
	json_array_foreach(rc == 0 ? steps : NULL, i, item)
	{
		const json_t *loss = json_object_get(item, "loss");
		points[i].step = json_integer_value(json_object_get(item, "step"));
		points[i].value = json_is_number(loss) ? json_number_value(loss) : NAN;
		known += json_is_number(loss);
	}
	if (known > 1) {
		json_array_foreach(faults, i, item) marks[i] = json_integer_value(json_object_get(item, "step"));
		puts("\nLoss");
		wlb_plot(stdout, points, (int)count, marks, (int)mark_count, wlb_terminal_columns() - PLOT_MARGIN,
		         PLOT_ROWS, wlb_terminal_unicode());
	}
	free(points);
	free(marks);
	return rc;
}
