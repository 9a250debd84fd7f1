/* The sections of `wlb show`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/wlb/history/show_sections.h"

/* Returns what the section prints, which the caller frees. */
static char *printed(int (*section)(const json_t *), const json_t *value)
{
	char *text = NULL;
	size_t size;
	FILE *kept = stdout;
	stdout = open_memstream(&text, &size);
	int rc = section(value);
	fclose(stdout);
	stdout = kept;
	assert_int_equal(rc, 0);
	return text;
}

static void expect(int (*section)(const json_t *), json_t *value, const char *expected)
{
	assert_non_null(value);
	char *text = printed(section, value);
	assert_string_equal(text, expected);
	free(text);
	json_decref(value);
}

static void small_learning_rates_have_their_digits(void **state)
{
	expect(wlb_show_steps,
	       json_pack("[{s:i, s:f, s:f}, {s:i, s:f, s:f}, {s:i}]", "step", 1, "lr", 2.5e-7, "loss", 2.0, "step", 2,
	                 "lr", 0.001, "loss", 1.0, "step", 3),
	       "\nSteps\n"
	       "  STEP  ATTEMPT      LOSS  GRAD NORM       LR  TOKENS  SECONDS  TOKENS/S\n"
	       "     1        -  2.000000          -  2.5e-07       -        -         -\n"
	       "     2        -  1.000000          -    0.001       -        -         -\n"
	       "     3        -         -          -        -       -        -         -\n");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_learning_rates_have_their_digits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
