#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/fault_kinds.h"
#include "common/rank_end.h"

static void every_kind_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int kind = 0; kind < WLB_FAULT_KIND_COUNT; kind++) {
		assert_non_null(wlb_faults[kind].name);
		for (int other = 0; other < kind; other++)
			assert_string_not_equal(wlb_faults[kind].name, wlb_faults[other].name);
	}
}

static void ends_have_their_strength(void **state)
{
	static const struct {
		int exit_code;
		enum wlb_end_strength strength;
		bool is_own, may_be_slurms;
	} cases[] = {
		{0, WLB_END_EXITED, false, false},
		{1, WLB_END_EXITED, false, false},
		{255, WLB_END_EXITED, false, false},
		{SIGSEGV, WLB_END_EXITED, false, false}, /* an exit code, not a signal */
		{128 + SIGABRT, WLB_END_EXITED, false, false},
		{128 + SIGHUP, WLB_END_EXITED, false, false},
		{128 + SIGTERM, WLB_END_EXITED, false, true},
		{128 + SIGPIPE, WLB_END_BROKEN_PIPE, false, false},
		{128 + SIGKILL, WLB_END_KILLED, false, true},
		{128 + SIGSEGV, WLB_END_KILLED, true, false},
		{128 + SIGBUS, WLB_END_KILLED, true, false},
		{128 + SIGILL, WLB_END_KILLED, true, false},
		{128 + SIGFPE, WLB_END_KILLED, true, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wlb_rank_end_strength(cases[i].exit_code), cases[i].strength);
		assert_int_equal(wlb_rank_end_is_own(cases[i].exit_code), cases[i].is_own);
		assert_int_equal(wlb_rank_end_may_be_slurms(cases[i].exit_code), cases[i].may_be_slurms);
	}
}

static void an_end_is_told_in_one_line(void **state)
{
	char text[64];
	(void)state;
	wlb_rank_end_text(text, sizeof(text), 3, "n2", 137);
	assert_string_equal(text, "rank 3 on n2 was killed by signal 9");
	wlb_rank_end_text(text, sizeof(text), 0, "n1", 7);
	assert_string_equal(text, "rank 0 on n1 ended with exit code 7");
	wlb_rank_end_text(text, sizeof(text), 1, "n\n1", 0);
	assert_string_equal(text, "rank 1 on n 1 is lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_name_of_its_own),
		cmocka_unit_test(ends_have_their_strength),
		cmocka_unit_test(an_end_is_told_in_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
