#include "coordinator/wlbd/database/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void each_type_is_written_as_libpq_sends_it(void **state)
{
	struct wlbd_params params = {0};
	(void)state;
	wlbd_params_add_integer(&params, INT64_MIN);
	wlbd_params_add_integer(&params, INT64_MAX);
	wlbd_params_add_text(&params, "it's");
	wlbd_params_add_text(&params, NULL);
	wlbd_params_add_seconds(&params, 1700000000.25);
	wlbd_params_add_boolean(&params, true);
	wlbd_params_add_boolean(&params, false);
	wlbd_params_add_integer_if(&params, true, 7);
	wlbd_params_add_integer_if(&params, false, 7);
	wlbd_params_add_integer(&params, 0);
	while (params.count < WLBD_PARAMS_MAX)
		wlbd_params_add_text(&params, "");
	assert_string_equal(params.list[0], "-9223372036854775808");
	assert_string_equal(params.list[1], "9223372036854775807");
	assert_string_equal(params.list[2], "it's");
	assert_null(params.list[3]);
	assert_string_equal(params.list[4], "1700000000.250000");
	assert_string_equal(params.list[5], "t");
	assert_string_equal(params.list[6], "f");
	assert_string_equal(params.list[7], "7");
	assert_null(params.list[8]);
	assert_string_equal(params.list[9], "0");
	assert_string_equal(params.list[WLBD_PARAMS_MAX - 1], "");
}

static void a_copy_outlives_what_it_was_made_from(void **state)
{
	struct wlbd_params params = {0};
	char text[] = "node n1 is lost";
	size_t bytes = 0;
	(void)state;
	wlbd_params_add_integer(&params, 42);
	wlbd_params_add_text(&params, text);
	wlbd_params_add_text(&params, NULL);
	struct wlbd_params *copy = wlbd_params_copy(&params, &bytes);
	memset(text, 'x', sizeof(text));
	memset(&params, 'x', sizeof(params));
	assert_int_equal(copy->count, 3);
	assert_string_equal(copy->list[0], "42");
	assert_string_equal(copy->list[1], "node n1 is lost");
	assert_null(copy->list[2]);
	assert_int_equal(bytes, strlen("42") + strlen("node n1 is lost") + 2);
	free(copy);
}

/* PostgreSQL refuses a statement whose texts are not in UTF-8. */
static void texts_are_utf8(void **state)
{
	struct wlbd_params params = {0};
	const char *texts[WLBD_PARAMS_MAX];
	char *memory;
	(void)state;
	wlbd_params_add_text(&params, "caf\xe9");
	wlbd_params_add_text(&params, "caf\xc3\xa9\n");
	wlbd_params_add_text(&params, NULL);
	wlbd_params_add_integer(&params, 42);
	wlbd_params_add_text(&params, "\xff\xfe");
	assert_int_equal(wlbd_params_texts(&params, texts, &memory), 0);
	assert_string_equal(texts[0], "caf\xef\xbf\xbd");
	assert_ptr_equal(texts[1], params.list[1]);
	assert_null(texts[2]);
	assert_ptr_equal(texts[3], params.list[3]);
	assert_string_equal(texts[4], "\xef\xbf\xbd\xef\xbf\xbd");
	free(memory);
	params = (struct wlbd_params){0};
	wlbd_params_add_text(&params, "");
	assert_int_equal(wlbd_params_texts(&params, texts, &memory), 0);
	assert_ptr_equal(texts[0], params.list[0]);
	assert_null(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_is_written_as_libpq_sends_it),
		cmocka_unit_test(a_copy_outlives_what_it_was_made_from),
		cmocka_unit_test(texts_are_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
