#include "coordinator/wlb/history/fault_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/output/table.h"
#include "coordinator/wlb/output/error_text.h"
#include "coordinator/wlb/output/fault_text.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { INDENT = 2, WHERE_SIZE = 128, NOTE_SIZE = 4096 };

static void name_cost(const json_t *entry, char *text, size_t size)
{
	wlb_field_real(entry, "cost_percent", 0, text, size);
	if (strcmp(text, "-") != 0)
		snprintf(text + strlen(text), size - strlen(text), " %%");
}

/* A fault is certain: whether it broke its attempt is what there is to say. */
static const char *state_of(const json_t *entry)
{
	const json_t *cause = json_object_get(entry, "cause");
	if (json_is_boolean(cause))
		return json_is_true(cause) ? "cause" : "consequence";
	return wlb_field_text(entry, "state", "-");
}

static void add_note(struct wlb_table *table, const json_t *entry)
{
	char error[NOTE_SIZE], note[2 * NOTE_SIZE];
	const char *evidence = wlb_field_text(entry, "evidence", "");
	wlb_error_text(json_object_get(entry, "error"), error, sizeof(error));
	if (*error == '\0' && *evidence != '\0')
		wlb_table_note(table, evidence);
	if (*error == '\0')
		return;
	snprintf(note, sizeof(note), "%s%s%s", evidence, *evidence != '\0' ? "; " : "", error);
	wlb_table_note(table, note);
}

/* The columns from KIND on are the same whether the run is named or not. */
static void add_entry(struct wlb_table *table, const json_t *entry, enum wlb_fault_rows rows)
{
	char when[32], attempt[32], kind[64], where[WHERE_SIZE], cost[352];
	time_t at = wlb_time_parse(wlb_field_text(entry, "time", wlb_field_text(entry, "found_at", NULL)));
	if (rows == WLB_FAULT_ROWS_OF_RUNS)
		wlb_time_format(at, when, sizeof(when));
	else
		wlb_time_short(at, rows == WLB_FAULT_ROWS_OF_DAYS, when, sizeof(when));
	wlb_field_number(entry, "attempt", attempt, sizeof(attempt));
	wlb_fault_kind(entry, kind, sizeof(kind));
	wlb_fault_where(entry, where, sizeof(where));
	name_cost(entry, cost, sizeof(cost));
	const char *const cells[] = {when, wlb_field_text(entry, "run_id", "-"), attempt, kind, where, state_of(entry),
	                             cost, wlb_field_text(entry, "action", "-")};
	const char *const in_run[] = {cells[0], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7]};
	wlb_table_add(table, rows == WLB_FAULT_ROWS_OF_RUNS ? cells : in_run);
	add_note(table, entry);
}

int wlb_fault_table_print(const json_t *entries, size_t first, enum wlb_fault_rows rows, int columns, FILE *out)
{
	bool has_run = rows == WLB_FAULT_ROWS_OF_RUNS;
	static const char *const titles[] = {"TIME", "RUN", "ATTEMPT", "KIND", "WHERE", "STATE", "COST", "ACTION"};
	static const char *const in_run[] = {"TIME", "ATTEMPT", "KIND", "WHERE", "STATE", "COST", "ACTION"};
	struct wlb_table table = {.columns = has_run ? 8 : 7,
	                          .right = has_run ? "llrllsrl" : "lrllsrl",
	                          .leave = has_run ? "4-5--213" : "45--213"};
	wlb_table_fit_terminal(&table);
	table.note_columns = columns;
	wlb_table_add(&table, has_run ? titles : in_run);
	for (size_t i = first; i < json_array_size(entries); i++)
		add_entry(&table, json_array_get(entries, i), rows);
	int rc = wlb_table_print(&table, "  ", out);
	wlb_table_name_left_out(&table, has_run ? titles : in_run, "--json has them", INDENT, out);
	return rc;
}
