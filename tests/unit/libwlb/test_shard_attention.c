/* Shards given to the attention kernel: what ranks compute by themselves is what one rank computes of everything. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/ops.h"
#include "tests/bench/pack/corpus.h"

enum { HEADS = 2, HEAD_DIM = 8, ROW = HEADS * HEAD_DIM };

static double *new_rows(int64_t count)
{
	double *rows = calloc((size_t)count + 1, ROW * sizeof(*rows));
	assert_non_null(rows);
	return rows;
}

static double *random_rows(int64_t count, uint64_t *random)
{
	double *rows = new_rows(count);
	for (int64_t i = 0; i < count * ROW; i++)
		rows[i] = (double)(corpus_random(random) >> 11) * 0x1p-52 - 1.0;
	return rows;
}

/* out[i] = in[at[i]] */
static void take_rows(double *out, const double *in, const int32_t *at, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		memcpy(&out[i * ROW], &in[at[i] * ROW], ROW * sizeof(*out));
}

/* The attention of one rank's rows, into out; the shards are the kernel's segments field by field. */
static void attend(struct wlb_device *device, const struct wlb_shards *shards, int32_t rank, double *out,
                   const double *q, const double *k, const double *v)
{
	size_t first = shards->first_shard[rank], n = shards->first_shard[rank + 1] - first;
	struct wlb_segment *segments = calloc(n + 1, sizeof(*segments));
	int64_t rows = shards->first_row[rank + 1] - shards->first_row[rank];
	double *lse = new_rows(rows);
	assert_non_null(segments);
	struct wlb_segments all = {.segments = segments, .count = (int)n};
	for (size_t s = 0; s < n; s++) {
		const struct wlb_shard *shard = &shards->shards[first + s];
		segments[s] = (struct wlb_segment){.q_start = shard->q_start,
		                                   .q_count = shard->q_count,
		                                   .k_start = shard->k_start,
		                                   .k_count = shard->k_count,
		                                   .q_offset = shard->q_offset};
		all.max_q = shard->q_count > all.max_q ? shard->q_count : all.max_q;
		all.max_k = shard->k_count > all.max_k ? shard->k_count : all.max_k;
	}
	struct wlb_attention_shape shape = {.q_tokens = rows,
	                                    .k_tokens = shards->tokens,
	                                    .heads = HEADS,
	                                    .kv_heads = HEADS,
	                                    .head_dim = HEAD_DIM,
	                                    .q_stride = ROW,
	                                    .kv_stride = ROW,
	                                    .out_stride = ROW};
	device->ops->attention_forward(device, out, lse, q, k, v, &all, &shape);
	assert_int_equal(device->ops->synchronize(device, NULL), 0);
	free(segments);
	free(lse);
}

/* Keys as an all-gather brings them, the rows of rank after rank, put back into document order. */
static double *gather_keys(const struct wlb_shards *shards, const double *keys, const int32_t *tokens)
{
	double *gathered = new_rows(shards->tokens), *ordered = new_rows(shards->tokens);
	int32_t *rows = calloc((size_t)shards->tokens + 1, sizeof(*rows));
	assert_non_null(rows);
	take_rows(gathered, keys, tokens, shards->tokens);
	wlb_shards_rows(shards, rows);
	take_rows(ordered, gathered, rows, shards->tokens);
	free(gathered);
	free(rows);
	return ordered;
}

/* Attention of all ranks, each with its own queries only, in document order again. */
static double *attend_sharded(struct wlb_device *device, const struct wlb_shards *shards, const double *q,
                              const double *k, const double *v)
{
	int64_t sum = shards->tokens;
	int32_t *tokens = calloc((size_t)sum + 1, sizeof(*tokens));
	double *local_q = new_rows(sum), *local_out = new_rows(sum), *out = new_rows(sum);
	assert_non_null(tokens);
	for (int32_t r = 0; r < shards->ranks; r++)
		wlb_shards_tokens(shards, r, &tokens[shards->first_row[r]]);
	double *all_k = gather_keys(shards, k, tokens), *all_v = gather_keys(shards, v, tokens);
	take_rows(local_q, q, tokens, sum);
	for (int32_t r = 0; r < shards->ranks; r++) {
		int64_t row = shards->first_row[r] * ROW;
		attend(device, shards, r, &local_out[row], &local_q[row], all_k, all_v);
	}
	for (int64_t i = 0; i < sum; i++)
		memcpy(&out[tokens[i] * ROW], &local_out[i * ROW], ROW * sizeof(*out));
	free(tokens);
	free(local_q);
	free(local_out);
	free(all_k);
	free(all_v);
	return out;
}

static void ranks_compute_what_one_does(void **state)
{
	(void)state;
	static const int64_t lengths[] = {37, 0, 1, 130, 12, 3};
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT64, 1, NULL);
	struct wlb_shards shards = {0};
	uint64_t random = 1;
	const int64_t sum = 37 + 1 + 130 + 12 + 3;
	assert_non_null(device);
	double *q = random_rows(sum, &random), *k = random_rows(sum, &random), *v = random_rows(sum, &random);
	assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, lengths, 6, 1, &shards, NULL), 0);
	double *expected = attend_sharded(device, &shards, q, k, v);
	for (int32_t ranks = 2; ranks <= 9; ranks++)
		for (int s = WLB_SHARDING_SEQUENCE; s <= WLB_SHARDING_DOCUMENT; s++) {
			enum wlb_sharding sharding = (enum wlb_sharding)s;
			assert_int_equal(wlb_shard(sharding, NULL, lengths, 6, ranks, &shards, NULL), 0);
			double *out = attend_sharded(device, &shards, q, k, v);
			for (int64_t i = 0; i < sum * ROW; i++)
				assert_true(fabs(out[i] - expected[i]) <= 1e-12);
			free(out);
		}
	free(expected);
	free(q);
	free(k);
	free(v);
	wlb_shards_free(&shards);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_compute_what_one_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
