#include "worker/load/share.h"

enum { PADDING = -1 };

_Static_assert((int)WLB_EXCHANGES_MAX >= (int)WLB_DYNAMIC_CP_SIZES,
               "a rank has documents on each number of ranks at most");

static int64_t rows_of(const struct wlb_shards *shards, int32_t rank)
{
	return shards->first_row[rank + 1] - shards->first_row[rank];
}

static int64_t multiple_up(int64_t value, int64_t of)
{
	return (value + of - 1) / of * of;
}

int32_t wlb_share_group(int32_t ranks, int32_t all, int32_t cp)
{
	int32_t group = 1;
	if (ranks == cp)
		return 0;
	for (int32_t size = all; size > ranks; size = wlb_dynamic_cp_smaller(size))
		group += size != cp;
	return group;
}

struct wlb_share wlb_share_of_all(const struct wlb_shards *shards, int32_t group, int32_t rank, int32_t tp)
{
	struct wlb_share share = {.rank = rank, .own_rows = rows_of(shards, rank), .keys = shards->tokens};
	for (int32_t r = 0; r < shards->ranks; r++)
		share.rows = rows_of(shards, r) > share.rows ? rows_of(shards, r) : share.rows;
	share.rows = multiple_up(share.rows, tp);
	share.has_exchanges = shards->ranks > 1;
	share.exchanged = shards->ranks * share.rows;
	share.part_count = 1;
	share.parts[0] = (struct wlb_key_part){.exchange = {.group = group, .rows = share.rows, .own_rows = share.rows},
	                                       .ranks = shards->ranks,
	                                       .tokens = shards->tokens};
	return share;
}

/* The rows of a rank that hold tokens of a part, which follow each other. */
struct rows {
	int64_t first, count;
};

static int is_in(const struct wlb_key_part *part, const struct wlb_shard *shard)
{
	return shard->k_start >= part->first_token && shard->k_start < part->first_token + part->tokens;
}

static struct rows part_rows(const struct wlb_key_part *part, const struct wlb_shards *shards, int32_t rank)
{
	struct rows rows = {0};
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		if (!is_in(part, &shards->shards[s]))
			continue;
		if (rows.count == 0)
			rows.first = shards->shards[s].q_start;
		rows.count += shards->shards[s].q_count;
	}
	return rows;
}

/* Lists the documents of the rank, a part for each number of ranks. */
static void list_parts(struct wlb_share *share, const int64_t *tokens, const struct wlb_place *places, size_t count)
{
	int64_t token = 0;
	for (size_t i = 0; i < count; token += tokens[i++]) {
		const struct wlb_place *place = &places[i];
		if (share->rank < place->first_rank || share->rank >= place->first_rank + place->ranks)
			continue;
		if (share->part_count == 0 || share->parts[share->part_count - 1].ranks != place->ranks)
			share->parts[share->part_count++] = (struct wlb_key_part){.first_rank = place->first_rank,
			                                                          .ranks = place->ranks,
			                                                          .first_token = token,
			                                                          .first_key = share->keys};
		share->parts[share->part_count - 1].tokens += tokens[i];
		share->keys += tokens[i];
	}
}

struct wlb_share wlb_share_of_places(const struct wlb_shards *shards, const int64_t *tokens,
                                     const struct wlb_place *places, size_t count, int32_t rank,
                                     const struct wlb_layout *layout)
{
	struct wlb_share share = {.rank = rank, .own_rows = rows_of(shards, rank)};
	/* A document of fewer tokens than ranks leaves ranks without a row; they still exchange keys. */
	share.rows = multiple_up(share.own_rows > 0 ? share.own_rows : 1, layout->tp);
	list_parts(&share, tokens, places, count);
	for (struct wlb_key_part *part = share.parts; part < share.parts + share.part_count; part++) {
		const struct rows own = part_rows(part, shards, rank);
		part->exchange = (struct wlb_exchange){.group = wlb_share_group(part->ranks, shards->ranks, layout->cp),
		                                       .own_first = own.first,
		                                       .own_rows = own.count};
		for (int32_t r = part->first_rank; r < part->first_rank + part->ranks; r++) {
			const struct rows rows = part_rows(part, shards, r);
			if (rows.count > part->exchange.rows)
				part->exchange.rows = rows.count;
		}
		share.has_exchanges |= part->ranks > 1;
		share.exchanged += part->ranks * part->exchange.rows;
	}
	return share;
}

int64_t wlb_share_key(const struct wlb_share *share, int64_t token)
{
	const struct wlb_key_part *part = share->parts;
	while (token >= part->first_token + part->tokens)
		part++;
	return part->first_key + token - part->first_token;
}

/* Fills the maps of rank `rank`'s rows of a part, which begin at `at` among those of the exchanges. */
static void map_rank(const struct wlb_key_part *part, const struct wlb_shards *shards, int32_t rank, int64_t at,
                     int32_t *from, int32_t *to)
{
	int64_t first = part_rows(part, shards, rank).first;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		const struct wlb_shard *shard = &shards->shards[s];
		for (int32_t i = 0; is_in(part, shard) && i < shard->q_count; i++) {
			int64_t key = part->first_key + shard->k_start + shard->q_offset + i - part->first_token;
			int64_t row = at + shard->q_start - first + i;
			from[key] = (int32_t)row;
			to[row] = (int32_t)key;
		}
	}
}

void wlb_share_maps(const struct wlb_share *share, const struct wlb_shards *shards, int32_t *from, int32_t *to)
{
	int64_t at = 0;
	for (int64_t i = 0; i < share->exchanged; i++)
		to[i] = PADDING;
	for (const struct wlb_key_part *part = share->parts; part < share->parts + share->part_count; part++)
		for (int32_t r = 0; r < part->ranks; r++, at += part->exchange.rows)
			map_rank(part, shards, part->first_rank + r, at, from, to);
}
