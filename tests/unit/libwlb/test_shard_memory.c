/* Every allocation of sharding fails once: the error is said, nothing leaks, what was there stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

static long allocations_left = -1; /* negative: no limit */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	if (allocations_left >= 0 && allocations_left-- == 0)
		return NULL;
	return __real_calloc(count, size);
}

/* Gives the number of allocations that failed before it could be done. */
static int failures_of(enum wlb_sharding sharding)
{
	static const int64_t tokens[] = {700, 300, 55}, before[] = {9};
	struct wlb_kernel_time time;
	struct wlb_shards shards = {0};
	int rc = -1, failures = 0;
	wlb_kernel_time_init(&time, &corpus_model, 1, 1e12, 1e12);
	assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, before, 1, 2, &shards, NULL), 0);
	for (long n = 0; rc < 0; n++) {
		struct wlb_error error;
		allocations_left = n;
		rc = wlb_shard(sharding, &time, tokens, 3, 4, &shards, &error);
		allocations_left = -1;
		if (rc == 0)
			break;
		assert_string_equal(error.message, "out of memory while sharding 3 documents over 4 ranks");
		assert_int_equal(shards.tokens, 9);
		assert_int_equal(shards.ranks, 2);
		failures++;
	}
	assert_int_equal(shards.tokens, 1055);
	wlb_shards_free(&shards);
	return failures;
}

static void sharding_without_memory_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(failures_of(WLB_SHARDING_SEQUENCE), 7);
	assert_int_equal(failures_of(WLB_SHARDING_DOCUMENT), 11);
	assert_int_equal(failures_of(WLB_SHARDING_ADAPTIVE), 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sharding_without_memory_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
