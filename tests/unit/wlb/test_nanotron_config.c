/* The copies of nanotron's configuration file, each with the layout of an attempt. */
#include "coordinator/wlb/run/command/nanotron_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/file.h"
#include "coordinator/wlb/run/command/launcher.h"

static char source[] = "/tmp/wlb-nanotron-XXXXXX", copy[64], option[64];
static char *words[] = {"torchrun", "run_train.py", option, NULL};

static const char text[] = "# of a run\n"
			   "general:\n"
			   "  dp: 9\n"
			   "parallelism:   # the layout\n"
			   "  dp: 4 # replicas\n"
			   "  pp: 1\r\n"
			   "  tp:   2\n"
			   "  tp_mode: REDUCE_SCATTER\n"
			   "  nested:\n"
			   "    pp: 7\n"
			   "\n"
			   "tokens:\n"
			   "  batch_accumulation_per_replica: 2\n"
			   "  micro_batch_size: 3\n"
			   "  sequence_length: 4096";

static void write_source(const char *content)
{
	struct wlb_error error;
	if (wlb_file_write(source, content, strlen(content), 0600, &error) != 0)
		fail_msg("%s", error.message);
}

static void the_batch_and_the_layout_are_read(void **state)
{
	struct wlb_nanotron_config config;
	struct wlb_error error;
	(void)state;
	write_source(text);
	assert_int_equal(wlb_nanotron_config_read(words, &config, &error), 0);
	assert_int_equal(config.seq_length, 4096);
	assert_int_equal(config.global_batch, 24);
	assert_int_equal(config.micro_batch_size, 3);
	assert_int_equal(config.cp, 1);
	assert_false(config.has_recompute);
}

static void check_copy(const struct wlb_trainer_layout *layout, const char *expected)
{
	struct wlb_error error;
	char *made;
	bool has_recompute;
	if (wlb_nanotron_config_write(words, layout, copy, &has_recompute, &error) != 0)
		fail_msg("%s", error.message);
	assert_int_equal(wlb_file_read(copy, 4096, &made, NULL, &error), 0);
	assert_string_equal(made, expected);
	free(made);
	assert_int_equal(has_recompute, strstr(expected, "recompute_layer") != NULL);
}

/* 24 windows a step in both. */
static void a_copy_has_the_layout(void **state)
{
	struct wlb_trainer_layout layout = {
		.layout = {.tp = 1, .cp = 1, .pp = 2, .dp = 6}, .micro_batch_size = 1, .micro_batches = 4};
	(void)state;
	write_source(text);
	check_copy(&layout, "# of a run\n"
	                    "general:\n"
	                    "  dp: 9\n"
	                    "parallelism:   # the layout\n"
	                    "  dp: 6 # replicas\n"
	                    "  pp: 2\r\n"
	                    "  tp:   1\n"
	                    "  tp_mode: REDUCE_SCATTER\n"
	                    "  nested:\n"
	                    "    pp: 7\n"
	                    "\n"
	                    "tokens:\n"
	                    "  batch_accumulation_per_replica: 4\n"
	                    "  micro_batch_size: 1\n"
	                    "  sequence_length: 4096");
	write_source("parallelism:\n dp: 1\n pp: 1\n tp: 1\n recompute_layer: false\n context_parallel_size: 2\n"
	             "tokens:\n sequence_length: 8\n micro_batch_size: 2\n batch_accumulation_per_replica: 6\n");
	layout = (struct wlb_trainer_layout){.layout = {.tp = 1, .cp = 2, .pp = 1, .dp = 3},
	                                     .micro_batch_size = 4,
	                                     .micro_batches = 1,
	                                     .recomputes_layers = true};
	check_copy(&layout, "parallelism:\n dp: 3\n pp: 1\n tp: 1\n recompute_layer: true\n context_parallel_size: 2\n"
	                    "tokens:\n sequence_length: 8\n micro_batch_size: 4\n batch_accumulation_per_replica: 1\n");
}

static void the_command_names_the_copy_last(void **state)
{
	const struct wlb_trainer_layout layout = {.layout = {1, 1, 1, 1}, .micro_batch_size = 1, .config = "/s/c.yaml"};
	char *const command[] = {"torchrun", "run_train.py", "--config-file", "own.yaml", NULL};
	struct wlb_error error;
	char **made, line[256], kept[64];
	(void)state;
	assert_int_equal(
		wlb_trainer_tell(wlb_trainer_find("nanotron"), &layout, command, &made, kept, sizeof(kept), &error), 0);
	wlb_launcher_line(made, line, sizeof(line));
	assert_string_equal(line, "torchrun run_train.py --config-file own.yaml --config-file=/s/c.yaml");
	wlb_launcher_free(made);
}

#define TOKENS "tokens:\n  batch_accumulation_per_replica: 2\n  micro_batch_size: 3\n  sequence_length: 4096\n"

static void what_cannot_be_written_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
		int dp, cp;
	} cases[] = {
		{"tokens: {micro_batch_size: 3}\n",
	         "no line '  sequence_length: N' below a line 'tokens:'; write it in "
	         "block style",
	         1, 1},
		{TOKENS "parallelism: {dp: 1}\n", "no line '  dp: N' below a line 'parallelism:'", 1, 1},
		{TOKENS "parallelism:\n  dp: many\n", "parallelism.dp", 1, 1},
		{TOKENS "parallelism:\n  dp: 0\n", "parallelism.dp", 1, 1},
		{TOKENS "parallelism:\n  dp: 1000000\n", "1048576 at most", 1, 1},
		{TOKENS "parallelism:\n  dp: 4\n  pp: 1\n  tp: 1\n",
	         "a step has 24 windows: must be a multiple of dp=5 x micro_batch_size=1", 5, 1},
		{TOKENS "parallelism:\n  dp: 4\n  pp: 1\n  tp: 1\n", "context_parallel_size is 1: must be cp=2", 4, 2},
		{TOKENS "parallelism:\n  dp: 4\n  pp:\n  tp: 1\n", "no line '  pp: N'", 4, 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wlb_trainer_layout layout = {
			.layout = {.tp = 1, .cp = cases[i].cp, .pp = 1, .dp = cases[i].dp}, .micro_batch_size = 1};
		struct wlb_error error = {0};
		bool has_recompute;
		write_source(cases[i].text);
		unlink(copy);
		assert_int_equal(wlb_nanotron_config_write(words, &layout, copy, &has_recompute, &error), -1);
		if (strstr(error.message, cases[i].why) == NULL || strstr(error.message, source) == NULL)
			fail_msg("%zu: %s", i, error.message);
		assert_int_equal(access(copy, F_OK), -1);
	}
}

static void a_command_without_a_file(void **state)
{
	char *const none[] = {"t", NULL}, *const missing[] = {"t", "--config-file=/none.yaml", NULL};
	struct wlb_nanotron_config config;
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_nanotron_config_read(none, &config, &error), -1);
	assert_non_null(strstr(error.message, "no --config-file FILE"));
	assert_int_equal(wlb_nanotron_config_read(missing, &config, &error), -1);
	assert_non_null(strstr(error.message, "--config-file /none.yaml: file /none.yaml: cannot be opened"));
}

static int make_source(void **state)
{
	int fd = mkstemp(source);
	(void)state;
	snprintf(copy, sizeof(copy), "%s.copy", source);
	snprintf(option, sizeof(option), "--config-file=%s", source);
	return fd < 0 ? -1 : close(fd);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(copy);
	return unlink(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_batch_and_the_layout_are_read),
		cmocka_unit_test(a_copy_has_the_layout),
		cmocka_unit_test(the_command_names_the_copy_last),
		cmocka_unit_test(what_cannot_be_written_is_refused),
		cmocka_unit_test(a_command_without_a_file),
	};
	return cmocka_run_group_tests(tests, make_source, remove_files);
}
