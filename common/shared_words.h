/* Words that one thread at a time writes, and threads and processes read meanwhile without a lock (a seqlock). Where
 * several threads may write the same words, each claims them first. */
#ifndef COMMON_SHARED_WORDS_H
#define COMMON_SHARED_WORDS_H

#include <stdatomic.h>
#include <stdint.h>

/* Claims words for a thread that will write them with `next_version`, where versions only grow. Returns 1 if it may;
 * 0 if another thread is writing them or has written that version or a later one: the words are left to it. */
int wlb_shared_words_claim(_Atomic uint64_t *version, uint64_t next_version);

/* Replaces `count` words, and their version by another one above 0. */
void wlb_shared_words_write(_Atomic uint64_t *version, _Atomic uint64_t *words, const uint64_t *from, int count,
                            uint64_t next_version);

/* Copies the words. Returns the version of the words, 0 where there is none: the words were never written, or changed
 * during each try to read them, as where the writer was stopped or has died while it wrote. */
uint64_t wlb_shared_words_read(const _Atomic uint64_t *version, const _Atomic uint64_t *words, uint64_t *to, int count);

/* A word that has the bits of a number, and the number of such a word. */
uint64_t wlb_word_of(double value);
double wlb_value_of(uint64_t word);

#endif
