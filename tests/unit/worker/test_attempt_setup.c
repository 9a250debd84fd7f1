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

static void the_search_is_no_wait_for_storage(void **state)
{
	static const int32_t lengths[] = {100, 200};
	struct index_file index;
	struct wlb_error error = {0};
	int code;
	index_file_init(&index, 8, 2, lengths, 2);
	index_file_write(&index, state);
	index_file_write_tokens(&index, 257, state);
	char *model = strdup(fixture_write_text(state, "model.json", config));
	char *words[] = {"train",
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
	                 "1e-3",
	                 NULL};
	struct wlb_train_options options;
	struct wlb_launch *launch = wlb_launch_open(&code, &error);
	struct wlb_train_plan *plan = calloc(1, sizeof(*plan));
	assert_non_null(launch);
	assert_int_equal(wlb_train_options_parse(13, words, &options, &error), 0);
	wlb_file_progress_init(&progress);
	wlb_file_progress_use(&progress);
	if (wlb_train_plan_make(launch, &options, plan, &error) < 0)
		fail_msg("%s", error.message);
	assert_int_equal(searches, 1);
	wlb_file_progress_use(NULL);
	wlb_file_progress_destroy(&progress);
	wlb_launch_close(launch);
	free(plan);
	free(words[4]);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_search_is_no_wait_for_storage, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("attempt_setup", tests, NULL, NULL);
}
