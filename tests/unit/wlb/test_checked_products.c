/* What `wlb run` concludes from the report of a node's check that has no failure. */
#include "coordinator/wlb/run/check/checked_products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GPUS "{\"check\": \"gpus\", \"verdict\": \"ok\", \"measured\": \"this process sees 2\", \"limit\": null}"
#define PRODUCTS(verdict, measured)                                                                                    \
	"{\"check\": \"products\", \"verdict\": \"" verdict "\", \"measured\": \"" measured "\", \"limit\": null}"

static void assert_why(const char *checks, const char *expected)
{
	char text[1000], why[200];
	snprintf(text, sizeof(text), "{\"node\": \"n1\", \"healthy\": true, \"reason\": null, \"checks\": [%s]}",
	         checks);
	json_t *report = json_loads(text, 0, NULL);
	assert_non_null(report);
	wlb_run_unchecked_products(report, why, sizeof(why));
	assert_string_equal(why, expected);
	json_decref(report);
}

static void test_exact_products(void **state)
{
	(void)state;
	assert_why(GPUS ", " PRODUCTS("ok", "9 products are exact"), "");
	assert_why(PRODUCTS("ok", "9 products are exact") ", " GPUS, "");
}

static void test_products_that_were_not_checked(void **state)
{
	(void)state;
	assert_why(GPUS ", " PRODUCTS("not checked", "in use by other processes: gpu 1"),
	           "products: in use by other processes: gpu 1");
	assert_why(GPUS, "its check says nothing of products");
	assert_why("", "its check says nothing of products");
	assert_why("{\"check\": \"products\"}", "its check says nothing of products");
	assert_why("\"products\"", "its check says nothing of products");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_products),
		cmocka_unit_test(test_products_that_were_not_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
