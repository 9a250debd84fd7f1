/* The order of a pipeline's passes and which layers its chunks have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/wlb.h"

struct shape {
	int pp;
	int interleave;
	int micro_batches;
	int shared_head;
	int recompute;
};

static const struct shape shapes[] = {
	{1, 1, 1, 0, 0}, {1, 1, 5, 0, 0},  {2, 1, 1, 0, 0},
	{2, 1, 7, 0, 0}, {4, 1, 2, 0, 0},  {4, 1, 8, 0, 0},
	{2, 2, 2, 0, 0}, {2, 3, 8, 0, 0},  {4, 2, 4, 0, 0},
	{3, 4, 9, 0, 0}, {2, 1, 1, 1, 0},  {2, 1, 7, 1, 0},
	{3, 1, 5, 1, 0}, {4, 1, 2, 1, 0},  {4, 1, 8, 1, 0},
	{8, 1, 3, 1, 0}, {8, 1, 16, 1, 0}, {8, 1, 16, 1, WLB_RECOMPUTE_FULL},
	{2, 2, 2, 1, 0}, {2, 3, 8, 1, 0},  {4, 2, 4, 1, 0},
	{3, 4, 9, 1, 0}, {4, 4, 16, 1, 0}, {8, 2, 16, 1, 0},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct wlb_plan plan_of(const struct shape *s)
{
	return (struct wlb_plan){.layout = {.tp = 1, .cp = 1, .pp = s->pp, .dp = 1},
	                         .interleave = s->interleave,
	                         .micro_batches = s->micro_batches,
	                         .shared_head = s->shared_head,
	                         .recompute = (enum wlb_recompute)s->recompute};
}

static int is_last_stage(const struct wlb_plan *plan, int32_t stage)
{
	return stage == plan->layout.pp - 1;
}

/* Whenever as many chunks are in flight as ever, so many of them are the first. */
static void the_first_chunk_is_in_flight_so_often(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		int64_t least = INT64_MAX, in_flight = 0, first = 0;
		for (int64_t n = 0; n < wlb_plan_passes(&plan, 0); n++) {
			struct wlb_pass pass = wlb_plan_pass(&plan, 0, n);
			int64_t change = pass.head ? 0 : pass.backward ? -1 : 1;
			in_flight += change;
			first += pass.chunk == 0 ? change : 0;
			if (in_flight == wlb_plan_in_flight(&plan, 0) && first < least)
				least = first;
		}
		assert_int_equal(wlb_plan_first_in_flight(&plan, 0), least);
	}
}

/* Every forward and backward pass once, a backward one after its forward one, and never more than warm-up and one
 * forward passes without theirs. A share of the head is between the two, on all stages but the last. */
static void every_pass_comes_once(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		for (int32_t stage = 0; stage < plan.layout.pp; stage++) {
			char done[64][2] = {{0}}, shares[64] = {0};
			int64_t in_flight = 0, heads = plan.shared_head && !is_last_stage(&plan, stage);
			int64_t all = (2 * plan.interleave + heads) * plan.micro_batches;
			struct wlb_pass order[3 * 64];
			assert_int_equal(wlb_plan_passes(&plan, stage), all);
			assert_int_equal(wlb_plan_order(&plan, stage, order), all);
			for (int64_t n = 0; n < all; n++) {
				struct wlb_pass pass = wlb_plan_pass(&plan, stage, n);
				assert_memory_equal(&pass, &order[n], sizeof(pass));
				assert_in_range(pass.chunk, 0, plan.interleave - 1);
				assert_in_range(pass.micro_batch, 0, plan.micro_batches - 1);
				char *at = done[pass.chunk * plan.micro_batches + pass.micro_batch];
				if (pass.head) {
					assert_true(heads && at[0] && !at[1] && pass.chunk == plan.interleave - 1);
					assert_int_equal(shares[pass.micro_batch]++, 0);
					continue;
				}
				assert_int_equal(at[pass.backward], 0);
				if (pass.backward && pass.chunk == plan.interleave - 1)
					assert_int_equal(shares[pass.micro_batch], heads);
				at[pass.backward] = 1;
				assert_int_equal(at[0], 1);
				in_flight += pass.backward ? -1 : 1;
				assert_true(in_flight <= wlb_plan_warmup(&plan, stage) + 1);
			}
			assert_int_equal(in_flight, 0);
		}
	}
}

/* Which place of the model a pass runs, and which it takes its input from; -1: none. */
static int source_of(const struct wlb_plan *plan, int32_t stage, struct wlb_pass pass)
{
	int place = pass.chunk * plan->layout.pp + stage, last = plan->layout.pp * plan->interleave - 1;
	if (pass.backward)
		return place == last ? -1 : place + 1;
	return place - 1;
}

/* Passes that have been run: [place, micro-batch, backward], [stage, micro-batch] of the head. */
struct done {
	char passes[16][16][2], shares[8][16];
	int64_t next[8]; /* of each stage */
};

/* Returns 1 where the stage that has the head has begun, or waits in, the backward pass over this micro-batch. */
static int takes_gradients(const struct wlb_plan *plan, const struct done *done, int32_t micro_batch)
{
	int32_t last = plan->layout.pp - 1;
	for (int64_t n = 0; n <= done->next[last] && n < wlb_plan_passes(plan, last); n++) {
		struct wlb_pass pass = wlb_plan_pass(plan, last, n);
		if (pass.backward && pass.chunk == plan->interleave - 1 && pass.micro_batch == micro_batch)
			return 1;
	}
	return 0;
}

/* Returns 1 where a stage can run the pass: what it needs has been computed, and a stage's share of the head has sent
 * the gradients of the micro-batch before, for which the last stage must have asked. */
static int can_run(const struct wlb_plan *plan, const struct done *done, int32_t stage, struct wlb_pass pass)
{
	int last = plan->layout.pp * plan->interleave - 1, source = source_of(plan, stage, pass);
	if (pass.head)
		return done->passes[last][pass.micro_batch][0] &&
		       (pass.micro_batch == 0 || takes_gradients(plan, done, pass.micro_batch - 1));
	for (int s = 0; source < 0 && pass.backward && plan->shared_head && s < plan->layout.pp - 1; s++)
		if (!done->shares[s][pass.micro_batch])
			return 0;
	return source < 0 || done->passes[source][pass.micro_batch][pass.backward];
}

/* Every stage runs its passes in order and waits for what it needs: all come to their end. */
static void no_order_locks_up(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		struct done done = {0};
		for (int64_t moved = 1; moved > 0;) {
			moved = 0;
			for (int32_t stage = 0; stage < plan.layout.pp; stage++) {
				if (done.next[stage] == wlb_plan_passes(&plan, stage))
					continue;
				struct wlb_pass pass = wlb_plan_pass(&plan, stage, done.next[stage]);
				if (!can_run(&plan, &done, stage, pass))
					continue;
				int place = pass.chunk * plan.layout.pp + stage;
				if (pass.head)
					done.shares[stage][pass.micro_batch] = 1;
				else
					done.passes[place][pass.micro_batch][pass.backward] = 1;
				done.next[stage]++;
				moved++;
			}
		}
		for (int32_t stage = 0; stage < plan.layout.pp; stage++)
			assert_int_equal(done.next[stage], wlb_plan_passes(&plan, stage));
	}
}

/* What goes from one stage to another arrives in the order in which it is taken: no message needs a name. */
static void neighbours_agree_on_the_order(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		int pp = plan.layout.pp;
		for (int from = 0; pp > 1 && from < pp; from++)
			for (int backward = 0; backward < 2; backward++) {
				int to = (from + (backward ? pp - 1 : 1)) % pp;
				int64_t taken = 0;
				for (int64_t n = 0; n < wlb_plan_passes(&plan, from); n++) {
					struct wlb_pass sent = wlb_plan_pass(&plan, from, n);
					int place = sent.chunk * pp + from + (backward ? -1 : 1);
					if (sent.head || sent.backward != backward || place < 0 ||
					    place >= pp * plan.interleave)
						continue;
					struct wlb_pass pass;
					do {
						assert_true(taken < wlb_plan_passes(&plan, to));
						pass = wlb_plan_pass(&plan, to, taken++);
					} while (pass.head || pass.backward != backward ||
					         source_of(&plan, to, pass) < 0);
					assert_int_equal(pass.micro_batch, sent.micro_batch);
					assert_int_equal(pass.chunk, place / pp);
				}
			}
	}
}

static void write_order(const struct wlb_plan *plan, int32_t stage, char *text, size_t size)
{
	size_t length = 0;
	for (int64_t n = 0; n < wlb_plan_passes(plan, stage) && length < size; n++) {
		struct wlb_pass pass = wlb_plan_pass(plan, stage, n);
		length += (size_t)snprintf(text + length, size - length, "%s%c%d.%d", n > 0 ? " " : "",
		                           pass.head       ? 'H'
		                           : pass.backward ? 'B'
		                                           : 'F',
		                           pass.chunk, pass.micro_batch);
	}
}

/* As drawn in Narayanan et al. 2021, figures 3 and 4; with a shared head, as its description has it. */
static void orders_are_the_published_ones(void **state)
{
	(void)state;
	char text[512];
	struct wlb_plan plain = plan_of(&(struct shape){4, 1, 5, 0, 0});
	write_order(&plain, 0, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 B0.2 B0.3 B0.4");
	write_order(&plain, 3, text, sizeof(text));
	assert_string_equal(text, "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3 F0.4 B0.4");
	struct wlb_plan shared = plan_of(&(struct shape){2, 1, 4, 1, 0});
	write_order(&shared, 0, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 H0.0 F0.2 H0.1 B0.0 F0.3 H0.2 B0.1 H0.3 B0.2 B0.3");
	write_order(&shared, 1, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3");
	struct wlb_plan interleaved = plan_of(&(struct shape){2, 2, 4, 0, 0});
	write_order(&interleaved, 0, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
	write_order(&interleaved, 1, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
}

/* What wlb_plan_stage_layers returns are the layers of the stage's chunks. */
static void check_stage_layers(const struct wlb_plan *plan, const struct wlb_model *model)
{
	for (int32_t stage = 0; stage < plan->layout.pp; stage++) {
		int64_t sum = 0;
		for (int32_t chunk = 0; chunk < plan->interleave; chunk++)
			sum += wlb_plan_layers(plan, model, stage, chunk);
		assert_int_equal(wlb_plan_stage_layers(plan, model, stage), sum);
	}
}

/* Chunk after chunk along the places, with sizes that differ by one layer at most, the first the larger. */
static void layers_follow_each_other(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++)
		for (int64_t layers = (int64_t)shapes[i].pp * shapes[i].interleave; layers < 40; layers++) {
			struct wlb_plan plan = plan_of(&shapes[i]);
			struct wlb_model model = {.num_hidden_layers = layers};
			int64_t next = 0, first = wlb_plan_layers(&plan, &model, 0, 0);
			for (int place = 0; place < plan.layout.pp * plan.interleave; place++) {
				int32_t stage = place % plan.layout.pp, chunk = place / plan.layout.pp;
				int64_t here = wlb_plan_layers(&plan, &model, stage, chunk);
				assert_int_equal(wlb_plan_first_layer(&plan, &model, stage, chunk), next);
				assert_true(here == first || here == first - 1);
				next += here;
			}
			assert_int_equal(next, layers);
			check_stage_layers(&plan, &model);
		}
}

/* As Megatron-LM's --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split: what counts as
 * a layer takes the place of one, in the first chunk and in the last. */
static void embedding_and_head_count_as_layers(void **state)
{
	(void)state;
	static const struct {
		int64_t layers;
		int pp, interleave, embedding, loss;
		int64_t first, others, last;
	} cases[] = {
		{126, 16, 8, 1, 1, 0, 1, 0}, /* Llama 3 405B (Dubey et al., 2024) */
		{126, 16, 1, 1, 1, 7, 8, 7}, {126, 128, 1, 1, 1, 0, 1, 0}, {31, 4, 1, 0, 1, 8, 8, 7},
		{31, 4, 1, 1, 0, 7, 8, 8},   {30, 4, 2, 1, 1, 3, 4, 3},    {61, 8, 1, 1, 2, 7, 8, 6},
		{61, 8, 1, 3, 0, 5, 8, 8},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_plan plan = plan_of(&(struct shape){cases[i].pp, cases[i].interleave, cases[i].pp, 0, 0});
		struct wlb_model model = {.num_hidden_layers = cases[i].layers};
		plan.account_for_embedding = cases[i].embedding;
		plan.account_for_loss = cases[i].loss;
		int64_t next = 0;
		int places = cases[i].pp * cases[i].interleave;
		for (int place = 0; place < places; place++) {
			int32_t stage = place % cases[i].pp, chunk = place / cases[i].pp;
			int64_t expected = place == 0            ? cases[i].first
			                   : place == places - 1 ? cases[i].last
			                                         : cases[i].others;
			assert_int_equal(wlb_plan_layers(&plan, &model, stage, chunk), expected);
			assert_int_equal(wlb_plan_first_layer(&plan, &model, stage, chunk), next);
			next += expected;
		}
		assert_int_equal(next, cases[i].layers);
		check_stage_layers(&plan, &model);
	}
}

/* 16 x 8 chunks on 126 layers need both accounts; all layers stay where there is one chunk. */
static void accounts_are_checked(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_model model = {.num_hidden_layers = 126, .num_attention_heads = 8, .num_key_value_heads = 8};
	struct wlb_plan plan = plan_of(&(struct shape){16, 8, 16, 0, 0});
	plan.account_for_embedding = 1;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1);
	assert_non_null(strstr(error.message, "one more for each of embedding and loss"));
	plan.account_for_loss = 1;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), 0);
	plan.account_for_loss = 2;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1);
	assert_non_null(strstr(error.message, "must be 0 or 1"));
	plan.interleave = 1; /* 126 + 1 + 2 */
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1);
	assert_non_null(strstr(error.message, "where pp divides their sum with num_hidden_layers"));
	model.num_hidden_layers = 125;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), 0);
	model.num_hidden_layers = 29;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1); /* 2 is a whole stage */
	model.num_hidden_layers = 126;
	struct wlb_plan one = plan_of(&(struct shape){1, 1, 1, 0, 0});
	one.account_for_embedding = one.account_for_loss = 1;
	assert_int_equal(wlb_plan_check(&one, &model, &error), 0);
	assert_int_equal(wlb_plan_layers(&one, &model, 0, 0), 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_comes_once),
		cmocka_unit_test(no_order_locks_up),
		cmocka_unit_test(neighbours_agree_on_the_order),
		cmocka_unit_test(orders_are_the_published_ones),
		cmocka_unit_test(layers_follow_each_other),
		cmocka_unit_test(embedding_and_head_count_as_layers),
		cmocka_unit_test(accounts_are_checked),
		cmocka_unit_test(the_first_chunk_is_in_flight_so_often),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
