#include "tests/bench/pack/corpus.h"

#include <stdlib.h>
#include <string.h>

uint64_t corpus_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int less_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

struct imbalances corpus_imbalances(double *each, size_t steps)
{
	struct imbalances found = {0};
	for (size_t k = 0; k < steps; k++)
		found.mean += each[k] / (double)steps;
	qsort(each, steps, sizeof(*each), less_first);
	found.p99 = each[steps * 99 / 100];
	return found;
}

static bool next_document(void *lengths, int64_t *tokens)
{
	*tokens = wlb_lengths_next(lengths);
	return true;
}

size_t corpus_next(struct corpus *corpus, int64_t seq_length, int64_t max_tokens)
{
	struct wlb_batches *batches = &corpus->batches;
	if (batches->next == NULL) {
		wlb_batches_init(batches, next_document, &corpus->lengths, seq_length, max_tokens);
		batches->left.document = 0; /* the first is document 1 */
	}
	batches->seq_length = seq_length;
	batches->max_tokens = max_tokens;
	if (wlb_batches_next(batches, NULL) < 0)
		abort();
	corpus->batch = batches->spans;
	return batches->count;
}

void corpus_free(struct corpus *corpus)
{
	wlb_batches_free(&corpus->batches);
	memset(corpus, 0, sizeof(*corpus));
}
