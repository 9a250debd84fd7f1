/* The config.json of published models (tests/reference/published.json): what is trained, planned, and refused with
 * which reason; the parameters are those that Transformers counts. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/model_config.h"
#include "tests/unit/data/fixture.h"

static const char *text_of(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));
	return text != NULL ? text : "";
}

/* Reads the model's file; returns 0, or -1 where it is refused. */
static int read_as(void **state, const json_t *entry, enum wlb_model_use use, struct wlb_model *model,
                   struct wlb_error *error)
{
	char *text = json_dumps(json_object_get(entry, "config"), 0);
	assert_non_null(text);
	int rc = wlb_model_config_read(fixture_write_text(state, "config.json", text), use, model, error);
	free(text);
	return rc;
}

static void expect(const json_t *entry, int holds, const char *what, const struct wlb_error *error)
{
	if (!holds)
		fail_msg("%s: %s: %s", text_of(entry, "name"), what, error->message);
}

static void check_shape(const json_t *entry, const struct wlb_model *model)
{
	const struct wlb_error none = {""};
	int64_t parameters = json_integer_value(json_object_get(entry, "parameters"));
	const json_t *active = json_object_get(entry, "active_parameters"),
		     *flops = json_object_get(entry, "token_flops");
	expect(entry, wlb_model_parameters(model) == parameters, "it has another number of parameters", &none);
	expect(entry, (active != NULL) == (model->num_experts > 0) && (flops != NULL) == (active != NULL),
	       "models with experts have active_parameters and token_flops", &none);
	expect(entry, wlb_model_active_parameters(model) == (active != NULL ? json_integer_value(active) : parameters),
	       "another number of parameters compute a token", &none);
	expect(entry, flops == NULL || wlb_cost_document(model, 1) == json_number_value(flops),
	       "a token takes another number of operations", &none);
}

static void check(void **state, const json_t *entry)
{
	const char *verdict = text_of(entry, "verdict"), *reason = text_of(entry, "reason");
	int is_trained = strcmp(verdict, "trained") == 0, is_planned = is_trained || strcmp(verdict, "planned") == 0;
	struct wlb_model trained, planned;
	struct wlb_error error = {""}, of_plan = {""};
	const json_t *compared = json_object_get(entry, "compared");
	expect(entry, json_is_null(compared) || json_is_string(compared), "compared is a file's name or null", &error);
	int rc = read_as(state, entry, WLB_MODEL_TO_TRAIN, &trained, &error);
	expect(entry, (rc == 0) == is_trained, "to train", &error);
	expect(entry, is_trained || (reason[0] != '\0' && strstr(error.message, reason) != NULL), reason, &error);
	if (is_trained) {
		check_shape(entry, &trained);
		int64_t window = json_integer_value(json_object_get(entry, "window"));
		expect(entry, trained.sliding_window == window, "it has another window", &error);
	}
	rc = read_as(state, entry, WLB_MODEL_TO_PLAN, &planned, &of_plan);
	expect(entry, (rc == 0) == is_planned, "to plan", &of_plan);
	if (is_planned)
		check_shape(entry, &planned);
}

static void every_published_model_is_what_its_row_says(void **state)
{
	json_error_t json_error;
	json_t *models = json_load_file(WLB_PUBLISHED_MODELS, 0, &json_error);
	size_t i;
	const json_t *entry;
	if (models == NULL)
		fail_msg("%s: line %d: %s", WLB_PUBLISHED_MODELS, json_error.line, json_error.text);
	assert_true(json_array_size(models) >= 40);
	json_array_foreach(models, i, entry)
	{
		check(state, entry);
	}
	json_decref(models);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_published_model_is_what_its_row_says, fixture_setup,
	                                        fixture_teardown),
	};
	return cmocka_run_group_tests_name("published_models", tests, NULL, NULL);
}
