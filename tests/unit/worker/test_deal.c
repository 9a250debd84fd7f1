#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker/load/deal.h"

static const struct wlb_model model = {.hidden_size = 64,
                                       .intermediate_size = 128,
                                       .num_hidden_layers = 2,
                                       .num_attention_heads = 4,
                                       .num_key_value_heads = 4,
                                       .head_dim = 16,
                                       .vocab_size = 257,
                                       .max_position_embeddings = 128};

enum { PIECES = 40 };

static void every_piece_goes_to_one_bin_that_holds_it(void **state)
{
	struct wlb_deal deal = {0};
	struct wlb_error error = {0};
	struct wlb_piece pieces[PIECES];
	int64_t tokens = 0;
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = (struct wlb_piece){.document = i, .length = 1 + i * 37 % 100};
		tokens += pieces[i].length;
	}
	for (int dp = 1; dp <= 9; dp++) {
		int64_t filled[PIECES * 9] = {0};
		assert_int_equal(wlb_deal_pieces(&deal, &model, pieces, PIECES, dp, 125, &error), 0);
		int bins = deal.micro_batches * dp;
		assert_true((bins - dp) * INT64_C(125) <= tokens + dp * INT64_C(125)); /* hardly more than needed */
		for (int i = 0; i < PIECES; i++) {
			assert_in_range(deal.bin_of[i], 0, bins - 1);
			filled[deal.bin_of[i]] += pieces[i].length;
		}
		for (int b = 0; b < bins; b++)
			assert_true(filled[b] <= 125);
	}
	wlb_deal_free(&deal);
	(void)state;
}

static void fewer_pieces_than_ranks(void **state)
{
	struct wlb_deal deal = {0};
	struct wlb_error error = {0};
	struct wlb_piece pieces[2] = {{.length = 100}, {.length = 100}};
	assert_int_equal(wlb_deal_pieces(&deal, &model, pieces, 2, 8, 125, &error), 0);
	assert_int_equal(deal.micro_batches, 1);
	assert_int_not_equal(deal.bin_of[0], deal.bin_of[1]);
	wlb_deal_free(&deal);
	(void)state;
}

static void one_more_micro_batch_where_greedy_needs_it(void **state)
{
	/* 5 x 60 tokens would fit 3 x 100 by their sum, but no two fit one micro-batch. */
	struct wlb_deal deal = {0};
	struct wlb_error error = {0};
	struct wlb_piece pieces[5] = {{.length = 60}, {.length = 60}, {.length = 60}, {.length = 60}, {.length = 60}};
	assert_int_equal(wlb_deal_pieces(&deal, &model, pieces, 5, 1, 100, &error), 0);
	assert_int_equal(deal.micro_batches, 5);
	wlb_deal_free(&deal);
	(void)state;
}

static void a_piece_too_long_is_refused(void **state)
{
	struct wlb_deal deal = {0};
	struct wlb_error error = {0};
	struct wlb_piece piece = {.length = 101};
	assert_int_equal(wlb_deal_pieces(&deal, &model, &piece, 1, 4, 100, &error), -1);
	wlb_deal_free(&deal);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_piece_goes_to_one_bin_that_holds_it),
		cmocka_unit_test(fewer_pieces_than_ranks),
		cmocka_unit_test(one_more_micro_batch_where_greedy_needs_it),
		cmocka_unit_test(a_piece_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
