/* The argument RUN of subcommands. */
#include "coordinator/wlb/run_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/api.h"

static char asked[1024];
static const char *reply; /* NULL: the coordinator does not answer */

json_t *__wrap_wlb_api_get(const char *path, struct wlb_error *error);
json_t *__wrap_wlb_api_get(const char *path, struct wlb_error *error)
{
	snprintf(asked, sizeof(asked), "%s", path);
	if (reply == NULL)
		wlb_fail(error, "no answer");
	return reply != NULL ? json_loads(reply, 0, NULL) : NULL;
}

static void a_name_is_checked_and_asks_nothing(void **state)
{
	static const char *const good[] = {"12", "12.2", "12_1", "15+1"}, *const bad[] = {"", "12/steps", "a b", "?x"};
	char name[WLB_RUN_NAME_BYTES];
	struct wlb_error error;
	(void)state;
	asked[0] = '\0';
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(wlb_run_name_find(good[i], name, &error), WLB_EXIT_DONE);
		assert_string_equal(name, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wlb_run_name_find(bad[i], name, &error), WLB_EXIT_USAGE);
	assert_int_equal(
		wlb_run_name_find("0123456789012345678901234567890123456789012345678901234567890123", name, &error),
		WLB_EXIT_USAGE);
	assert_string_equal(asked, "");
}

static void last_is_the_newest_of_the_user(void **state)
{
	char name[WLB_RUN_NAME_BYTES] = "";
	struct wlb_error error;
	(void)state;
	reply = "{\"runs\":[{\"run_id\":\"17.2\"}],\"left_out\":0}";
	assert_int_equal(wlb_run_name_find("last", name, &error), WLB_EXIT_DONE);
	assert_string_equal(name, "17.2");
	assert_non_null(strstr(asked, "/v1/runs?limit=1&user="));
	reply = "{\"runs\":[],\"left_out\":0}";
	assert_int_equal(wlb_run_name_find("last", name, &error), WLB_EXIT_FAILED);
	assert_non_null(strstr(error.message, "has no run"));
	reply = "{\"runs\":[{\"run_id\":\"../x\"}]}"; /* not into the path of a request */
	assert_int_equal(wlb_run_name_find("last", name, &error), WLB_EXIT_FAILED);
	reply = NULL;
	assert_int_equal(wlb_run_name_find("last", name, &error), WLB_EXIT_FAILED);
	assert_string_equal(error.message, "no answer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_checked_and_asks_nothing),
		cmocka_unit_test(last_is_the_newest_of_the_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
