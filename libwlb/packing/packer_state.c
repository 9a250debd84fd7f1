/* The packer's state as bytes: words of 64 bits, least byte first, and a checksum over them. */

#include <math.h>
#include <string.h>

#include "libwlb/hash.h"
#include "libwlb/packing/packer_spans.h"

enum {
	OPTION_WORDS = 8,
	HEADER_WORDS = 1 + OPTION_WORDS + 4, /* magic, options, position in the stream */
	SPAN_WORDS = 4,                      /* document, start, tokens, step of arrival and PART_BIT */
	PART_BIT = 63, /* set where the span is a part of a document; states of earlier versions never have it */
	WORD_BYTES = 8,
};
static const char magic[WORD_BYTES] = {'W', 'L', 'B', 'P', 'A', 'C', 'K', '1'};

/* The position in the stream, without the documents held. */
struct position {
	int64_t step;
	int64_t arrived_tokens;
	double price;
	uint64_t spans;
};

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double of_bits(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put(unsigned char **cursor, uint64_t word)
{
	for (int byte = 0; byte < WORD_BYTES; byte++)
		*(*cursor)++ = (unsigned char)(word >> (8 * byte));
}

static uint64_t get(const unsigned char **cursor)
{
	uint64_t word = 0;
	for (int byte = 0; byte < WORD_BYTES; byte++)
		word |= (uint64_t) * (*cursor)++ << (8 * byte);
	return word;
}

/* Writes the options that must be equal where the state is restored; two values of `work` represent it. */
static void put_options(const struct wlb_packer *packer, unsigned char **cursor)
{
	const struct wlb_packer_options *o = &packer->options;
	put(cursor, (uint64_t)o->strategy);
	put(cursor, (uint64_t)o->seq_length);
	put(cursor, (uint64_t)o->micro_batches);
	put(cursor, bits_of(o->max_length_ratio));
	put(cursor, (uint64_t)o->max_delay_steps);
	put(cursor, bits_of(o->target_delay_steps));
	put(cursor, bits_of(wlb_packer_work(packer, 1)));
	put(cursor, bits_of(wlb_packer_work(packer, o->seq_length)));
}

static size_t state_bytes(size_t spans)
{
	return (HEADER_WORDS + SPAN_WORDS * spans + 1) * WORD_BYTES;
}

size_t wlb_packer_state_bytes(const struct wlb_packer *packer)
{
	return state_bytes(packer->assignment.count);
}

void wlb_packer_save(const struct wlb_packer *packer, void *state)
{
	unsigned char *cursor = state;
	memcpy(cursor, magic, sizeof(magic));
	cursor += sizeof(magic);
	put_options(packer, &cursor);
	put(&cursor, (uint64_t)packer->step);
	put(&cursor, (uint64_t)packer->arrived_tokens);
	put(&cursor, bits_of(packer->price));
	put(&cursor, (uint64_t)packer->assignment.count);
	for (size_t i = 0; i < packer->assignment.count; i++) {
		const struct wlb_assigned_span *assigned = &packer->assignment.spans[i];
		put(&cursor, (uint64_t)assigned->span.document);
		put(&cursor, (uint64_t)assigned->span.start);
		put(&cursor, (uint64_t)assigned->span.tokens);
		put(&cursor, (uint64_t)assigned->arrival_step | (uint64_t)assigned->is_part << PART_BIT);
	}
	put(&cursor, wlb_hash_bytes(WLB_HASH_OF_NOTHING, state, (size_t)(cursor - (unsigned char *)state)));
}

/* Checks that the bytes are a complete state of a packer with equal options; sets *position from them. */
static int check_state(const struct wlb_packer *packer, const unsigned char *state, size_t bytes,
                       struct position *position, struct wlb_error *error)
{
	if (bytes < state_bytes(0) || memcmp(state, magic, sizeof(magic)) != 0)
		return wlb_fail(error, "%zu bytes are no packer state of version %c: it begins with %.8s", bytes,
		                magic[WORD_BYTES - 1], magic);
	const unsigned char *cursor = state + bytes - WORD_BYTES;
	if (get(&cursor) != wlb_hash_bytes(WLB_HASH_OF_NOTHING, state, bytes - WORD_BYTES))
		return wlb_fail(error, "the packer state of %zu bytes is damaged: its checksum differs", bytes);
	unsigned char own[OPTION_WORDS * WORD_BYTES], *end = own;
	put_options(packer, &end);
	if (memcmp(state + WORD_BYTES, own, sizeof(own)) != 0)
		return wlb_fail(error, "the packer state was saved with other options or another model: "
		                       "go on with those it was saved with");
	cursor = state + WORD_BYTES + sizeof(own);
	position->step = (int64_t)get(&cursor);
	position->arrived_tokens = (int64_t)get(&cursor);
	position->price = of_bits(get(&cursor));
	position->spans = get(&cursor);
	if (position->spans > bytes || bytes != state_bytes((size_t)position->spans))
		return wlb_fail(error, "the packer state of %zu bytes names %llu documents: its length differs", bytes,
		                (unsigned long long)position->spans);
	return 0;
}

static struct wlb_assigned_span get_span(const unsigned char **cursor)
{
	struct wlb_assigned_span assigned = {.bin = -1};
	assigned.span.document = (int64_t)get(cursor);
	assigned.span.start = (int64_t)get(cursor);
	assigned.span.tokens = (int64_t)get(cursor);
	uint64_t arrival = get(cursor);
	assigned.is_part = (int32_t)(arrival >> PART_BIT);
	assigned.arrival_step = (int64_t)(arrival & INT64_MAX);
	return assigned;
}

/* Checks that a packer after position->step steps can hold every document of the state. */
static int check_items(const struct wlb_packer *packer, const unsigned char *state, const struct position *position,
                       struct wlb_error *error)
{
	const unsigned char *cursor = state + HEADER_WORDS * WORD_BYTES;
	int sane = position->step >= 0 && position->arrived_tokens >= 0 && position->price > 0.0 &&
	           isfinite(position->price);
	for (uint64_t i = 0; i < position->spans && sane; i++) {
		struct wlb_assigned_span assigned = get_span(&cursor);
		sane = assigned.span.tokens >= 1 && assigned.span.tokens <= packer->options.seq_length &&
		       assigned.span.start >= 0 && assigned.span.start <= INT64_MAX - assigned.span.tokens &&
		       assigned.arrival_step >= 0 && assigned.arrival_step < position->step;
		if (sane && wlb_work_check(wlb_packer_work(packer, assigned.span.tokens), assigned.span.tokens,
		                           "document", assigned.span.document, error) < 0)
			return -1;
	}
	if (!sane)
		return wlb_fail(error, "the packer state holds what no packer can: it was not saved by one");
	return 0;
}

int wlb_packer_restore(struct wlb_packer *packer, const void *state, size_t bytes, struct wlb_error *error)
{
	struct position position = {0};
	if (check_state(packer, state, bytes, &position, error) < 0 ||
	    check_items(packer, state, &position, error) < 0 ||
	    wlb_packer_reserve(packer, (size_t)position.spans, error) < 0)
		return -1;
	packer->step = position.step;
	packer->arrived_tokens = position.arrived_tokens;
	packer->price = position.price;
	packer->assignment.count = (size_t)position.spans;
	const unsigned char *cursor = (const unsigned char *)state + HEADER_WORDS * WORD_BYTES;
	for (size_t i = 0; i < packer->assignment.count; i++) {
		struct wlb_assigned_span assigned = get_span(&cursor);
		assigned.work = wlb_packer_work(packer, assigned.span.tokens);
		packer->assignment.spans[i] = assigned;
	}
	return 0;
}
