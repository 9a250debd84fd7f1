/* The plan of a run that rank 0 makes: what is counted as the reading of files. */
#include <stdlib.h>
#include <string.h>

#include "planner/search.h"
#include "tests/unit/data/fixture.h"
#include "tests/unit/data/index_file.h"
#include "worker/data/file_progress.h"
#include "worker/launch/attempt_setup.h"

static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, "
			     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 257}";

static struct wlb_file_progress progress;
static int searches;

struct wlb_search_result *__real_wlb_plan_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                                 struct wlb_length_stream *lengths,
                                                 const struct wlb_search_options *options, struct wlb_error *error);
struct wlb_search_result *__wrap_wlb_plan_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                                 struct wlb_length_stream *lengths,
                                                 const struct wlb_search_options *options, struct wlb_error *error);

struct wlb_search_result *__wrap_wlb_plan_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                                 struct wlb_length_stream *lengths,
                                                 const struct wlb_search_options *options, struct wlb_error *error)
{
	struct wlb_error stopped;
	searches++;
	if (wlb_file_progress_check(&progress, 0.0, &stopped) < 0)
		fail_msg("%s", stopped.message);
	return __real_wlb_plan_search(model, machine, lengths, options, error);
}

/* Makes the plan of a run of two documents with so many more words of its command line, on one rank. */
static struct wlb_train_plan *make_plan(void **state, const char *const *more, int more_count)
{
	static const int32_t lengths[] = {100, 200};
	struct index_file index;
	struct wlb_error error = {0};
	int code, count = 13;
	index_file_init(&index, 8, 2, lengths, 2);
	index_file_write(&index, state);
	index_file_write_tokens(&index, 257, state);
	char *model = strdup(fixture_write_text(state, "model.json", config));
	char *words[24] = {"train",
	                   "--model",
	                   model,
	                   "--data-path",
	                   strdup(fixture_path(state, "x")),
	                   "--seq-length",
	                   "128",
	                   "--global-batch-size",
	                   "2",
	                   "--train-iters",
	                   "1",
	                   "--lr",
	                   "1e-3"};
	for (int i = 0; i < more_count; i++)
		words[count++] = (char *)more[i];
	struct wlb_train_options options;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	struct wlb_train_plan *plan = calloc(1, sizeof(*plan));
	assert_non_null(launch);
	assert_int_equal(wlb_train_options_parse(count, words, &options, &error), 0);
	if (wlb_train_plan_make(launch, &options, plan, &error) < 0)
		fail_msg("%s", error.message);
	wlb_launch_close(launch);
	free(words[4]);
	free(model);
	return plan;
}

static void the_search_is_no_wait_for_storage(void **state)
{
	wlb_file_progress_init(&progress);
	wlb_file_progress_use(&progress);
	free(make_plan(state, NULL, 0));
	assert_int_equal(searches, 1);
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&progress);
}

static void expect_packing(void **state, const char *const *words, int count, enum wlb_strategy packing)
{
	struct wlb_train_plan *plan = make_plan(state, words, count);
	assert_int_equal(plan->packing, packing);
	assert_int_equal(plan->split.dynamic_cp, packing == WLB_STRATEGY_DYNAMIC);
	free(plan);
}

/* Of one rank no step is shorter with dynamic packing. What the launcher found is taken with its layout alone, and
 * where the option says nothing else. */
static void packing_auto_is_what_the_launcher_found(void **state)
{
	static const char *const words[] = {"--packing", "auto", "--layout", "dp=1"}, *const dynamic[] = {"--packing",
	                                                                                                  "dynamic"};
	wlb_file_progress_init(&progress);
	expect_packing(state, words, 2, WLB_STRATEGY_BALANCED);
	expect_packing(state, words, 4, WLB_STRATEGY_BALANCED);
	setenv("WLB_PACKING", "dynamic", 1);
	expect_packing(state, words, 4, WLB_STRATEGY_BALANCED);
	setenv("WLB_TP", "1", 1);
	setenv("WLB_CP", "1", 1);
	setenv("WLB_PP", "1", 1);
	setenv("WLB_DP", "1", 1);
	expect_packing(state, words, 2, WLB_STRATEGY_DYNAMIC);
	expect_packing(state, NULL, 0, WLB_STRATEGY_BALANCED);
	setenv("WLB_PACKING", "balanced", 1);
	expect_packing(state, words, 2, WLB_STRATEGY_BALANCED);
	expect_packing(state, dynamic, 2, WLB_STRATEGY_DYNAMIC);
	wlb_file_progress_destroy(&progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_search_is_no_wait_for_storage, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(packing_auto_is_what_the_launcher_found, fixture_setup,
	                                        fixture_teardown),
	};
	return cmocka_run_group_tests_name("attempt_setup", tests, NULL, NULL);
}
