/* Compares the order and the times of a pipeline's passes with closed forms and the rules of the schedule. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/simulation/sim_pipeline.h"
#include "tests/unit/libwlb/sim_cases.h"

static void assert_near(double got, double expected)
{
	if (fabs(got - expected) > 1e-9 * fabs(expected) + 1e-15)
		fail_msg("%.12g is not %.12g", got, expected);
}

/* m micro-batches over pp stages: (pp - 1) of (m + pp - 1) is bubble, interleaved a v-th of the idle time. */
static void bubble_of_equal_micro_batches_is_the_closed_form(void **state)
{
	(void)state;
	static const int cases[][3] = {{1, 1, 1}, {2, 1, 5}, {4, 1, 4}, {4, 1, 16},
	                               {8, 1, 3}, {4, 2, 4}, {4, 4, 8}, {2, 8, 6}};
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	int64_t tokens = 8192;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int pp = cases[i][0], v = cases[i][1], m = cases[i][2];
		struct wlb_plan plan = plan_of(1, 1, pp, 1, v, m);
		struct wlb_sim_options options;
		wlb_sim_options_init(&options, &plan);
		struct wlb_step step = equal_step(m, &tokens, 1);
		struct wlb_sim_result result = simulate(&model, &machine, &options, &step);
		assert_near(result.time.bubble_s / result.time.compute_s, (double)(pp - 1) / (v * m));
		free_step(&step);
	}
}

struct seen {
	double start_s, end_s;
	double free_s; /* when the stage's pass before ended */
	int count;
};

/* A pass starts when its stage is free and what it needs has come, at once, or while it is sent. */
static void check_start(const struct seen *pass, double needed_s, double sending_s)
{
	assert_true(pass->start_s >= needed_s && pass->start_s >= pass->free_s);
	assert_true(pass->start_s <= fmax(needed_s, pass->free_s) + sending_s);
}

/* Every pass once, in time, no stage in two at once. */
static void check_timeline(const struct wlb_plan *plan, const struct wlb_sim_event *events, size_t count, int replicas,
                           double sending_s)
{
	int pp = plan->layout.pp, v = plan->interleave, batches = replicas * plan->micro_batches, q_count = pp * v;
	struct seen *seen = calloc((size_t)(2 * q_count * batches), sizeof(*seen));
	assert_non_null(seen);
	assert_int_equal(count, 2 * q_count * batches);
	for (size_t i = 0; i < count; i++) {
		const struct wlb_sim_event *e = &events[i];
		assert_int_equal(e->micro_batch % replicas, e->replica);
		int follows = i > 0 && events[i - 1].stage == e->stage && events[i - 1].replica == e->replica;
		struct seen *s = &seen[(e->backward * q_count + e->chunk * pp + e->stage) * batches + e->micro_batch];
		*s = (struct seen){e->start_s, e->end_s, follows ? events[i - 1].end_s : 0.0, s->count + 1};
	}
	for (int j = 0; j < batches; j++)
		for (int q = 0; q < q_count; q++) {
			const struct seen *forward = &seen[q * batches + j], *backward = forward + q_count * batches;
			assert_int_equal(forward->count, 1);
			assert_int_equal(backward->count, 1);
			check_start(forward, q > 0 ? forward[-batches].end_s : 0.0, sending_s);
			check_start(backward, q < q_count - 1 ? backward[batches].end_s : forward->end_s, sending_s);
		}
	free(seen);
}

static void timelines_of_random_steps_keep_the_rules(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	machine.node_link = machine.network_link = (struct wlb_link){1e15, 0.0};
	struct wlb_error error;
	uint64_t random = 1;
	for (int round = 0; round < 200; round++) {
		int pp = 1 + (int)(random_bits(&random) % 6), v = pp > 1 ? 1 + (int)(random_bits(&random) % 4) : 1;
		int m = v > 1 ? pp * (1 + (int)(random_bits(&random) % 3)) : 1 + (int)(random_bits(&random) % 12);
		int dp = 1 + (int)(random_bits(&random) % 3);
		struct wlb_plan plan = plan_of(1, 1 + round % 2, pp, dp, v, m);
		struct wlb_sim_options options;
		wlb_sim_options_init(&options, &plan);
		struct wlb_step step = random_step(m * dp, 40000, &random);
		struct wlb_sim_result result;
		struct wlb_sim *sim = wlb_sim_new(&model, &machine, &options, &error);
		assert_non_null(sim);
		assert_int_equal(wlb_sim_step(sim, &step, &result, &error), 0);
		size_t count;
		const struct wlb_sim_event *events = wlb_sim_timeline(sim, &count);
		check_timeline(&plan, events, count, dp, 2e-6);
		assert_near(sum_of_parts(&result.time), result.time.step_s);
		wlb_sim_free(sim);
		free_step(&step);
	}
}

/* Data that is sent arrives later; without overlap, sending also blocks the stage. */
static void sending_takes_time(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	struct wlb_plan plan = plan_of(8, 1, 4, 1, 2, 8);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	int64_t tokens = 8192;
	struct wlb_step step = equal_step(8, &tokens, 1);
	double overlapped_s = simulate(&model, &machine, &options, &step).time.step_s;
	options.cost.overlap_pp = 0;
	struct wlb_sim_result held_up = simulate(&model, &machine, &options, &step);
	assert_true(held_up.time.step_s > overlapped_s);
	/* 16 passes send in each direction but for the ends: 2 x (8 x 8 - 8) sends over 4 stages. */
	double send_s = 14e-6 + 8192.0 * 4096 * 2 / 8 / 50e9;
	assert_true(held_up.time.pp_s > 20 * send_s && held_up.time.pp_s < 60 * send_s);
	free_step(&step);
}

/* WLB-LLM, figure 5: with as many micro-batches as stages, interleaved, the largest goes round all chunks. */
static void no_step_is_shorter_than_its_largest_micro_batch(void **state)
{
	(void)state;
	struct wlb_model model = llama_7b();
	struct wlb_machine machine = h100();
	int64_t large = 65536;
	struct wlb_plan plan = plan_of(1, 1, 4, 1, 4, 4);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &plan);
	struct wlb_packed_span span = {.span = {.tokens = large}, .micro_batch = 2};
	struct wlb_step step = {.spans = &span, .count = 1, .micro_batches = 4};
	struct wlb_sim_result alone = simulate(&model, &machine, &options, &step);
	assert_true(alone.time.step_s >= 4.0 * alone.time.compute_s);
	assert_true(alone.time.imbalance_s > alone.time.compute_s);
}

/* One stage, two micro-batches, two ranks, of which one has the longer first pass and the other the longer second. */
static void ranks_wait_for_those_of_their_documents_alone(void **state)
{
	(void)state;
	static const struct {
		int32_t first_lane[4]; /* [micro-batch, lane] */
		double end_s;
	} cases[] = {{{0, 1, 0, 1}, 4.0}, {{0, 0, 0, 1}, 6.0}, {{0, 1, 0, 0}, 6.0}, {{0, 0, 0, 0}, 6.0}};
	struct wlb_pass order[4];
	double forward_s[] = {3.0, 1.0, 1.0, 3.0}, zero[4] = {0.0}, ends_s[2][4], head_end_s[4], stage_end_s[2];
	double last_s[2];
	int64_t next;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t first_lane[4];
		memcpy(first_lane, cases[i].first_lane, sizeof(first_lane));
		struct wlb_sim_pipeline pipeline = {
			.plan = plan_of(1, 1, 1, 1, 1, 2),
			.lanes = 2,
			.first_lane = first_lane,
			.order = order,
			.forward_s = forward_s,
			.backward_s = zero,
			.send_s = zero,
			.head_s = zero,
			.head_send_s = zero,
			.head_end_s = head_end_s,
			.forward_end_s = ends_s[0],
			.backward_end_s = ends_s[1],
			.stage_end_s = stage_end_s,
			.last_start_s = &last_s[0],
			.last_end_s = &last_s[1],
			.next = &next,
		};
		wlb_sim_pipeline_order(&pipeline);
		assert_near(wlb_sim_pipeline_run(&pipeline), cases[i].end_s);
		assert_near(last_s[1], cases[i].end_s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bubble_of_equal_micro_batches_is_the_closed_form),
		cmocka_unit_test(timelines_of_random_steps_keep_the_rules),
		cmocka_unit_test(sending_takes_time),
		cmocka_unit_test(no_step_is_shorter_than_its_largest_micro_batch),
		cmocka_unit_test(ranks_wait_for_those_of_their_documents_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
