#include "coordinator/wlb/history/print_steps.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/table.h"
#include "coordinator/wlb/output/reply_fields.h"

struct printed {
	bool any;
	const char *before; /* NULL once it is printed */
};

/* ---- JSON and CSV ------------------------------------------------------------------------------------------------ */

static int print_json(json_t *steps, void *context)
{
	struct printed *printed = context;
	const json_t *step;
	size_t i;
	if (printed->before != NULL)
		printf("%s[", printed->before);
	printed->before = NULL;
	json_array_foreach(steps, i, step)
	{
		fputs(printed->any ? ",\n    " : "\n    ", stdout);
		printed->any = true;
		char *text = wlb_printable_json(step, JSON_COMPACT);
		int rc = text != NULL ? fputs(text, stdout) : EOF;
		free(text);
		if (rc == EOF)
			return -1;
	}
	return 0;
}

int wlb_steps_print_json(const char *run, const struct wlb_steps_choice *choice, const char *before,
                         struct wlb_error *error)
{
	struct printed printed = {.before = before};
	int rc = wlb_steps_each_page(run, choice, print_json, &printed, error);
	if (printed.before == NULL)
		puts("\n  ]\n}");
	return rc;
}

static int print_csv(json_t *steps, void *context)
{
	static const char *const fields[] = {"step",
	                                     "attempt",
	                                     "loss",
	                                     "grad_norm",
	                                     "lr",
	                                     "tokens",
	                                     "documents",
	                                     "step_time_s",
	                                     "tokens_per_s",
	                                     "held_tokens",
	                                     "predicted_imbalance",
	                                     "imbalance",
	                                     "time",
	                                     "parts",
	                                     "loss_tokens",
	                                     "global_batch_size",
	                                     NULL};
	struct printed *printed = context;
	int rc = wlb_csv_print(steps, fields, !printed->any, stdout);
	printed->any = true;
	return rc;
}

int wlb_steps_print_csv(const char *run, const struct wlb_steps_choice *choice, struct wlb_error *error)
{
	struct printed printed = {.any = false};
	return wlb_steps_each_page(run, choice, print_csv, &printed, error);
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* Schedules go down to rates of which six decimal places would show nothing. */
static void format_rate(const json_t *step, char *text, size_t size)
{
	const json_t *rate = json_object_get(step, "lr");
	snprintf(text, size, json_is_number(rate) ? "%.4g" : "-", json_number_value(rate));
}

static void add_step(struct wlb_table *table, const json_t *step)
{
	char number[32], attempt[32], loss[32], norm[32], rate[32], tokens[32], time_s[32], speed[32];
	wlb_field_number(step, "step", number, sizeof(number));
	wlb_field_number(step, "attempt", attempt, sizeof(attempt));
	wlb_field_real(step, "loss", 6, loss, sizeof(loss));
	wlb_field_real(step, "grad_norm", 4, norm, sizeof(norm));
	format_rate(step, rate, sizeof(rate));
	wlb_field_number(step, "tokens", tokens, sizeof(tokens));
	wlb_field_real(step, "step_time_s", 3, time_s, sizeof(time_s));
	wlb_field_real(step, "tokens_per_s", 0, speed, sizeof(speed));
	wlb_table_add(table, (const char *const[]){number, attempt, loss, norm, rate, tokens, time_s, speed});
}

int wlb_steps_print_page(const json_t *steps, const char *indent)
{
	static const char *const titles[] = {"STEP", "ATTEMPT", "LOSS",    "GRAD NORM",
	                                     "LR",   "TOKENS",  "SECONDS", "TOKENS/S"};
	struct wlb_table table = {.columns = 8, .right = "rrrrrrrr", .leave = "-6-43521"};
	const json_t *step;
	size_t i;
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	json_array_foreach(steps, i, step) add_step(&table, step);
	int rc = wlb_table_print(&table, indent, stdout);
	wlb_table_name_left_out(&table, titles, "--csv has them", (int)strlen(indent), stdout);
	return rc;
}

static int print_table(json_t *steps, void *context)
{
	struct printed *printed = context;
	if (json_array_size(steps) == 0)
		return 0;
	printed->any = true;
	return wlb_steps_print_page(steps, "");
}

int wlb_steps_print_table(const char *run, const struct wlb_steps_choice *choice, struct wlb_error *error)
{
	struct printed printed = {.any = false};
	int rc = wlb_steps_each_page(run, choice, print_table, &printed, error);
	if (rc == 0 && !printed.any)
		puts("no steps");
	return rc;
}
