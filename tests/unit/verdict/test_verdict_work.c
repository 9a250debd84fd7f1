/* Predicted work that leaves out the fixed time of operations: ranks whose work differs from their peers'. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { ONSET = 40, OTHER = 3 };

/* Of the run under test: the share of the time of the usual work that is fixed, the work of rank OTHER, and which rank
 * takes longer by what factor from which step on. */
static struct {
	double fixed, work;
	int32_t slow_rank;
	double slow_times;
	int64_t slow_from;
} facts;

static void compute(const struct run *run, struct wlb_verdict_step *step)
{
	step->computed_s *= facts.fixed + (1.0 - facts.fixed) * step->work;
	if (step->rank == facts.slow_rank && run->step >= facts.slow_from)
		step->computed_s *= facts.slow_times;
}

static void one_has_other_work(const struct run *run, struct wlb_verdict_step *step)
{
	step->work = step->rank == OTHER ? facts.work : 1.0;
	compute(run, step);
}

/* Each rank has other work in each step, and one always less. */
static void all_have_other_work(const struct run *run, struct wlb_verdict_step *step)
{
	step->work = 0.5 + 0.1 * (double)((step->rank * 7 + run->step * 13) % 11);
	if (step->rank == OTHER)
		step->work = facts.work;
	compute(run, step);
}

/* The work of one becomes other in the middle of the run. */
static void one_has_other_work_later(const struct run *run, struct wlb_verdict_step *step)
{
	step->work = step->rank == OTHER && run->step >= ONSET ? facts.work : 1.0;
	compute(run, step);
}

typedef void change_function(const struct run *run, struct wlb_verdict_step *step);
static change_function *const changes[] = {one_has_other_work, all_have_other_work, one_has_other_work_later};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };
static const double shares[] = {0.0, 0.3, 0.7, 0.95};
static const double works[] = {0.1, 0.5, 0.8, 1.5, 4.0};
enum { SHARES = sizeof(shares) / sizeof(shares[0]), WORKS = sizeof(works) / sizeof(works[0]) };

static void begin(struct run *run, int four_dimensions, double fixed, double work, int32_t slow_rank, double slow_times)
{
	facts.fixed = fixed;
	facts.work = work;
	facts.slow_rank = slow_rank;
	facts.slow_times = slow_times;
	facts.slow_from = ONSET;
	run_begin(run, four_dimensions ? 2 : 1, 1, four_dimensions ? 2 : 1, 8, 4);
}

static void a_rank_whose_work_always_differs_is_healthy(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * CHANGES * SHARES * WORKS; i++) {
		struct run run;
		begin(&run, i % 2, shares[i / 2 % SHARES], works[i / 2 / SHARES % WORKS], -1, 1.0);
		run_expect_none(&run, 300, changes[i / 2 / SHARES / WORKS]);
		run_end(&run);
	}
}

static void expect_named(struct run *run, int32_t rank, change_function *change)
{
	run_expect_none(run, ONSET, change);
	run_until(run, WLB_VERDICT_SLOW_COMPUTE, 50, change);
	assert_int_equal(run->verdicts[0].rank_count, 1);
	assert_int_equal(run->verdicts[0].ranks[0], rank);
	/* What it takes longer does not become the norm. */
	run_steps(run, 300, change);
	assert_int_equal(run_expect_one(run, WLB_VERDICT_SLOW_COMPUTE, WLB_VERDICT_CONFIRMED)->ranks[0], rank);
}

/* The rank with other work itself, or a peer of it. */
static void a_rank_that_becomes_slow_is_named(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * 2 * SHARES * WORKS; i++) {
		struct run run;
		int32_t slow_rank = i % 2 == 0 ? OTHER : 5;
		begin(&run, 0, shares[i / 4 % SHARES], works[i / 4 / SHARES], slow_rank, 1.15);
		expect_named(&run, slow_rank, changes[i / 2 % 2]);
		run_end(&run);
	}
}

/* No fixed time makes a rank with less work take longer than those with more. */
static void a_rank_that_takes_longer_than_peers_with_more_work_is_named(void **state)
{
	(void)state;
	struct run run;
	begin(&run, 0, 1.0, 0.5, OTHER, 1.2);
	facts.slow_from = 0;
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, one_has_other_work);
	assert_int_equal(run.verdicts[0].ranks[0], OTHER);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_whose_work_always_differs_is_healthy),
		cmocka_unit_test(a_rank_that_becomes_slow_is_named),
		cmocka_unit_test(a_rank_that_takes_longer_than_peers_with_more_work_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
