/* wlb query: the rows of a statement over the views. */
#include <stdio.h>
#include <stdlib.h>

#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/table.h"
#include "common/output/terminal.h"
#include "common/output/wrap.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"

enum { GAP = 2, NUMBER_BYTES = 32 };

struct request {
	const char *sql;
	bool json, csv;
};

/* ---- texts ----------------------------------------------------------------------------------------------------- */

/* Makes each value of the rows a text: JSON where it is none; null is empty. */
static int make_texts(json_t *rows)
{
	json_t *row, *value;
	size_t i, line;
	int rc = wlb_make_printable(rows);
	json_array_foreach(rows, line, row)
	{
		json_array_foreach(row, i, value)
		{
			char *text = json_is_string(value) || json_is_null(value)
			                     ? NULL
			                     : wlb_printable_json(value, JSON_ENCODE_ANY | JSON_COMPACT |
			                                                         JSON_REAL_PRECISION(15));
			if (text != NULL || json_is_null(value))
				rc |= json_array_set_new(row, i, json_string(text != NULL ? text : ""));
			free(text);
		}
	}
	return rc;
}

static const char *text_at(const json_t *row, size_t column)
{
	const char *text = json_string_value(json_array_get(row, column));
	return text != NULL ? text : "";
}

/* Columns of numbers are aligned at the right. */
static void find_numbers(const json_t *rows, char right[WLB_TABLE_COLUMNS])
{
	const json_t *row;
	size_t line;
	for (size_t i = 0; i < WLB_TABLE_COLUMNS; i++) {
		right[i] = 'r';
		json_array_foreach(rows, line, row)
		{
			const json_t *value = json_array_get(row, i);
			if (!json_is_number(value) && !json_is_null(value))
				right[i] = 'l';
		}
	}
}

/* Whether the columns fit beside each other as they are, and a table has as many. */
static bool fits_table(const json_t *names, const json_t *rows, int columns)
{
	const json_t *row;
	size_t line;
	int used = 0;
	if (json_array_size(names) > WLB_TABLE_COLUMNS)
		return false;
	for (size_t i = 0; i < json_array_size(names); i++) {
		int width = wlb_text_width(text_at(names, i));
		json_array_foreach(rows, line, row)
		{
			int own = wlb_text_width(text_at(row, i));
			width = own > width ? own : width;
		}
		used += width + (i > 0 ? GAP : 0);
	}
	return used <= columns;
}

static int print_table(const json_t *names, const json_t *rows, const char *right)
{
	const char *cells[WLB_TABLE_COLUMNS] = {NULL};
	size_t count = json_array_size(names);
	struct wlb_table table = {.columns = (int)count, .right = right};
	for (size_t line = 0; line <= json_array_size(rows); line++) {
		for (size_t i = 0; i < count; i++)
			cells[i] = text_at(line == 0 ? names : json_array_get(rows, line - 1), i);
		wlb_table_add(&table, cells);
	}
	return wlb_table_print(&table, "", stdout);
}

/* Each row as lines of "name: value", where they do not fit side by side; a long value follows its name, indented. */
static void print_records(const json_t *names, const json_t *rows, int columns)
{
	const json_t *row;
	size_t line;
	json_array_foreach(rows, line, row)
	{
		if (line > 0)
			puts("");
		for (size_t i = 0; i < json_array_size(names); i++) {
			const char *name = text_at(names, i), *text = text_at(row, i);
			if (wlb_text_width(name) + GAP + wlb_text_width(text) <= columns) {
				printf("%s:%s%s\n", name, text[0] != '\0' ? " " : "", text);
			} else {
				printf("%s:\n", name);
				wlb_wrap_print(text, GAP, columns, stdout);
			}
		}
	}
}

static int print_text(json_t *reply)
{
	json_t *names = json_object_get(reply, "columns"), *rows = json_object_get(reply, "rows");
	int columns = wlb_terminal_columns();
	char right[WLB_TABLE_COLUMNS];
	find_numbers(rows, right);
	if (wlb_make_printable(names) != 0 || make_texts(rows) != 0)
		return -1;
	if (json_array_size(rows) == 0)
		puts("no rows");
	else if (!fits_table(names, rows, columns))
		print_records(names, rows, columns);
	else
		return print_table(names, rows, right);
	return 0;
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

/* Columns may have one name, or one with dots, which members of an object may not: the writer gets them by number. */
static int print_csv(const json_t *reply)
{
	const json_t *names = json_object_get(reply, "columns"), *rows = json_object_get(reply, "rows"), *row;
	size_t count = json_array_size(names), i, line;
	char(*numbers)[NUMBER_BYTES] = calloc(count + 1, sizeof(*numbers));
	const char **fields = calloc(count + 1, sizeof(*fields));
	json_t *lines = json_array(), *value;
	int rc = numbers != NULL && fields != NULL && lines != NULL ? 0 : -1;
	for (i = 0; rc == 0 && i < count; i++) {
		snprintf(numbers[i], sizeof(*numbers), "%zu", i);
		fields[i] = numbers[i];
	}
	for (line = 0; rc == 0 && line <= json_array_size(rows); line++) {
		row = line == 0 ? names : json_array_get(rows, line - 1);
		json_t *object = json_object();
		json_array_foreach(row, i, value) rc |= json_object_set(object, fields[i], value);
		rc |= json_array_append_new(lines, object);
	}
	if (rc == 0)
		rc = wlb_csv_print(lines, fields, false, stdout);
	free(numbers);
	free(fields);
	json_decref(lines);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int print_reply(json_t *reply, const struct request *request, struct wlb_error *error)
{
	bool is_cut = json_is_true(json_object_get(reply, "is_cut"));
	size_t count = json_array_size(json_object_get(reply, "rows"));
	if (!json_is_array(json_object_get(reply, "columns")))
		return wlb_fail(error, "the coordinator's reply has no columns");
	int rc = request->json ? wlb_json_print(reply) : request->csv ? print_csv(reply) : print_text(reply);
	if (rc != 0)
		return wlb_fail(error, "out of memory for the rows, or they cannot be written");
	if (is_cut)
		fprintf(stderr,
		        "wlb query: only the first %zu rows are here: a reply has at most 10,000, 1 MiB each and "
		        "8 MiB in all; add a where or a limit\n",
		        count);
	return 0;
}

static int query(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	json_t *body = json_pack("{s:s}", "sql", request->sql);
	if (body == NULL) {
		wlb_fail(error, "the query must be UTF-8");
		return WLB_EXIT_USAGE;
	}
	json_t *reply = wlb_api_post("/v1/query", body, error);
	json_decref(body);
	int rc = reply != NULL ? print_reply(reply, request, error) : -1;
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(sql), "SQL", "one select, in quotes"), .required = true},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is: columns, rows, is_cut")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL, "a line for each row, after one with the names of the columns")},
};

static const struct wlb_option_table table = {
	.command = "wlb query",
	.about =
		"Reads the views of the database, which docs/schema.md describes: for example wlb query 'select run, "
		"state, "
		"last_loss from run_summary order by last_loss limit 10'. Only where wlbd.conf has query_database, and "
		"private_data = no.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_query = {
	.name = "query",
	.summary = "Read the database's views by SQL",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = query,
};
