#include "tests/bench/pack/corpus.h"

#include <stdlib.h>
#include <string.h>

const struct wlb_model corpus_model = {
	.hidden_size = 4096,
	.intermediate_size = 11008,
	.num_hidden_layers = 32,
	.num_attention_heads = 32,
	.num_key_value_heads = 32,
	.head_dim = 128,
	.vocab_size = 32000,
	.max_position_embeddings = 131072,
	.rope_theta = 10000.0,
	.rms_norm_eps = 1e-5,
};

uint64_t corpus_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void add(struct corpus *corpus, size_t count, struct wlb_span span)
{
	if (count == corpus->capacity) {
		corpus->capacity = 2 * corpus->capacity + 1024;
		corpus->batch = reallocarray(corpus->batch, corpus->capacity, sizeof(*corpus->batch));
		if (corpus->batch == NULL)
			abort();
	}
	corpus->batch[count] = span;
}

size_t corpus_next(struct corpus *corpus, int64_t seq_length, int64_t max_tokens)
{
	struct wlb_span *left = &corpus->left;
	size_t count = 0;
	for (int64_t tokens = 0;;) {
		if (left->tokens == 0)
			*left = (struct wlb_span){.document = left->document + 1,
			                          .tokens = wlb_lengths_next(&corpus->lengths)};
		struct wlb_span piece = *left;
		piece.tokens = piece.tokens < seq_length ? piece.tokens : seq_length;
		if (tokens + piece.tokens > max_tokens)
			return count;
		add(corpus, count++, piece);
		tokens += piece.tokens;
		left->start += piece.tokens;
		left->tokens -= piece.tokens;
	}
}

void corpus_free(struct corpus *corpus)
{
	free(corpus->batch);
	memset(corpus, 0, sizeof(*corpus));
}
