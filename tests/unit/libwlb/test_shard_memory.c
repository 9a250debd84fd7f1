/* Every allocation of sharding fails once: the error is reported, nothing leaks, the shards are unchanged. Sharding the
 * same documents again allocates nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"
#include "tests/unit/libwlb/allocations.h"

static int shard_it(enum wlb_sharding sharding, struct wlb_shards *shards, struct wlb_error *error)
{
	static const int64_t tokens[] = {700, 300, 50, 5};
	struct wlb_kernel_time time;
	wlb_kernel_time_init(&time, &corpus_model, 1, 1e12, 1e12);
	return wlb_shard(sharding, &time, tokens, 4, 4, shards, error);
}

/* Shards that have been used for a little document, or not at all. */
static struct wlb_shards shards_before(int used)
{
	static const int64_t little[] = {9};
	struct wlb_shards shards = {0};
	if (used)
		assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, little, 1, 1, &shards, NULL), 0);
	return shards;
}

/* Allocation n fails. Gives whether there was one; then the shards were as before, and could be used again. */
static int fails_at(long n, enum wlb_sharding sharding, int used)
{
	struct wlb_error error;
	struct wlb_shards shards = shards_before(used), before = shards;
	allocations_left = n;
	int rc = shard_it(sharding, &shards, &error);
	allocations_left = -1;
	if (rc < 0) {
		assert_string_equal(error.message, "out of memory while sharding 4 documents over 4 ranks");
		assert_memory_equal(&shards, &before, sizeof(shards));
		if (used)
			assert_int_equal(shards.first_row[1], 9);
		assert_int_equal(shard_it(sharding, &shards, NULL), 0);
	}
	assert_int_equal(shards.tokens, 1055);
	assert_int_equal(shards.first_row[4], 1055);
	wlb_shards_free(&shards);
	return rc < 0;
}

/* The number of allocations, each of which failed once. */
static int failures_of(enum wlb_sharding sharding, int used)
{
	int failures = 0;
	while (fails_at(failures, sharding, used))
		failures++;
	return failures;
}

static void sharding_without_memory_changes_nothing(void **state)
{
	(void)state;
	/* One more where the memory itself is new. Adaptive needs what per-document needs, and its second result. */
	assert_int_equal(failures_of(WLB_SHARDING_SEQUENCE, 1), 7);
	assert_int_equal(failures_of(WLB_SHARDING_SEQUENCE, 0), 8);
	assert_int_equal(failures_of(WLB_SHARDING_DOCUMENT, 1), 11);
	assert_int_equal(failures_of(WLB_SHARDING_DOCUMENT, 0), 12);
	assert_int_equal(failures_of(WLB_SHARDING_ADAPTIVE, 1), 15);
	assert_int_equal(failures_of(WLB_SHARDING_ADAPTIVE, 0), 16);
}

/* Whichever of its three results the caller has, there is memory for the next two. */
static void sharding_again_needs_no_memory(void **state)
{
	(void)state;
	static const enum wlb_sharding shardings[] = {WLB_SHARDING_SEQUENCE, WLB_SHARDING_DOCUMENT,
	                                              WLB_SHARDING_ADAPTIVE};
	static const int64_t fewer[] = {400, 3};
	static const struct wlb_place places[] = {{.ranks = 2}, {.first_rank = 2, .ranks = 1}};
	struct wlb_shards shards = {0};
	for (int round = 0; round < 10; round++) {
		allocations_left = round < 3 ? -1 : 0;
		for (int s = 0; s < 3; s++)
			assert_int_equal(shard_it(shardings[s], &shards, NULL), 0);
		assert_int_equal(wlb_shard_places(fewer, places, 2, 4, 0, &shards, NULL), 0);
		assert_int_equal(shards.tokens, 403);
		assert_int_equal(wlb_shard(WLB_SHARDING_SEQUENCE, NULL, fewer, 1, 1, &shards, NULL), 0);
		assert_int_equal(shards.tokens, 400);
	}
	allocations_left = -1;
	wlb_shards_free(&shards);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sharding_without_memory_changes_nothing),
		cmocka_unit_test(sharding_again_needs_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
