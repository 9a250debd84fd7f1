/* Computes lengths, positions, tokens and cost of the rows of a rank's shards. */
#include "libwlb/pairs.h"

void wlb_shards_lengths(const struct wlb_shards *shards, int32_t rank, int32_t *cu_seqlens_q, int32_t *cu_seqlens_k)
{
	size_t n = 0;
	cu_seqlens_q[0] = 0;
	cu_seqlens_k[0] = 0;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++, n++) {
		cu_seqlens_q[n + 1] = cu_seqlens_q[n] + shards->shards[s].q_count;
		cu_seqlens_k[n + 1] = cu_seqlens_k[n] + shards->shards[s].k_count;
	}
}

void wlb_shards_positions(const struct wlb_shards *shards, int32_t rank, int32_t *positions)
{
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		const struct wlb_shard *shard = &shards->shards[s];
		for (int32_t i = 0; i < shard->q_count; i++)
			positions[shard->q_start + i] = shard->q_offset + i;
	}
}

void wlb_shards_tokens(const struct wlb_shards *shards, int32_t rank, int32_t *tokens)
{
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		const struct wlb_shard *shard = &shards->shards[s];
		for (int32_t i = 0; i < shard->q_count; i++)
			tokens[shard->q_start + i] = shard->k_start + shard->q_offset + i;
	}
}

void wlb_shards_rows(const struct wlb_shards *shards, int32_t *rows)
{
	for (int32_t r = 0; r < shards->ranks; r++)
		for (size_t s = shards->first_shard[r]; s < shards->first_shard[r + 1]; s++) {
			const struct wlb_shard *shard = &shards->shards[s];
			int32_t token = shard->k_start + shard->q_offset;
			int32_t row = (int32_t)shards->first_row[r] + shard->q_start;
			for (int32_t i = 0; i < shard->q_count; i++)
				rows[token + i] = row + i;
		}
}

int64_t wlb_shards_pairs(const struct wlb_shards *shards, int32_t rank)
{
	int64_t pairs = 0;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		int64_t count = shards->shards[s].q_count, first = shards->shards[s].q_offset;
		pairs += count * first + count * (count + 1) / 2;
	}
	return pairs;
}

double wlb_shards_work(const struct wlb_shards *shards, int32_t rank, const struct wlb_model *model)
{
	double q = (double)(model->num_attention_heads * wlb_model_head_width(model));
	double pair = (double)model->num_hidden_layers * 4.0 * q;
	double token = wlb_cost_document(model, 1) - pair; /* a document of one token has one pair */
	int64_t rows = shards->first_row[rank + 1] - shards->first_row[rank];
	double pairs = 0.0;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++)
		pairs += wlb_mean_pairs(model, shards->shards[s].q_count, shards->shards[s].k_count);
	return token * (double)rows + pair * pairs;
}

double wlb_shards_seconds(const struct wlb_shards *shards, int32_t rank, const struct wlb_kernel_time *time)
{
	double seconds = 0.0;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++)
		seconds += wlb_attention_seconds(time, shards->shards[s].q_count, shards->shards[s].k_count);
	return seconds;
}
