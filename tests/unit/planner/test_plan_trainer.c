/* Tests the options of `wlb plan` and `wlb sim` that describe the training program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "planner/cli/plan/trainer.h"
#include "planner/machine.h"

static const struct wlb_option options[] = {WLB_TRAINER_OPTIONS(0)};

static const struct wlb_option_table table = {
	.command = "test", .about = "Test.", .options = options, .count = sizeof(options) / sizeof(options[0])};

/* Returns the machine with the rates of the trainer. */
static struct wlb_machine read(char **words, struct wlb_cost_options *cost)
{
	struct wlb_trainer_request request = {0};
	struct wlb_trainer_file file;
	struct wlb_machine machine;
	struct wlb_error error = {""};
	int argc = 0;
	while (words[argc] != NULL)
		argc++;
	int asked = wlb_options_parse(&table, argc, words, &request, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(asked, WLB_OPTIONS_READ);
	assert_int_equal(wlb_machine_file_read("H100", &machine, &error), 0);
	assert_int_equal(wlb_trainer_read(&request, &file, &machine, cost, &error), 0);
	wlb_options_free(&table, &request);
	assert_int_equal(wlb_cost_options_check(cost, NULL), 0);
	return machine;
}

static struct wlb_cost_options cost_of(char **words)
{
	struct wlb_cost_options cost;
	read(words, &cost);
	return cost;
}

static void assert_equal(const struct wlb_cost_options *a, const struct wlb_cost_options *b)
{
	assert_int_equal(a->trainer, b->trainer);
	assert_true(a->tp_overlap.forward == b->tp_overlap.forward && a->tp_overlap.backward == b->tp_overlap.backward);
	assert_true(a->cp_overlap.forward == b->cp_overlap.forward && a->cp_overlap.backward == b->cp_overlap.backward);
	assert_int_equal(a->overlap_gradients, b->overlap_gradients);
	assert_int_equal(a->overlap_parameters, b->overlap_parameters);
	assert_int_equal(a->overlap_pp, b->overlap_pp);
	assert_int_equal(a->gradient_bytes, b->gradient_bytes);
	assert_int_equal(a->keep_outputs, b->keep_outputs);
	assert_int_equal(a->release_activations, b->release_activations);
	assert_int_equal(a->full_attention, b->full_attention);
	assert_int_equal(a->fp8, b->fp8);
	assert_int_equal(a->fp8_parameters, b->fp8_parameters);
	assert_int_equal(a->fp8_inputs, b->fp8_inputs);
}

static void the_default_is_megatron(void **state)
{
	(void)state;
	char *words[] = {"test", NULL};
	struct wlb_cost_options said = cost_of(words), library;
	wlb_cost_options_init(&library);
	assert_equal(&said, &library);
	assert_true(said.growth > 0.0 && said.pp_outermost);
}

static void each_option_sets_its_member(void **state)
{
	(void)state;
	char *words[] = {"test",     "--tp-overlap",          "0.5",   "--cp-overlap", "1",  "--overlap-gradients",
	                 "no",       "--overlap-parameters",  "no",    "--overlap-pp", "no", "--gradient-type",
	                 "bfloat16", "--release-activations", "--mfu", "full",         NULL};
	struct wlb_cost_options said = cost_of(words);
	const struct wlb_cost_options wanted = {.trainer = WLB_COST_MEGATRON,
	                                        .tp_overlap = {0.5, 0.5},
	                                        .cp_overlap = {1.0, 1.0},
	                                        .gradient_bytes = 2,
	                                        .fp8_inputs = 1,
	                                        .release_activations = 1,
	                                        .full_attention = 1};
	assert_equal(&said, &wanted);
	char *others[] = {"test", "--trainer", "megatron-2021", "--overlap-gradients", "yes", "--tp-overlap",
	                  "0",    NULL};
	said = cost_of(others);
	assert_true(said.overlap_gradients && !said.overlap_parameters && said.whole_rows && said.unfused_attention);
	char *eight_bits[] = {"test", "--fp8", "tensorwise", "--fp8-param-gather", "yes", NULL};
	said = cost_of(eight_bits);
	assert_true(said.fp8 == WLB_FP8_TENSORWISE && said.fp8_parameters && said.fp8_inputs);
}

static void a_worker_is_what_it_is(void **state)
{
	(void)state;
	char *words[] = {"test", "--trainer", "worker", "--tp-overlap", "1", NULL};
	struct wlb_cost_options said, worker;
	const struct wlb_machine machine = read(words, &said);
	wlb_cost_options_worker(&worker, &machine);
	assert_equal(&said, &worker);
}

/* Attention of FlashAttention-2 on H100 takes longer than that of cuDNN, which megatron calls. */
static void the_kernel_sets_the_rates_of_the_machine(void **state)
{
	(void)state;
	char *fa2[] = {"test", "--attention", "fa2", NULL}, *te[] = {"test", "--attention", "te", NULL};
	char *plain[] = {"test", NULL}, *unfused[] = {"test", "--attention", "unfused", NULL};
	struct wlb_cost_options cost;
	struct wlb_machine slow = read(fa2, &cost), named = read(te, &cost), usual = read(plain, &cost);
	double slow_s = wlb_machine_attention_s(&slow, 32, 128, 0.0, 16384, 16384, 0);
	double usual_s = wlb_machine_attention_s(&usual, 32, 128, 0.0, 16384, 16384, 0);
	assert_true(slow_s > 1.5 * usual_s && slow_s < 1.8 * usual_s); /* 539 over 335 TFLOP/s */
	assert_true(named.attention_efficiency == usual.attention_efficiency);
	read(unfused, &cost);
	assert_int_equal(cost.unfused_attention, 1);
}

static void refuses(const struct wlb_trainer_request *request, const char *words)
{
	struct wlb_trainer_file file;
	struct wlb_machine machine;
	struct wlb_cost_options cost;
	struct wlb_error error = {""};
	assert_int_equal(wlb_machine_file_read("H100", &machine, &error), 0);
	assert_int_equal(wlb_trainer_read(request, &file, &machine, &cost, &error), -1);
	assert_non_null(strstr(error.message, words));
}

static void a_name_that_is_unknown_is_refused_with_those_that_there_are(void **state)
{
	(void)state;
	refuses(&(struct wlb_trainer_request){.name = "megatrn"}, "nemo");
	refuses(&(struct wlb_trainer_request){.name = "megatron", .attention = "fa9"}, "fa2 fa3 cudnn");
	refuses(&(struct wlb_trainer_request){.name = "megatron", .fp8 = WLB_FP8_MXFP8}, "--fp8: H100 has no speed");
	refuses(&(struct wlb_trainer_request){.name = "worker", .fp8 = WLB_FP8_DELAYED}, "--fp8: wlb-worker has no");
}

/* Parses a user's copy of a file, with one change. */
static int parse_changed(const char *change, const char *by, struct wlb_trainer_file *trainer, struct wlb_error *error)
{
	static char text[16384], changed[16384];
	FILE *file = fopen(WLB_TEST_MACHINES "/../trainers/megatron.json", "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	char *at = strstr(text, change);
	assert_non_null(at);
	snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, by, at + strlen(change));
	return wlb_trainer_file_parse(changed, strlen(changed), trainer, error);
}

static void refuses_text(const char *change, const char *by, const char *words)
{
	struct wlb_trainer_file trainer;
	struct wlb_error error = {""};
	assert_int_equal(parse_changed(change, by, &trainer, &error), -1);
	assert_non_null(strstr(error.message, words));
}

static void a_file_may_say_that_rows_go_once_to_each_node(void **state)
{
	(void)state;
	struct wlb_trainer_file trainer;
	struct wlb_error error = {""};
	assert_int_equal(parse_changed("\"sources\": {", "\"sources\": {", &trainer, &error), 0);
	assert_false(trainer.cost.rows_by_node);
	assert_int_equal(parse_changed("\"sources\": {",
	                               "\"rows_by_node\": true, \"sources\": {\"rows_by_node\": \"a\",", &trainer,
	                               &error),
	                 0);
	assert_true(trainer.cost.rows_by_node && !trainer.cost.weighted_experts);
	assert_int_equal(parse_changed("\"sources\": {",
	                               "\"weighted_experts\": true, \"sources\": {\"weighted_experts\": \"a\",",
	                               &trainer, &error),
	                 0);
	assert_true(trainer.cost.weighted_experts);
	refuses_text("\"sources\": {", "\"rows_by_node\": 1, \"sources\": {\"rows_by_node\": \"a\",",
	             "rows_by_node must be true or false");
	refuses_text("\"sources\": {", "\"rows_by_node\": true, \"sources\": {",
	             "sources must say where rows_by_node is from");
}

static void a_file_may_name_sets_of_modules(void **state)
{
	(void)state;
	struct wlb_trainer_file trainer;
	struct wlb_error error = {""};
	assert_int_equal(wlb_trainer_file_read("pax", &trainer, &error), 0);
	assert_int_equal(trainer.cost.recompute_sets[0],
	                 WLB_RECOMPUTE_CORE_ATTN | WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_ACT);
	assert_int_equal(trainer.cost.recompute_sets[1], 0);
	assert_true(trainer.cost.embedding_product && trainer.cost.biases_apart && trainer.cost.looped_layers);
	refuses_text("\"sources\": {", "\"recompute\": [\"mopy\"], \"sources\": {\"recompute\": \"a\",",
	             "recompute: 'mopy': must be none");
	refuses_text("\"sources\": {", "\"recompute\": [\"full\"], \"sources\": {\"recompute\": \"a\",",
	             "'full' is tried in any case");
	refuses_text("\"sources\": {",
	             "\"recompute\": [\"mlp\",\"mlp\",\"mlp\",\"mlp\",\"mlp\",\"mlp\",\"mlp\"], "
	             "\"sources\": {\"recompute\": \"a\",",
	             "at most 6 sets");
}

static void a_file_may_say_how_rows_and_experts_are_computed(void **state)
{
	(void)state;
	struct wlb_trainer_file trainer;
	struct wlb_error error = {""};
	assert_int_equal(parse_changed("\"sources\": {",
	                               "\"exchange_processors\": 24, \"grouped_experts\": true, \"sources\": {"
	                               "\"exchange_processors\": \"a\", \"grouped_experts\": \"a\",",
	                               &trainer, &error),
	                 0);
	assert_int_equal(trainer.cost.exchange_processors, 24);
	assert_true(trainer.cost.grouped_experts && !trainer.cost.fused_experts && !trainer.cost.rows_by_rank);
	refuses_text("\"sources\": {", "\"exchange_processors\": 1.5, \"sources\": {\"exchange_processors\": \"a\",",
	             "exchange_processors must be a whole number");
	refuses_text("\"sources\": {", "\"exchange_processors\": 1e9, \"sources\": {\"exchange_processors\": \"a\",",
	             "exchange_processors must be a number from 0 to 1024");
	assert_int_equal(wlb_trainer_file_read("nemo-2026", &trainer, &error), 0);
	assert_int_equal(trainer.cost.exchange_processors, 32);
	assert_true(trainer.cost.grouped_experts && trainer.cost.fused_experts && trainer.cost.rows_by_rank);
	assert_false(trainer.cost.split_operations);
	assert_int_equal(wlb_trainer_file_read("automodel", &trainer, &error), 0);
	assert_true(trainer.cost.grouped_experts && !trainer.cost.fused_experts && trainer.cost.rows_by_rank);
	assert_true(trainer.cost.split_operations && trainer.cost.exchange_rate == 0.87);
}

static void a_file_may_say_what_the_optimizer_keeps(void **state)
{
	(void)state;
	struct wlb_trainer_file trainer;
	struct wlb_error error = {""};
	assert_int_equal(parse_changed("\"sources\": {", "\"sources\": {", &trainer, &error), 0);
	assert_true(trainer.cost.optimizer_bytes == 12.0);
	assert_int_equal(parse_changed("\"sources\": {",
	                               "\"optimizer_bytes\": 8, \"sources\": {\"optimizer_bytes\": \"a\",", &trainer,
	                               &error),
	                 0);
	assert_true(trainer.cost.optimizer_bytes == 8.0);
	refuses_text("\"sources\": {", "\"optimizer_bytes\": 13, \"sources\": {\"optimizer_bytes\": \"a\",",
	             "optimizer_bytes must be a number from 4 to 12");
	refuses_text("\"sources\": {", "\"optimizer_bytes\": 8, \"sources\": {",
	             "sources must say where optimizer_bytes is from");
}

static void each_value_of_a_file_is_checked_and_has_a_source(void **state)
{
	(void)state;
	refuses_text("\"growth\": 0.007", "\"growth\": 0.7", "growth must be a number from 0 to 0.1");
	refuses_text("\"whole_rows\": false", "\"whole_rows\": 0", "whole_rows must be true or false");
	refuses_text("\"gradient_type\": \"float32\"", "\"gradient_type\": \"int8\"", "float32 or bfloat16");
	refuses_text("\"elementwise\": 1", "\"elementwize\": 1", "'elementwize' is unknown");
	refuses_text("\"elementwise\": \"", "\"other\": \"", "sources must say where elementwise is from");
	refuses_text("\"H100\": 1.03", "\"H100\": 0", "products: each rate");
	refuses_text("\"name\": \"megatron\"", "\"name\": \"mega\\u001bx\"", "printable");
	refuses_text("{", "{{", "not JSON");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_megatron),
		cmocka_unit_test(each_option_sets_its_member),
		cmocka_unit_test(a_worker_is_what_it_is),
		cmocka_unit_test(the_kernel_sets_the_rates_of_the_machine),
		cmocka_unit_test(a_name_that_is_unknown_is_refused_with_those_that_there_are),
		cmocka_unit_test(each_value_of_a_file_is_checked_and_has_a_source),
		cmocka_unit_test(a_file_may_say_that_rows_go_once_to_each_node),
		cmocka_unit_test(a_file_may_name_sets_of_modules),
		cmocka_unit_test(a_file_may_say_how_rows_and_experts_are_computed),
		cmocka_unit_test(a_file_may_say_what_the_optimizer_keeps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
