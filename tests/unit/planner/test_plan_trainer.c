/* Tests the options of `wlb plan` and `wlb sim` that describe the training program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "planner/cli/plan/trainer.h"

static const struct wlb_option options[] = {WLB_TRAINER_OPTIONS(0)};

static const struct wlb_option_table table = {
	.command = "test", .about = "Test.", .options = options, .count = sizeof(options) / sizeof(options[0])};

static struct wlb_cost_options cost_of(int argc, char **argv)
{
	const struct wlb_machine machine = {.element_bytes = 4};
	struct wlb_trainer_request request = {0};
	struct wlb_error error = {""};
	int asked = wlb_options_parse(&table, argc, argv, &request, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(asked, WLB_OPTIONS_READ);
	struct wlb_cost_options cost = wlb_trainer_cost(&request, &machine);
	wlb_options_free(&table, &request);
	assert_int_equal(wlb_cost_options_check(&cost, NULL), 0);
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
}

static void the_defaults_are_those_of_the_library(void **state)
{
	(void)state;
	char *words[] = {"test", NULL};
	struct wlb_cost_options said = cost_of(1, words), library;
	wlb_cost_options_init(&library);
	assert_equal(&said, &library);
}

static void each_option_sets_its_member(void **state)
{
	(void)state;
	char *words[] = {"test",     "--tp-overlap",          "0.5",   "--cp-overlap", "1",  "--overlap-gradients",
	                 "no",       "--overlap-parameters",  "no",    "--overlap-pp", "no", "--gradient-type",
	                 "bfloat16", "--release-activations", "--mfu", "full",         NULL};
	struct wlb_cost_options said = cost_of(16, words);
	const struct wlb_cost_options wanted = {.trainer = WLB_COST_MEGATRON,
	                                        .tp_overlap = {0.5, 0.5},
	                                        .cp_overlap = {1.0, 1.0},
	                                        .gradient_bytes = 2,
	                                        .release_activations = 1,
	                                        .full_attention = 1};
	assert_equal(&said, &wanted);
}

static void a_worker_is_what_it_is(void **state)
{
	(void)state;
	const struct wlb_machine machine = {.element_bytes = 4};
	char *words[] = {"test", "--trainer", "worker", "--tp-overlap", "1", NULL};
	struct wlb_cost_options said = cost_of(5, words), worker;
	wlb_cost_options_worker(&worker, &machine);
	assert_equal(&said, &worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_library),
		cmocka_unit_test(each_option_sets_its_member),
		cmocka_unit_test(a_worker_is_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
