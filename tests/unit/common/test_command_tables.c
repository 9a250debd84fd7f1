/* The tables of all commands: an option that is added to one is parsed, and is in its --help, its manual page and its
 * completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checks/links/check_links.h"
#include "checks/node/check_node.h"
#include "coordinator/agent/agent.h"
#include "coordinator/agent/options.h"
#include "coordinator/stacks/options.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/program.h"
#include "coordinator/wlbd/main/options.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan/json.h"
#include "worker/calibrate/calibrate.h"
#include "worker/data/commands.h"
#include "worker/launch/options.h"

static const struct wlb_command others[] = {
	{.options = &wlb_train_option_table, .values_bytes = sizeof(struct wlb_train_options)},
	{.options = &wlbd_option_table, .values_bytes = sizeof(struct wlbd_options)},
	{.options = &wlb_agent_option_table, .values_bytes = sizeof(struct wlb_agent_options)},
	{.options = &wlb_stacks_option_table, .values_bytes = sizeof(struct wlb_stacks_options)},
};

enum { OTHERS = sizeof(others) / sizeof(others[0]), COMMANDS_MOST = 48 };

static const struct wlb_command *commands[COMMANDS_MOST];
static int command_count;

static void add_commands_of(const struct wlb_program *program)
{
	for (int i = 0; i < program->count; i++)
		if (program->commands[i]->options != NULL && command_count < COMMANDS_MOST)
			commands[command_count++] = program->commands[i];
}

static int list_commands(void **state)
{
	(void)state;
	add_commands_of(&wlb_command_program);
	add_commands_of(&wlb_data_program);
	commands[command_count++] = &wlb_command_pack;
	commands[command_count++] = &wlb_command_shard;
	commands[command_count++] = &wlb_command_plan;
	commands[command_count++] = &wlb_command_sim;
	commands[command_count++] = &wlb_command_calibrate;
	commands[command_count++] = &wlb_command_check_links;
	commands[command_count++] = &wlb_command_check_node;
	for (int i = 0; i < OTHERS && command_count < COMMANDS_MOST; i++)
		commands[command_count++] = &others[i];
	return command_count < COMMANDS_MOST ? 0 : -1;
}

static char *printed(const struct wlb_option_table *table, enum wlb_options_asked what)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	wlb_options_print(table, what, out);
	fclose(out);
	return text;
}

static void assert_only_in_second(const struct wlb_option_table *tables, enum wlb_options_asked what,
                                  const char *option)
{
	for (int i = 0; i < 2; i++) {
		char *text = printed(&tables[i], what);
		if ((strstr(text, option) != NULL) != (i == 1))
			fail_msg("%s: %s %s in:\n%s", tables[i].command, option, i == 1 ? "is missing" : "is", text);
		free(text);
	}
}

static void assert_parses_only_second(const struct wlb_option_table *tables, size_t values_bytes)
{
	struct wlb_error error;
	char *values = calloc(1, values_bytes + sizeof(int));
	char *added[] = {"command", "--planted", "5", "--help", NULL};
	assert_int_equal(wlb_options_parse(&tables[0], 4, added, values, &error), -1);
	assert_non_null(strstr(error.message, "option '--planted' is unknown"));
	assert_int_equal(wlb_options_parse(&tables[1], 4, added, values, &error), WLB_OPTIONS_HELP);
	int found;
	memcpy(&found, values + values_bytes, sizeof(found));
	assert_int_equal(found, 5);
	free(values);
}

static void an_added_option_is_everywhere(void **state)
{
	for (int i = 0; i < command_count; i++) {
		const struct wlb_option_table *table = commands[i]->options;
		struct wlb_option *rows = calloc((size_t)table->count + 1, sizeof(*rows));
		memcpy(rows, table->options, (size_t)table->count * sizeof(*rows));
		rows[table->count] = (struct wlb_option){
			WLB_OPTION(INT, "planted", commands[i]->values_bytes, "N", "planted by the test"), .max = 9};
		struct wlb_option_table tables[2] = {*table, *table};
		tables[1].options = rows;
		tables[1].count++;
		assert_parses_only_second(tables, commands[i]->values_bytes);
		assert_only_in_second(tables, WLB_OPTIONS_HELP, "\n  --planted N             planted by the test\n");
		assert_only_in_second(tables, WLB_OPTIONS_MAN,
		                      ".TP\n\\fB\\-\\-planted\\fR \\fIN\\fR\nPlanted by the test.\n");
		assert_only_in_second(tables, WLB_OPTIONS_COMPLETION, " --planted --help' ;;\n");
		free(rows);
	}
	(void)state;
}

/* Rows that could not work: found here and not by a user. */
static void rows_are_whole(void **state)
{
	for (int i = 0; i < command_count; i++)
		for (int j = 0; j < commands[i]->options->count; j++) {
			const struct wlb_option *row = &commands[i]->options->options[j];
			bool number = row->kind == WLB_OPTION_INT || row->kind == WLB_OPTION_INT64 ||
			              row->kind == WLB_OPTION_REAL;
			assert_true(row->offset < commands[i]->values_bytes);
			assert_true(row->help != NULL && *row->help != '\0');
			assert_true(row->kind == WLB_OPTION_FLAG || row->kind == WLB_OPTION_VERSION ||
			            row->value != NULL || row->choices != NULL);
			assert_true(row->kind != WLB_OPTION_CHOICE || row->choices != NULL);
			assert_true(!number || row->max > row->min);
			assert_true(row->initial == NULL || !row->required);
		}
	(void)state;
}

/* A default that its own row refuses would make every command line fail. */
static void defaults_are_values_that_are_taken(void **state)
{
	for (int i = 0; i < command_count; i++) {
		struct wlb_error error = {0};
		void *values = calloc(1, commands[i]->values_bytes);
		char *argv[] = {"command", "--help", NULL};
		if (wlb_options_parse(commands[i]->options, 2, argv, values, &error) != WLB_OPTIONS_HELP)
			fail_msg("%s: %s", commands[i]->options->command, error.message);
		free(values);
	}
	(void)state;
}

static void assert_choices(const struct wlb_option_table *table, const char *option, const char *name, int at)
{
	for (int i = 0; i < table->count; i++) {
		const struct wlb_option *row = &table->options[i];
		if (row->name == NULL || strcmp(row->name, option) != 0)
			continue;
		const char *word = row->choices;
		for (int skip = 0; skip < at; skip++)
			word = strchr(word, '|') + 1;
		assert_int_equal(strcspn(word, "|"), strlen(name));
		assert_memory_equal(word, name, strlen(name));
		return;
	}
	fail_msg("%s has no --%s", table->command, option);
}

/* The index of a choice is taken for a value of the enum. */
static void choices_are_in_the_order_of_their_enums(void **state)
{
	const struct wlb_option_table *train_table = &wlb_train_option_table;
	for (int i = WLB_STRATEGY_BALANCED; i <= WLB_STRATEGY_PLAIN; i++)
		assert_choices(wlb_command_pack.options, "packing", wlb_strategy_name(i), i);
	for (int i = WLB_STRATEGY_BALANCED; i <= WLB_STRATEGY_DYNAMIC; i++)
		assert_choices(train_table, "packing", wlb_strategy_name(i), i);
	for (int i = WLB_SHARDING_SEQUENCE; i <= WLB_SHARDING_ADAPTIVE; i++)
		assert_choices(train_table, "cp-sharding", wlb_sharding_name(i), i);
	for (int i = WLB_RECOMPUTE_NONE; i <= WLB_RECOMPUTE_FULL; i++) {
		char name[WLB_RECOMPUTE_TEXT_BYTES];
		wlb_recompute_set_format((enum wlb_recompute)i, name, sizeof(name));
		assert_choices(train_table, "recompute-granularity", name, i);
	}
	assert_choices(train_table, "dtype", wlb_dtype_name(WLB_FLOAT32), WLB_FLOAT32);
	assert_choices(train_table, "dtype", wlb_dtype_name(WLB_FLOAT64), WLB_FLOAT64);
	assert_choices(train_table, "device", "cuda", WLB_DEVICE_CUDA);
	assert_choices(wlb_command_calibrate.options, "device", "cuda", WLB_DEVICE_CUDA);
	assert_choices(wlb_command_check_node.options, "device", "cuda", WLB_DEVICE_CUDA);
	assert_choices(wlb_command_check_node.options, "dtype", wlb_dtype_name(WLB_FLOAT64), WLB_FLOAT64);
	assert_choices(wlb_command_calibrate.options, "dtype", wlb_dtype_name(WLB_FLOAT64), WLB_FLOAT64);
	assert_choices(train_table, "lr-decay-style", "constant", WLB_LR_CONSTANT);
	assert_choices(train_table, "lr-decay-style", "linear", WLB_LR_LINEAR);
	assert_choices(train_table, "lr-decay-style", "cosine", WLB_LR_COSINE);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_added_option_is_everywhere),
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(choices_are_in_the_order_of_their_enums),
		cmocka_unit_test(defaults_are_values_that_are_taken),
	};
	return cmocka_run_group_tests(tests, list_commands, NULL);
}
