/* Compares the shapes of named models with the numbers of parameters that their publishers state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "planner/model_class.h"
#include "planner/model_file.h"

/* `parameters` is the number in the model's safetensors files. */
static const struct {
	const char *name;
	int64_t parameters;
} published[] = {
	{"Llama-3-8B", 8030261248}, {"Llama-3-70B", 70553706496}, {"Llama-3-405B", 405853388800},
	{"Qwen2.5-7B", 7615616512}, {"Qwen2.5-32B", 32763876352}, {"Qwen2.5-72B", 72706203648},
	{"Qwen3-8B", 8190735360},   {"Qwen3-32B", 32762123264},   {"Mistral-7B", 7248023552},
};

static void has_the_parameters_of_the_published_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		struct wlb_error error = {""};
		const struct wlb_model_class *model = wlb_model_class(published[i].name);
		assert_non_null(model);
		assert_int_equal(wlb_model_check(&model->model, &error), 0);
		assert_int_equal(wlb_model_parameters(&model->model), published[i].parameters);
		assert_non_null(strstr(model->source, "config.json"));
	}
}

static void says_which_sizes_are_the_papers(void **state)
{
	static const char *const sizes[] = {"550M", "7B", "30B", "70B"};
	struct wlb_model model;
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_non_null(strstr(wlb_model_class(sizes[i])->source, "WLB-LLM paper"));
	assert_memory_equal(&wlb_model_class("7B")->model, &wlb_model_7b, sizeof(wlb_model_7b));
	assert_null(wlb_model_class("Llama-3-9B"));
	assert_int_equal(wlb_model_file_read("llama-3-70b", WLB_MODEL_TO_PLAN, &model, &error), 0);
	assert_int_equal(model.num_key_value_heads, 8);
	assert_int_equal(wlb_model_file_read("Llama-3-9B", WLB_MODEL_TO_PLAN, &model, &error), -1);
	assert_non_null(strstr(error.message, "Llama-3-70B"));
}

/* Help and completion list the names that the table has. */
static void every_name_of_the_list_is_known(void **state)
{
	char names[] = WLB_MODEL_CLASS_NAMES;
	int count = 0;
	(void)state;
	for (char *rest = names, *name; (name = strsep(&rest, "|")) != NULL; count++)
		assert_non_null(wlb_model_class(name));
	assert_int_equal(count, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_parameters_of_the_published_model),
		cmocka_unit_test(says_which_sizes_are_the_papers),
		cmocka_unit_test(every_name_of_the_list_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
