#include "coordinator/wlbd/http/body_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t values(const char *text)
{
	return wlbd_body_size(text, strlen(text)).values;
}

static void counts_no_less_than_there_are(void **state)
{
	(void)state;
	assert_int_equal(values(""), 1);
	assert_int_equal(values("{}"), 2);
	assert_int_equal(values("[1,2,3]"), 4);
	assert_int_equal(values("{\"a\":1,\"b\":[2,3]}"), 7);
}

static void what_is_in_a_text_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(values("\",,,,[[[[\""), 1);
	assert_int_equal(values("\"a\\\",,,\""), 1);
	assert_int_equal(values("\"a\\\\\",1"), 2);
	assert_int_equal(values("\"never closed ,,,\\"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_no_less_than_there_are),
		cmocka_unit_test(what_is_in_a_text_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
