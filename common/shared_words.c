#include "common/shared_words.h"

#include <string.h>

enum { TRIES = 100 };

/* A reader accepts the words if it finds the same version before and after it reads them. WRITING: they are being
 * changed. 0: never written. */
#define WRITING UINT64_MAX

int wlb_shared_words_claim(_Atomic uint64_t *version, uint64_t next_version)
{
	uint64_t now = atomic_load_explicit(version, memory_order_relaxed);
	while (now < next_version) /* WRITING is above every version */
		if (atomic_compare_exchange_weak_explicit(version, &now, WRITING, memory_order_acquire,
		                                          memory_order_relaxed))
			return 1;
	return 0;
}

void wlb_shared_words_write(_Atomic uint64_t *version, _Atomic uint64_t *words, const uint64_t *from, int count,
                            uint64_t next_version)
{
	atomic_store_explicit(version, WRITING, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (int i = 0; i < count; i++)
		atomic_store_explicit(&words[i], from[i], memory_order_relaxed);
	atomic_store_explicit(version, next_version, memory_order_release);
}

uint64_t wlb_shared_words_read(const _Atomic uint64_t *version, const _Atomic uint64_t *words, uint64_t *to, int count)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t found = atomic_load_explicit(version, memory_order_acquire);
		for (int word = 0; word < count; word++)
			to[word] = atomic_load_explicit(&words[word], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (found != WRITING && atomic_load_explicit(version, memory_order_relaxed) == found)
			return found;
	}
	return 0;
}

uint64_t wlb_word_of(double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof(word));
	return word;
}

double wlb_value_of(uint64_t word)
{
	double value;
	memcpy(&value, &word, sizeof(value));
	return value;
}
