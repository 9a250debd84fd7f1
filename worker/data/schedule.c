#include "worker/data/schedule.h"

#include <inttypes.h>
#include <stdlib.h>

#include "worker/data/shuffle.h"

struct wlb_schedule {
	const struct wlb_dataset *dataset;
	int64_t seq_length;
	int64_t step_inputs; /* what a step may hold */
	int64_t *first_span; /* [documents + 1]: spans of all documents before this one */
	struct wlb_schedule_state cursor;
	struct wlb_shuffle order; /* of the cursor's epoch */
	struct wlb_span *spans;   /* of the last step given */
	int count;
	int capacity;
};

static void begin_epoch(struct wlb_schedule *s, int64_t epoch)
{
	s->cursor.epoch = epoch;
	s->cursor.position = 0;
	wlb_shuffle_init(&s->order, s->cursor.seed, (uint64_t)epoch, s->cursor.spans);
}

/* A document of 0 or 1 tokens has no span: nothing in it is predicted from anything. */
static int64_t count_spans(int64_t tokens, int64_t seq_length)
{
	return tokens < 2 ? 0 : (tokens - 2) / seq_length + 1;
}

int wlb_schedule_check(const struct wlb_dataset *dataset, struct wlb_error *error)
{
	int64_t documents = wlb_dataset_documents(dataset);
	for (int64_t i = 0; i < documents; i++)
		if (count_spans(wlb_dataset_length(dataset, i), 1) > 0)
			return 0;
	return wlb_fail(error,
	                "the dataset has no document of at least 2 tokens among its %lld: nothing can be trained",
	                (long long)documents);
}

static int index_spans(struct wlb_schedule *s, struct wlb_error *error)
{
	int64_t documents = wlb_dataset_documents(s->dataset);
	if (wlb_schedule_check(s->dataset, error) < 0)
		return -1;
	s->first_span = malloc(((size_t)documents + 1) * sizeof(*s->first_span));
	if (s->first_span == NULL)
		return wlb_fail(error, "out of memory for the schedule of %lld documents", (long long)documents);
	s->first_span[0] = 0;
	for (int64_t i = 0; i < documents; i++)
		s->first_span[i + 1] = s->first_span[i] + count_spans(wlb_dataset_length(s->dataset, i), s->seq_length);
	return 0;
}

struct wlb_schedule *wlb_schedule_new(const struct wlb_dataset *dataset, int64_t seq_length, int64_t global_batch_size,
                                      uint64_t seed, struct wlb_error *error)
{
	int64_t step_inputs;
	if (seq_length < 1 || seq_length > INT32_MAX || global_batch_size < 1 ||
	    __builtin_mul_overflow(seq_length, global_batch_size, &step_inputs) || step_inputs > INT32_MAX) {
		wlb_fail(
			error,
			"seq_length %lld, global_batch_size %lld: both must be at least 1 and their product below 2^31",
			(long long)seq_length, (long long)global_batch_size);
		return NULL;
	}
	struct wlb_schedule *s = calloc(1, sizeof(*s));
	if (s == NULL) {
		wlb_fail(error, "out of memory for the schedule of documents");
		return NULL;
	}
	s->dataset = dataset;
	s->seq_length = seq_length;
	s->step_inputs = step_inputs;
	if (index_spans(s, error) < 0) {
		wlb_schedule_free(s);
		return NULL;
	}
	s->cursor = (struct wlb_schedule_state){.seed = seed,
	                                        .documents = wlb_dataset_documents(dataset),
	                                        .tokens = wlb_dataset_tokens(dataset),
	                                        .index_digest = wlb_dataset_index_digest(dataset),
	                                        .token_digest = wlb_dataset_token_digest(dataset),
	                                        .spans = s->first_span[wlb_dataset_documents(dataset)]};
	begin_epoch(s, 0);
	return s;
}

void wlb_schedule_free(struct wlb_schedule *s)
{
	if (s == NULL)
		return;
	free(s->first_span);
	free(s->spans);
	free(s);
}

/* The document that holds this span: the last one with first_span[document] <= span. */
static int64_t find_document(const struct wlb_schedule *s, int64_t span)
{
	int64_t low = 0, high = s->cursor.documents;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (s->first_span[middle] <= span)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The span that comes next, without taking it. */
static struct wlb_span peek(struct wlb_schedule *s)
{
	if (s->cursor.position == s->cursor.spans)
		begin_epoch(s, s->cursor.epoch + 1);
	int64_t span = wlb_shuffle_at(&s->order, s->cursor.position);
	int64_t document = find_document(s, span);
	int64_t start = (span - s->first_span[document]) * s->seq_length;
	int64_t left = wlb_dataset_length(s->dataset, document) - 1 - start;
	return (struct wlb_span){
		.document = document, .start = start, .tokens = (int32_t)(left < s->seq_length ? left : s->seq_length)};
}

static int append(struct wlb_schedule *s, const struct wlb_span *span, struct wlb_error *error)
{
	if (s->count == s->capacity) {
		int capacity = s->capacity < 64 ? 64 : s->capacity * 2;
		struct wlb_span *grown = realloc(s->spans, (size_t)capacity * sizeof(*grown));
		if (grown == NULL)
			return wlb_fail(error, "out of memory for a step of %d documents", capacity);
		s->spans = grown;
		s->capacity = capacity;
	}
	s->spans[s->count++] = *span;
	return 0;
}

int wlb_schedule_next(struct wlb_schedule *s, const struct wlb_span **spans, struct wlb_error *error)
{
	int64_t inputs = 0;
	s->count = 0;
	for (;;) {
		struct wlb_span span = peek(s);
		if (inputs + span.tokens > s->step_inputs)
			break;
		if (append(s, &span, error) < 0)
			return -1;
		s->cursor.position++;
		inputs += span.tokens;
	}
	s->cursor.step++;
	*spans = s->spans;
	return s->count;
}

void wlb_schedule_save(const struct wlb_schedule *s, struct wlb_schedule_state *state)
{
	*state = s->cursor;
}

/* A digest of 0 is not known. */
static int check_digest(const char *part, uint64_t was, uint64_t is, struct wlb_error *error)
{
	if (was == 0 || is == 0 || was == is)
		return 0;
	return wlb_fail(error,
	                "the schedule was saved for a dataset whose %s has the digest %016" PRIx64
	                ", the %s of this one has %016" PRIx64 ": use the dataset of the run",
	                part, was, part, is);
}

int wlb_schedule_check_state(const struct wlb_schedule *s, const struct wlb_schedule_state *state,
                             struct wlb_error *error)
{
	if (state->seed != s->cursor.seed)
		return wlb_fail(error,
		                "the schedule was saved with seed %llu, this run has %llu: both must be the same",
		                (unsigned long long)state->seed, (unsigned long long)s->cursor.seed);
	if (state->documents != s->cursor.documents || state->tokens != s->cursor.tokens)
		return wlb_fail(error,
		                "the schedule was saved for a dataset of %lld documents and %lld tokens, this one has "
		                "%lld and %lld: use the dataset of the run",
		                (long long)state->documents, (long long)state->tokens, (long long)s->cursor.documents,
		                (long long)s->cursor.tokens);
	if (check_digest("index", state->index_digest, s->cursor.index_digest, error) < 0 ||
	    check_digest(".bin", state->token_digest, s->cursor.token_digest, error) < 0)
		return -1;
	if (state->spans != s->cursor.spans)
		return wlb_fail(
			error,
			"the schedule was saved with %lld spans an epoch, this one has %lld: use the seq_length "
			"of the run",
			(long long)state->spans, (long long)s->cursor.spans);
	if (state->epoch < 0 || state->step < 0 || state->position < 0 || state->position > state->spans)
		return wlb_fail(
			error,
			"the saved schedule has epoch %lld, position %lld, step %lld: none may be negative, and "
			"position at most %lld",
			(long long)state->epoch, (long long)state->position, (long long)state->step,
			(long long)state->spans);
	return 0;
}

int wlb_schedule_restore(struct wlb_schedule *s, const struct wlb_schedule_state *state, struct wlb_error *error)
{
	if (wlb_schedule_check_state(s, state, error) < 0)
		return -1;
	uint64_t index_digest = s->cursor.index_digest, token_digest = s->cursor.token_digest;
	begin_epoch(s, state->epoch);
	s->cursor = *state;
	s->cursor.index_digest = index_digest;
	s->cursor.token_digest = token_digest;
	return 0;
}
