#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/api.h"

static void queries_are_escaped(void **state)
{
	char path[64] = "/v1/runs";
	(void)state;
	wlb_api_query(path, sizeof(path), "limit", "5");
	wlb_api_query(path, sizeof(path), "user", "a b&c=\xc3\xa4");
	assert_string_equal(path, "/v1/runs?limit=5&user=a%20b%26c%3D%C3%A4");
}

static void a_query_stays_in_its_buffer(void **state)
{
	char path[16] = "/v1/runs";
	(void)state;
	wlb_api_query(path, sizeof(path), "user", "a very long name of a user");
	assert_true(strlen(path) < sizeof(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_are_escaped),
		cmocka_unit_test(a_query_stays_in_its_buffer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
