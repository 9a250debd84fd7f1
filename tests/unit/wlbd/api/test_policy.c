#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/job_options.h"
#include "coordinator/wlbd/api/policy.h"

/* What is stored of a policy. */
static void expect_stored(const char *sent, const char *stored)
{
	struct wlb_error error;
	json_t *policy = json_loads(sent, 0, NULL);
	assert_int_equal(wlbd_policy_check(policy, &error), 0);
	char *text = wlbd_policy_text(policy);
	assert_string_equal(text, stored);
	free(text);
	json_decref(policy);
}

static void known_options_are_stored(void **state)
{
	expect_stored("{\"layout\":\"auto\",\"spares\":1,\"grow_s\":600,\"colour\":\"red\"}",
	              "{\"layout\":\"auto\",\"spares\":1,\"grow_s\":600}");
	char *none = wlbd_policy_text(NULL);
	assert_string_equal(none, "{}");
	free(none);
	(void)state;
}

/* An option that the table has must not be accepted and dropped. */
static void every_option_is_stored(void **state)
{
	struct wlb_error error;
	json_t *policy = json_object();
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++) {
		const struct wlb_job_option *option = &wlb_job_options[i];
		static const char *const texts[] = {
			[WLB_JOB_FILE] = "/m.json", [WLB_JOB_POLICY] = "auto", [WLB_JOB_ITEMS] = "hang=report"};
		json_object_set_new(policy, option->key,
		                    option->kind == WLB_JOB_NUMBER ? json_integer(option->max)
		                                                   : json_string(texts[option->kind]));
	}
	assert_int_equal(wlbd_policy_check(policy, &error), 0);
	char *text = wlbd_policy_text(policy);
	json_t *stored = json_loads(text, 0, NULL);
	assert_true(json_equal(stored, policy));
	json_decref(stored);
	json_decref(policy);
	free(text);
	(void)state;
}

/* The schema merges them by their keys. */
static void on_fault_is_stored_as_items(void **state)
{
	expect_stored(
		"{\"on_fault\":\"evict,slow=report,hang-after=5m\"}",
		"{\"on_fault\":\"crash=evict,hang=evict,slow=report,corrupt=evict,outliers=evict,hang-after=300\"}");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_options_are_stored),
		cmocka_unit_test(every_option_is_stored),
		cmocka_unit_test(on_fault_is_stored_as_items),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
