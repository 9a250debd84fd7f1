#include "coordinator/wlb/history/run_columns.h"

#include <string.h>
#include <time.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { FIELDS_MOST = 5, CELL_BYTES = 4200 };

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static void show_run(const json_t *run, const char *field, char *text, size_t size)
{
	(void)field;
	wlb_field_run(run, text, size);
}

static void show_text(const json_t *run, const char *field, char *text, size_t size)
{
	snprintf(text, size, "%s", wlb_field_text(run, field, "-"));
}

static void show_nodes(const json_t *run, const char *field, char *text, size_t size)
{
	(void)field;
	wlb_field_nodes(run, text, size < 256 ? size : 256);
}

static void show_layout(const json_t *run, const char *field, char *text, size_t size)
{
	(void)field;
	wlb_field_layout(run, text, size);
}

static void show_step(const json_t *run, const char *field, char *text, size_t size)
{
	char step[48], counted[32], all[32], missing_text[40] = "";
	json_int_t missing = json_integer_value(json_object_get(run, "steps_missing"));
	wlb_field_number(run, field, step, sizeof(step));
	wlb_field_number(run, "step_of_attempt", counted, sizeof(counted));
	if (strcmp(step, "-") == 0 && strcmp(counted, "-") != 0)
		snprintf(step, sizeof(step), "%s of attempt", counted);
	wlb_field_number(run, "train_iters", all, sizeof(all));
	if (missing > 0)
		snprintf(missing_text, sizeof(missing_text), " (%lld missing)", (long long)missing);
	if (strcmp(all, "-") == 0)
		snprintf(text, size, "%s%s", step, missing_text);
	else
		snprintf(text, size, "%s/%s%s", step, all, missing_text);
}

static void show_loss(const json_t *run, const char *field, char *text, size_t size)
{
	wlb_field_real(run, field, 4, text, size);
}

static void show_rate(const json_t *run, const char *field, char *text, size_t size)
{
	wlb_field_real(run, field, 0, text, size);
}

static void show_time(const json_t *run, const char *field, char *text, size_t size)
{
	wlb_time_format(wlb_time_parse(wlb_field_text(run, field, NULL)), text, size);
}

static void show_elapsed(const json_t *run, const char *field, char *text, size_t size)
{
	const json_t *elapsed_s = json_object_get(run, field);
	wlb_duration_format(json_is_number(elapsed_s) ? (long)json_number_value(elapsed_s) : -1, text, size);
}

/* "llama 8.03 G"; of a trainer that does not tell its model, the folder of the configuration that the job names. */
static void show_model(const json_t *run, const char *field, char *text, size_t size)
{
	const char *type = wlb_field_text(run, field, NULL), *path = wlb_field_text(run, "model_path", "-");
	double parameters = json_number_value(json_object_get(run, "parameters"));
	const char *file = strrchr(path, '/'),
		   *folder = file != NULL ? memrchr(path, '/', (size_t)(file - path)) : NULL;
	if (type != NULL && parameters > 0)
		snprintf(text, size, parameters < 1e9 ? "%s %.3g M" : "%s %.3g G", type,
		         parameters / (parameters < 1e9 ? 1e6 : 1e9));
	else if (type == NULL && folder != NULL && strcmp(file, "/config.json") == 0)
		snprintf(text, size, "%.*s", (int)(file - folder - 1), folder + 1);
	else
		snprintf(text, size, "%s", type != NULL ? type : path);
}

static void show_share(const json_t *run, const char *field, char *text, size_t size)
{
	const json_t *share = json_object_get(run, field);
	snprintf(text, size, json_is_number(share) ? "%.1f %%" : "-", 100 * json_number_value(share));
}

/* As many as fit `size`: those that wlbd allows do. */
static void show_tags(const json_t *run, const char *field, char *text, size_t size)
{
	const json_t *tags = json_object_get(run, field);
	size_t length = 0;
	snprintf(text, size, "-");
	for (size_t i = 0; i < json_array_size(tags) && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "",
		                           json_string_value(json_array_get(tags, i)) ?: "?");
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

struct column {
	const char *name, *title;
	char right, shrink, leave; /* as in struct wlb_table */
	bool is_order;             /* runs can be put in its order */
	void (*show)(const json_t *run, const char *field, char *text, size_t size);
	const char *fields[FIELDS_MOST]; /* of --csv; `show` gets the first */
};

enum { DEFAULT_COLUMNS = 11 }; /* the first ones, where the user chooses none */

static const struct column columns[] = {
	{"run", "RUN", 'l', '-', '-', true, show_run, {"run_id", "alias"}},
	{"name", "NAME", 'l', 'c', '4', true, show_text, {"job_name"}},
	{"user", "USER", 'l', 'c', '6', true, show_text, {"user"}},
	{"state", "STATE", 's', '-', '-', true, show_text, {"state"}},
	{"nodes", "NODES", 'l', 'c', '5', true, show_nodes, {"nodes", "node_count"}},
	{"layout", "LAYOUT", 'l', '-', '8', false, show_layout, {"layout.tp", "layout.cp", "layout.pp", "layout.dp"}},
	{"step", "STEP", 'r', '-', '1', true, show_step, {"last_step", "train_iters"}},
	{"loss", "LOSS", 'r', '-', '2', true, show_loss, {"last_loss"}},
	{"attempts", "ATTEMPTS", 'r', '-', '9', true, wlb_field_number, {"attempts"}},
	{"started", "STARTED", 'l', '-', '7', true, show_time, {"started_at"}},
	{"elapsed", "ELAPSED", 'r', '-', '3', true, show_elapsed, {"elapsed_s"}},
	{"submitted", "SUBMITTED", 'l', '-', '-', true, show_time, {"submitted_at"}},
	{"ended", "ENDED", 'l', '-', '-', true, show_time, {"ended_at"}},
	{"job", "JOB", 'r', '-', '-', false, wlb_field_number, {"job_id"}},
	{"account", "ACCOUNT", 'l', 'c', '-', true, show_text, {"account"}},
	{"model", "MODEL", 'l', 'c', '-', false, show_model, {"model_type", "parameters", "model_path"}},
	{"ranks", "RANKS", 'r', '-', '-', false, wlb_field_number, {"world_size"}},
	{"gpus", "GPUS", 'r', '-', '-', false, wlb_field_number, {"gpu_count"}},
	{"sequence", "SEQUENCE", 'r', '-', '-', false, wlb_field_number, {"seq_length"}},
	{"batch", "BATCH", 'r', '-', '-', false, wlb_field_number, {"global_batch_size"}},
	{"tokens", "TOKENS", 'r', '-', '-', true, wlb_field_number, {"tokens"}},
	{"tokens_per_s", "TOKENS/S", 'r', '-', '-', true, show_rate, {"tokens_per_s"}},
	{"memory", "MEMORY", 'r', '-', '-', true, wlb_field_bytes, {"memory_bytes"}},
	{"mfu", "MFU", 'r', '-', '-', true, show_share, {"mfu"}},
	{"faults", "FAULTS", 'r', '-', '-', true, wlb_field_number, {"faults"}},
	{"tags", "TAGS", 'l', 'c', '-', false, show_tags, {"tags"}},
	{"reason", "REASON", 'l', 'n', '-', false, show_text, {"reason"}},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static int find(const char *name, size_t length)
{
	for (int i = 0; i < COLUMNS; i++)
		if (strlen(columns[i].name) == length && strncmp(columns[i].name, name, length) == 0)
			return i;
	return -1;
}

int wlb_run_columns_choose(const char *given, bool is_all, struct wlb_run_columns *chosen, struct wlb_error *error)
{
	*chosen = (struct wlb_run_columns){.is_chosen = given != NULL || is_all};
	for (int i = 0; given == NULL && i < (is_all ? COLUMNS : DEFAULT_COLUMNS); i++)
		chosen->columns[chosen->count++] = i;
	for (const char *name = given; name != NULL;) {
		size_t length = strcspn(name, ",");
		int column = find(name, length);
		if (column < 0)
			return wlb_fail(error,
			                "--columns: '%.*s' must be one of the columns that 'wlb runs --help' lists",
			                length < 60 ? (int)length : 60, name);
		for (int i = 0; i < chosen->count; i++)
			if (chosen->columns[i] == column)
				return wlb_fail(error, "--columns: '%s' is given twice", columns[column].name);
		chosen->columns[chosen->count++] = column;
		name = name[length] == ',' ? name + length + 1 : NULL;
	}
	return 0;
}

int wlb_run_order_check(const char *order, struct wlb_error *error)
{
	const char *name = order + (*order == '-');
	int column = find(name, strlen(name));
	if (column < 0 || !columns[column].is_order)
		return wlb_fail(error,
		                "--sort: '%.60s' must be " WLB_RUN_ORDERS ", with - before it for the largest first",
		                order);
	return 0;
}

/* ---- printed ----------------------------------------------------------------------------------------------------- */

static void add_run(struct wlb_table *table, const struct wlb_run_columns *chosen, const json_t *run)
{
	char texts[WLB_TABLE_COLUMNS][CELL_BYTES];
	const char *cells[WLB_TABLE_COLUMNS];
	for (int i = 0; i < chosen->count; i++) {
		const struct column *column = &columns[chosen->columns[i]];
		column->show(run, column->fields[0], texts[i], CELL_BYTES);
		cells[i] = texts[i];
	}
	wlb_table_add(table, cells);
}

int wlb_run_columns_print(const struct wlb_run_columns *chosen, const json_t *runs, size_t limit)
{
	char right[WLB_TABLE_COLUMNS], shrink[WLB_TABLE_COLUMNS], leave[WLB_TABLE_COLUMNS];
	const char *titles[WLB_TABLE_COLUMNS];
	for (int i = 0; i < chosen->count; i++) {
		const struct column *column = &columns[chosen->columns[i]];
		titles[i] = column->title;
		right[i] = column->right;
		shrink[i] = column->shrink;
		leave[i] = column->leave;
	}
	struct wlb_table table = {
		.columns = chosen->count, .right = right, .shrink = shrink, .leave = chosen->is_chosen ? NULL : leave};
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	for (size_t i = 0; i < limit && i < json_array_size(runs); i++)
		add_run(&table, chosen, json_array_get(runs, i));
	int rc = wlb_table_print(&table, "", stdout);
	if (rc == 0)
		wlb_table_name_left_out(&table, titles, "--columns chooses", 0, stdout);
	return rc;
}

void wlb_run_columns_fields(const struct wlb_run_columns *chosen, const char *fields[WLB_RUN_FIELDS])
{
	int count = 0;
	for (int i = 0; i < chosen->count; i++)
		for (int k = 0; k < FIELDS_MOST && columns[chosen->columns[i]].fields[k] != NULL; k++)
			fields[count++] = columns[chosen->columns[i]].fields[k];
	fields[count] = NULL;
}
