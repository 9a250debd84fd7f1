/* Which calls are chosen: few in every window, evenly, and the same ones by ranks that choose more or fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/call_choice.h"

/* Makes `calls` calls from number *seq on, `calls_per_s` a second. Returns how many are chosen. */
static int choose(struct wlb_call_choice *choice, uint64_t *seq, double *now_s, int calls, double calls_per_s)
{
	int chosen = 0;
	for (int i = 0; i < calls; i++) {
		*now_s += 1.0 / calls_per_s;
		chosen += wlb_call_choice_has(choice, ++*seq, *now_s, 1.0);
	}
	return chosen;
}

static void few_are_chosen_at_every_rate(void **state)
{
	struct wlb_call_choice choice = {0};
	uint64_t seq = 0;
	double now_s = 1e6;
	(void)state;
	assert_int_equal(choose(&choice, &seq, &now_s, 40, 4.0), 40);
	for (double rate = 100.0; rate < 2e5; rate *= 10.0) {
		choose(&choice, &seq, &now_s, (int)(4.0 * rate), rate);
		assert_in_range(choose(&choice, &seq, &now_s, (int)(20.0 * rate), rate), 40, 20 * WLB_CALLS_CHOSEN_MAX);
	}
	/* It follows a rate that falls, within the calls that it takes to see that. */
	choose(&choice, &seq, &now_s, 400000, 2000.0);
	assert_in_range(choose(&choice, &seq, &now_s, 20000, 1000.0), 40, 20 * WLB_CALLS_CHOSEN_MAX);
}

static void fewer_are_among_more(void **state)
{
	struct wlb_call_choice often = {.thin = 5}, seldom = {.thin = 8};
	int both = 0, of_seldom = 0;
	(void)state;
	for (uint64_t seq = 1; seq <= 65536; seq++) {
		int has = wlb_call_choice_has(&often, seq, (double)seq, 0.5);
		often.thin = 5;
		if (!wlb_call_choice_has(&seldom, seq, (double)seq, 0.5))
			continue;
		seldom.thin = 8;
		of_seldom++;
		both += has;
	}
	assert_in_range(of_seldom, 250, 262);
	assert_int_equal(both, of_seldom);
}

/* Calls of a step, of which every eighth is of another kind: all kinds are chosen. */
static void calls_of_every_place_in_a_step_are_chosen(void **state)
{
	struct wlb_call_choice choice = {0};
	int chosen[8] = {0};
	(void)state;
	for (uint64_t seq = 1; seq <= 20000; seq++)
		chosen[seq % 8] += wlb_call_choice_has(&choice, seq, 0.01 * (double)seq, 1.0);
	for (int i = 0; i < 8; i++)
		assert_in_range(chosen[i], 40, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_chosen_at_every_rate),
		cmocka_unit_test(fewer_are_among_more),
		cmocka_unit_test(calls_of_every_place_in_a_step_are_chosen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
