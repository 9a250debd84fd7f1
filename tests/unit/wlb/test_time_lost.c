/* What `wlb show` prints of the time that a run lost. */
#include "coordinator/wlb/history/time_lost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is written of a reply; the caller frees it. Takes the reply. */
static char *section_of(json_t *run)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	assert_non_null(run);
	assert_int_equal(wlb_show_time_lost(run, out), 0);
	fclose(out);
	json_decref(run);
	return text;
}

static json_t *reply(const char *time_lost)
{
	json_t *lost = json_loads(time_lost, 0, NULL);
	assert_non_null(lost);
	return json_pack("{s:o}", "time_lost", lost);
}

static void test_a_line_for_each_cause(void **state)
{
	(void)state;
	char *text = section_of(reply("{\"held_s\":200,\"effective_s\":150.4,\"ettr\":0.752,\"causes\":["
	                              "{\"cause\":\"detect\",\"seconds\":4.25,\"share\":0.02125},"
	                              "{\"cause\":\"decide\",\"seconds\":0.04,\"share\":0.0002},"
	                              "{\"cause\":\"idle\",\"seconds\":45,\"share\":0.225},"
	                              "{\"cause\":\"later\",\"seconds\":0.21,\"share\":0.00105}]}"));
	assert_string_equal(text, "\nTime lost\n"
	                          "  ETTR 0.752: 2:30 of the 3:20 of allocated time advanced training\n"
	                          "  detect   4.2 s   2.1 %  from a fault until it was found\n"
	                          "  idle    45.0 s  22.5 %  ranks and nodes of the job that an attempt did not use\n"
	                          "  later    0.2 s   0.1 %  \n");
	free(text);
}

static void test_a_command_without_steps(void **state)
{
	(void)state;
	char *text = section_of(reply("{\"held_s\":64.5,\"effective_s\":null,\"ettr\":null,\"causes\":["
	                              "{\"cause\":\"start\",\"seconds\":1.5,\"share\":0.023256}]}"));
	assert_string_equal(
		text, "\nTime lost\n"
		      "  the job had its nodes allocated for 64.5 s; no step is recorded, so the ETTR is not known\n"
		      "  start  1.5 s  2.3 %  from the decision until the workers of the attempt had started\n");
	free(text);
}

/* A run that has just been announced, and a coordinator of an earlier release. */
static void test_nothing_to_say(void **state)
{
	(void)state;
	char *text = section_of(reply("{\"held_s\":0,\"effective_s\":0,\"ettr\":null,\"causes\":[]}"));
	assert_string_equal(text, "");
	free(text);
	text = section_of(json_object());
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_for_each_cause),
		cmocka_unit_test(test_a_command_without_steps),
		cmocka_unit_test(test_nothing_to_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
