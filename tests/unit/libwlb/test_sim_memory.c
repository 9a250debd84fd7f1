/* Fails every allocation of simulator and search once: the error is reported and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/libwlb/allocations.h"
#include "tests/unit/libwlb/sim_cases.h"

static void a_simulation_says_that_memory_is_out(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(1, 2, 2, 2, 1, 3);
	struct wlb_sim_options options;
	struct wlb_sim_result result;
	int64_t tokens[] = {3000, 500};
	struct wlb_step step = equal_step(6, tokens, 2);
	wlb_sim_options_init(&options, &plan);
	int failures = 0, rc = -1;
	for (long n = 0; rc < 0; n++) {
		struct wlb_error error = {""};
		allocations_left = n;
		struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, &error);
		rc = sim == NULL ? -1 : wlb_sim_step(sim, &step, &result, &error);
		allocations_left = -1;
		failures += rc < 0;
		if (rc < 0)
			assert_memory_equal(error.message, "out of memory", 13);
		wlb_sim_free(sim);
	}
	assert_true(failures >= 19);
	free_step(&step);
}

/* A plan that does not pack for want of memory stays unranked; all else is an error. */
static void a_search_says_that_memory_is_out(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_search_options options;
	int64_t tokens[] = {3000, 1000, 96};
	struct wlb_step step = equal_step(1, tokens, 3);
	wlb_search_options_init(&options, 1, 4096, 8);
	options.sample = &step;
	options.samples = 1;
	options.most_simulated = 2;
	struct wlb_search_result *result = NULL;
	int failures = 0;
	for (long n = 0; result == NULL; n++) {
		struct wlb_error error = {""};
		allocations_left = n;
		result = wlb_search(&model, &machine, &options, &error);
		allocations_left = -1;
		failures += result == NULL;
		assert_true(result != NULL || strlen(error.message) > 0);
	}
	assert_true(failures >= 8);
	wlb_search_free(result);
	free_step(&step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_simulation_says_that_memory_is_out),
		cmocka_unit_test(a_search_says_that_memory_is_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
