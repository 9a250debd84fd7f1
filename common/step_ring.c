#include "common/step_ring.h"

#include "common/shared_words.h"

enum { OF_STEP = WLB_TRACE_STEP_WORDS - 4 * WLB_TRACE_TRANSFERS, OF_TRANSFER = 4 };
enum { HAS_LOSS = 1, HAS_GRADIENT_NORM = 2, COUNT_SHIFT = 2 };

void wlb_step_ring_add(struct wlb_step_ring *ring, const struct wlb_trace_step *step)
{
	int count = step->transfer_count;
	uint64_t flags = (step->has_loss ? HAS_LOSS : 0) | (step->has_gradient_norm ? HAS_GRADIENT_NORM : 0);
	uint64_t words[WLB_TRACE_STEP_WORDS] = {
		(uint64_t)step->step,
		wlb_word_of(step->seconds),
		wlb_word_of(step->aside_s),
		wlb_word_of(step->computed_s),
		wlb_word_of(step->work),
		wlb_word_of(step->loader_s),
		wlb_word_of(step->storage_s),
		wlb_word_of(step->loss),
		wlb_word_of(step->gradient_norm),
		flags | (uint64_t)count << COUNT_SHIFT,
	};
	for (int i = 0; i < count; i++) {
		const struct wlb_trace_transfer *transfer = &step->transfers[i];
		uint64_t *to = words + OF_STEP + OF_TRANSFER * i;
		to[0] = (uint64_t)transfer->group;
		to[1] = transfer->calls;
		to[2] = transfer->bytes;
		to[3] = wlb_word_of(transfer->blocked_s);
	}
	uint64_t number = atomic_load_explicit(&ring->next, memory_order_relaxed);
	wlb_shared_words_write(&ring->slots[number % WLB_TRACE_STEPS].version,
	                       ring->slots[number % WLB_TRACE_STEPS].words, words, OF_STEP + OF_TRANSFER * count,
	                       number + 1);
	atomic_store_explicit(&ring->next, number + 1, memory_order_release);
}

static struct wlb_trace_step step_of(const uint64_t *words)
{
	uint64_t count = words[9] >> COUNT_SHIFT;
	struct wlb_trace_step step = {
		.step = (int64_t)words[0],
		.seconds = wlb_value_of(words[1]),
		.aside_s = wlb_value_of(words[2]),
		.computed_s = wlb_value_of(words[3]),
		.work = wlb_value_of(words[4]),
		.loader_s = wlb_value_of(words[5]),
		.storage_s = wlb_value_of(words[6]),
		.has_loss = (words[9] & HAS_LOSS) != 0,
		.loss = wlb_value_of(words[7]),
		.has_gradient_norm = (words[9] & HAS_GRADIENT_NORM) != 0,
		.gradient_norm = wlb_value_of(words[8]),
		.transfer_count = (int)(count < WLB_TRACE_TRANSFERS ? count : WLB_TRACE_TRANSFERS),
	};
	for (int i = 0; i < step.transfer_count; i++) {
		const uint64_t *from = words + OF_STEP + OF_TRANSFER * i;
		step.transfers[i] = (struct wlb_trace_transfer){
			.group = from[0] <= INT32_MAX ? (int)from[0] : -1,
			.calls = from[1],
			.bytes = from[2],
			.blocked_s = wlb_value_of(from[3]),
		};
	}
	return step;
}

size_t wlb_step_ring_read(const struct wlb_step_ring *ring, uint64_t *next, struct wlb_trace_step *steps, size_t max)
{
	uint64_t end = atomic_load_explicit(&ring->next, memory_order_acquire);
	uint64_t oldest = end > WLB_TRACE_STEPS ? end - WLB_TRACE_STEPS : 0;
	size_t count = 0;
	if (*next < oldest || *next > end)
		*next = oldest;
	for (; count < max && *next < end; (*next)++) {
		uint64_t words[WLB_TRACE_STEP_WORDS];
		uint64_t slot = *next % WLB_TRACE_STEPS;
		/* Another version means that a newer step has replaced this one, or is being written over it. */
		if (wlb_shared_words_read(&ring->slots[slot].version, ring->slots[slot].words, words,
		                          WLB_TRACE_STEP_WORDS) == *next + 1)
			steps[count++] = step_of(words);
	}
	return count;
}
