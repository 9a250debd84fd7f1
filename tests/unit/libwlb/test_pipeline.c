/* The order of a pipeline's passes and which layers its chunks have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libwlb/wlb.h"

struct shape {
	int pp;
	int interleave;
	int micro_batches;
};

static const struct shape shapes[] = {{1, 1, 1}, {1, 1, 5}, {2, 1, 1}, {2, 1, 7}, {4, 1, 2},
                                      {4, 1, 8}, {2, 2, 2}, {2, 3, 8}, {4, 2, 4}, {3, 4, 9}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct wlb_plan plan_of(const struct shape *s)
{
	return (struct wlb_plan){.layout = {.tp = 1, .cp = 1, .pp = s->pp, .dp = 1},
	                         .interleave = s->interleave,
	                         .micro_batches = s->micro_batches};
}

static int64_t passes_of(const struct wlb_plan *plan)
{
	return 2 * (int64_t)plan->interleave * plan->micro_batches;
}

/* Every forward and backward pass once, a backward one after its forward one, and never more than warm-up and one
 * forward passes without theirs. */
static void every_pass_comes_once(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		for (int32_t stage = 0; stage < plan.layout.pp; stage++) {
			char done[64][2] = {{0}};
			int64_t held = 0;
			for (int64_t n = 0; n < passes_of(&plan); n++) {
				struct wlb_pass pass = wlb_plan_pass(&plan, stage, n);
				assert_in_range(pass.chunk, 0, plan.interleave - 1);
				assert_in_range(pass.micro_batch, 0, plan.micro_batches - 1);
				char *at = done[pass.chunk * plan.micro_batches + pass.micro_batch];
				assert_int_equal(at[pass.backward], 0);
				at[pass.backward] = 1;
				assert_int_equal(at[0], 1);
				held += pass.backward ? -1 : 1;
				assert_true(held <= wlb_plan_warmup(&plan, stage) + 1);
			}
			assert_int_equal(held, 0);
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

/* Every stage runs its passes in order and waits for what it needs: all come to their end. */
static void no_order_locks_up(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct wlb_plan plan = plan_of(&shapes[i]);
		int64_t next[8] = {0}, ran = 0, moved = 1;
		char done[16][16][2] = {{{0}}}; /* place, micro-batch, backward */
		while (moved > 0) {
			moved = 0;
			for (int32_t stage = 0; stage < plan.layout.pp; stage++) {
				if (next[stage] == passes_of(&plan))
					continue;
				struct wlb_pass pass = wlb_plan_pass(&plan, stage, next[stage]);
				int source = source_of(&plan, stage, pass);
				if (source >= 0 && !done[source][pass.micro_batch][pass.backward])
					continue;
				done[pass.chunk * plan.layout.pp + stage][pass.micro_batch][pass.backward] = 1;
				next[stage]++;
				moved++;
			}
			ran += moved;
		}
		assert_int_equal(ran, plan.layout.pp * passes_of(&plan));
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
				int64_t taken = 0, all = passes_of(&plan);
				for (int64_t n = 0; n < all; n++) {
					struct wlb_pass sent = wlb_plan_pass(&plan, from, n);
					int place = sent.chunk * pp + from + (backward ? -1 : 1);
					if (sent.backward != backward || place < 0 || place >= pp * plan.interleave)
						continue;
					struct wlb_pass pass;
					do {
						assert_true(taken < all);
						pass = wlb_plan_pass(&plan, to, taken++);
					} while (pass.backward != backward || source_of(&plan, to, pass) < 0);
					assert_int_equal(pass.micro_batch, sent.micro_batch);
					assert_int_equal(pass.chunk, place / pp);
				}
			}
	}
}

static void write_order(const struct wlb_plan *plan, int32_t stage, char *text, size_t size)
{
	size_t length = 0;
	for (int64_t n = 0; n < passes_of(plan) && length < size; n++) {
		struct wlb_pass pass = wlb_plan_pass(plan, stage, n);
		length += (size_t)snprintf(text + length, size - length, "%s%c%d.%d", n > 0 ? " " : "",
		                           pass.backward ? 'B' : 'F', pass.chunk, pass.micro_batch);
	}
}

/* As drawn in Narayanan et al. 2021, figures 3 and 4. */
static void orders_are_the_published_ones(void **state)
{
	(void)state;
	char text[512];
	struct wlb_plan plain = plan_of(&(struct shape){4, 1, 5});
	write_order(&plain, 0, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 B0.2 B0.3 B0.4");
	write_order(&plain, 3, text, sizeof(text));
	assert_string_equal(text, "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3 F0.4 B0.4");
	struct wlb_plan interleaved = plan_of(&(struct shape){2, 2, 4});
	write_order(&interleaved, 0, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
	write_order(&interleaved, 1, text, sizeof(text));
	assert_string_equal(text, "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
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
		{31, 4, 1, 1, 0, 7, 8, 8},   {30, 4, 2, 1, 1, 3, 4, 3},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_plan plan = plan_of(&(struct shape){cases[i].pp, cases[i].interleave, cases[i].pp});
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
	}
}

/* 16 x 8 chunks on 126 layers need both accounts; all layers stay where there is one chunk. */
static void accounts_are_checked(void **state)
{
	(void)state;
	struct wlb_error error;
	struct wlb_model model = {.num_hidden_layers = 126, .num_attention_heads = 8, .num_key_value_heads = 8};
	struct wlb_plan plan = plan_of(&(struct shape){16, 8, 16});
	plan.account_for_embedding = 1;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1);
	assert_non_null(strstr(error.message, "one more for each of embedding and loss"));
	plan.account_for_loss = 1;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), 0);
	plan.account_for_loss = 2;
	assert_int_equal(wlb_plan_check(&plan, &model, &error), -1);
	assert_non_null(strstr(error.message, "must be 0 or 1"));
	struct wlb_plan one = plan_of(&(struct shape){1, 1, 1});
	one.account_for_embedding = one.account_for_loss = 1;
	assert_int_equal(wlb_plan_check(&one, &model, &error), 0);
	assert_int_equal(wlb_plan_layers(&one, &model, 0, 0), 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pass_comes_once),         cmocka_unit_test(no_order_locks_up),
		cmocka_unit_test(neighbours_agree_on_the_order), cmocka_unit_test(orders_are_the_published_ones),
		cmocka_unit_test(layers_follow_each_other),      cmocka_unit_test(embedding_and_head_count_as_layers),
		cmocka_unit_test(accounts_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
