#include "tests/unit/verdict/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FIRST_STEP = 10, MOST_CALLS = 16 };

void run_begin(struct run *run, int tp, int cp, int pp, int dp, int ranks_per_node)
{
	struct wlb_verdict_layout layout = {tp, cp, pp, dp, ranks_per_node};
	struct wlb_verdict_error error;
	struct wlb_verdict_world *made = wlb_verdict_world_of_layout(&layout, &error);
	assert_non_null(made);
	run_begin_in(run, made);
	run->made = made;
}

void run_begin_in(struct run *run, const struct wlb_verdict_world *world)
{
	struct wlb_verdict_error error;
	memset(run, 0, sizeof(*run));
	run->world = world;
	run->space = RUN_VERDICTS;
	assert_in_range(run->world->ranks, 1, RUN_RANKS);
	assert_in_range(run->world->group_count, 0, RUN_GROUPS);
	run->detector = wlb_verdict_new(run->world, NULL, &error);
	assert_non_null(run->detector);
	for (int32_t r = 0; r < run->world->ranks; r++)
		run->rank[r] = (struct run_rank){.activity = WLB_VERDICT_COMPUTING,
		                                 .process = WLB_VERDICT_RUNNING,
		                                 .step = FIRST_STEP - 4,
		                                 .work = 1.0,
		                                 .group = -1,
		                                 .received_bytes = -1.0};
	/* Two steps of a second each before the one that the test is in. */
	for (int i = 0; i < 4; i++) {
		run_seconds(run, 1);
		for (int32_t r = 0; r < run->world->ranks; r++)
			run->rank[r].step++;
	}
	for (int32_t r = 0; r < run->world->ranks; r++)
		run_do(run, r, WLB_VERDICT_COMPUTING);
}

void run_end(struct run *run)
{
	wlb_verdict_free(run->detector);
	wlb_verdict_world_free(run->made);
}

void run_do(struct run *run, int32_t rank, enum wlb_verdict_activity activity)
{
	struct run_rank *mine = &run->rank[rank];
	if (mine->group >= 0)
		run->left[rank][mine->group] = run->entered[rank][mine->group];
	mine->group = -1;
	mine->activity = activity;
	mine->began_s = run->now_s;
}

void run_call(struct run *run, int32_t rank, int32_t group)
{
	run_do(run, rank, WLB_VERDICT_CALLING);
	run->rank[rank].group = group;
	run->entered[rank][group]++;
}

static void report(struct run *run, int32_t r)
{
	const struct run_rank *rank = &run->rank[r];
	struct wlb_verdict_call calls[MOST_CALLS];
	int32_t count = 0;
	for (int32_t g = 0; g < run->world->group_count; g++)
		for (int32_t m = 0; m < run->world->groups[g].count; m++)
			if (run->world->groups[g].members[m] == r)
				calls[count++] = (struct wlb_verdict_call){g, run->entered[r][g], run->left[r][g]};
	struct wlb_verdict_state state = {.rank = r,
	                                  .report = ++run->report,
	                                  .arrived_s = run->now_s + run->clock_s,
	                                  .activity = rank->activity,
	                                  .activity_s = run->now_s - rank->began_s,
	                                  .process = rank->process,
	                                  .step = rank->step,
	                                  .work = rank->work,
	                                  .group = rank->group,
	                                  .sequence = rank->group >= 0 ? run->entered[r][rank->group] : 0,
	                                  .received_bytes = rank->received_bytes,
	                                  .calls = calls,
	                                  .call_count = count};
	struct wlb_verdict_error error;
	assert_int_equal(wlb_verdict_take_state(run->detector, &state, &error), 0);
}

void run_seconds(struct run *run, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		run->now_s += 1.0;
		for (int32_t r = 0; r < run->world->ranks; r++)
			if (!run->rank[r].silent)
				report(run, r);
		run->count = wlb_verdict_judge(run->detector, run->now_s + run->clock_s, run->verdicts, run->space);
	}
}

const struct wlb_verdict *run_find(const struct run *run, enum wlb_verdict_kind kind)
{
	for (int32_t v = 0; v < run->count; v++)
		if (run->verdicts[v].kind == kind)
			return &run->verdicts[v];
	return NULL;
}

int32_t run_group(const struct run *run, enum wlb_verdict_group_kind kind, int32_t first, int32_t second)
{
	for (int32_t g = 0; g < run->world->group_count; g++) {
		const struct wlb_verdict_group *group = &run->world->groups[g];
		int has_first = 0, has_second = 0;
		for (int32_t m = 0; m < group->count; m++) {
			has_first |= group->members[m] == first && (kind != WLB_VERDICT_PP || m == 0);
			has_second |= group->members[m] == second;
		}
		if (group->kind == kind && has_first && has_second)
			return g;
	}
	fail_msg("ranks %d and %d are in no group of kind %d", first, second, (int)kind);
	return -1;
}

double run_random(struct run *run)
{
	uint64_t z = (run->random += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Nearly normal: the sum of uniform numbers. */
static double noise(struct run *run)
{
	double sum = -6.0;
	for (int i = 0; i < 12; i++)
		sum += run_random(run);
	return 0.02 * sum;
}

void run_step(struct run *run, void (*change)(const struct run *run, struct wlb_verdict_step *step))
{
	struct wlb_verdict_step steps[RUN_RANKS];
	double longest_s = 0.0;
	for (int32_t r = 0; r < run->world->ranks; r++) {
		steps[r] = (struct wlb_verdict_step){.rank = r,
		                                     .step = run->step,
		                                     .computed_s = exp(noise(run)),
		                                     .work = 1.0,
		                                     .has_loss = 1,
		                                     .loss = 3.0 + noise(run),
		                                     .has_gradient_norm = 1,
		                                     .gradient_norm = exp(noise(run))};
		if (change != NULL)
			change(run, &steps[r]);
		longest_s = fmax(longest_s, steps[r].computed_s + steps[r].loader_s);
	}
	for (int32_t r = 0; r < run->world->ranks; r++) {
		steps[r].seconds = longest_s + steps[r].aside_s;
		if (steps[r].rank >= 0)
			assert_int_equal(wlb_verdict_take_step(run->detector, &steps[r], NULL), 0);
	}
	run->step++;
	run->now_s += longest_s;
	run->count = wlb_verdict_judge(run->detector, run->now_s, run->verdicts, run->space);
}

void run_steps(struct run *run, int steps, void (*change)(const struct run *run, struct wlb_verdict_step *step))
{
	for (int i = 0; i < steps; i++)
		run_step(run, change);
}

int run_until(struct run *run, enum wlb_verdict_kind kind, int most,
              void (*change)(const struct run *run, struct wlb_verdict_step *step))
{
	for (int i = 1; i <= most; i++) {
		run_step(run, change);
		if (run->count == 0)
			continue;
		if (run->count != 1 || run->verdicts[0].kind != kind)
			fail_msg("%s: %s", wlb_verdict_kind_name(run->verdicts[0].kind), run->verdicts[0].evidence);
		return i;
	}
	fail_msg("no verdict of %s", wlb_verdict_kind_name(kind));
	return -1;
}

void run_expect_none(struct run *run, int steps, void (*change)(const struct run *run, struct wlb_verdict_step *step))
{
	for (int i = 0; i < steps; i++) {
		run_step(run, change);
		if (run->count > 0)
			fail_msg("%s: %s", wlb_verdict_kind_name(run->verdicts[0].kind), run->verdicts[0].evidence);
	}
}

void run_block_on_rank_0(struct run *run)
{
	run_call(run, 1, run_group(run, WLB_VERDICT_TP, 0, 1));
	run_call(run, 2, run_group(run, WLB_VERDICT_PP, 0, 2));
	run_call(run, 3, run_group(run, WLB_VERDICT_TP, 2, 3));
	for (int32_t r = 4; r < 8; r++)
		run_call(run, r, run_group(run, WLB_VERDICT_DP, r - 4, r));
}

void run_expect_no_verdict(const struct run *run)
{
	if (run->count > 0)
		fail_msg("%s: %s", wlb_verdict_kind_name(run->verdicts[0].kind), run->verdicts[0].evidence);
}

const struct wlb_verdict *run_expect_one(const struct run *run, enum wlb_verdict_kind kind,
                                         enum wlb_verdict_stage stage)
{
	assert_int_equal(run->count, 1);
	assert_string_equal(wlb_verdict_kind_name(run->verdicts[0].kind), wlb_verdict_kind_name(kind));
	assert_int_equal(run->verdicts[0].stage, stage);
	return &run->verdicts[0];
}
