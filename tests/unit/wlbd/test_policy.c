#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/wlbd/requests/policy.h"

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
		cmocka_unit_test(on_fault_is_stored_as_items),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
