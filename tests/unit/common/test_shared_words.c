/* Words that several threads may write: who may, and that a reader never finds those of two writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/shared_words.h"

enum { WORDS = 7, WRITERS = 4, VERSIONS = 200000000 };

struct shared {
	_Atomic uint64_t version, words[WORDS];
	_Atomic uint64_t next;
	atomic_int stop;
};

static void write_all(struct shared *shared, uint64_t version)
{
	uint64_t words[WORDS];
	for (int i = 0; i < WORDS; i++)
		words[i] = version;
	wlb_shared_words_write(&shared->version, shared->words, words, WORDS, version);
}

static void words_are_claimed_once_and_for_later_versions(void **state)
{
	(void)state;
	struct shared shared = {0};
	uint64_t words[WORDS];
	assert_int_equal(wlb_shared_words_claim(&shared.version, 5), 1);
	assert_int_equal(wlb_shared_words_claim(&shared.version, 9), 0);
	assert_int_equal(wlb_shared_words_read(&shared.version, shared.words, words, WORDS), 0);
	write_all(&shared, 5);
	assert_int_equal(wlb_shared_words_read(&shared.version, shared.words, words, WORDS), 5);
	assert_int_equal(wlb_shared_words_claim(&shared.version, 4), 0);
	assert_int_equal(wlb_shared_words_claim(&shared.version, 5), 0);
	assert_int_equal(wlb_shared_words_claim(&shared.version, 6), 1);
}

static void *write_while_asked(void *argument)
{
	struct shared *shared = argument;
	while (!atomic_load(&shared->stop)) {
		uint64_t version = atomic_fetch_add(&shared->next, 1) + 1;
		if (wlb_shared_words_claim(&shared->version, version))
			write_all(shared, version);
	}
	return NULL;
}

static void a_reader_finds_the_words_of_one_writer(void **state)
{
	(void)state;
	static struct shared shared; /* of threads that go on where the test fails */
	pthread_t threads[WRITERS];
	uint64_t last = 0;
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_while_asked, &shared), 0);
	while (atomic_load(&shared.next) < VERSIONS) {
		uint64_t words[WORDS], version = wlb_shared_words_read(&shared.version, shared.words, words, WORDS);
		if (version == 0)
			continue;
		assert_true(version >= last);
		last = version;
		for (int i = 0; i < WORDS; i++)
			assert_int_equal(words[i], version);
	}
	atomic_store(&shared.stop, 1);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_claimed_once_and_for_later_versions),
		cmocka_unit_test(a_reader_finds_the_words_of_one_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
