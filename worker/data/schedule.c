#include "worker/data/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/word_digest.h"
#include "worker/data/shuffle.h"

enum { DOCUMENTS_A_MARK = 64 };

struct group {
	int64_t first_span; /* its spans are those from here on */
	int64_t spans;
	int64_t inputs;
	double share; /* of the spans of a run */
	int64_t epoch;
	struct wlb_shuffle order; /* of that epoch */
};

struct wlb_schedule {
	const struct wlb_dataset *dataset;
	int64_t seq_length;
	int64_t global_batch_size;
	struct wlb_batch_ramp ramp;
	int64_t *marks; /* of each document whose number is a multiple of DOCUMENTS_A_MARK: the spans before it */
	int64_t mark_count;
	struct group *groups;
	int group_count;
	struct wlb_schedule_state cursor;
	struct wlb_span *spans; /* of the last step given */
	int count;
	int capacity;
};

/* A document of 0 or 1 tokens has no span: nothing in it is predicted from anything. */
static int64_t count_spans(int64_t tokens, int64_t seq_length)
{
	return tokens < 2 ? 0 : (tokens - 2) / seq_length + 1;
}

static int has_span(const struct wlb_dataset *dataset, const struct wlb_dataset_group *group)
{
	for (int64_t i = group->begin; i < group->end; i++)
		if (count_spans(wlb_dataset_length(dataset, i), 1) > 0)
			return 1;
	return 0;
}

int wlb_schedule_check(const struct wlb_dataset *dataset, struct wlb_error *error)
{
	for (int g = 0; g < wlb_dataset_group_count(dataset); g++) {
		const struct wlb_dataset_group *group = wlb_dataset_group(dataset, g);
		if (!has_span(dataset, group))
			return wlb_fail(
				error,
				"the dataset has no document of at least 2 tokens among its %lld (%s): nothing can "
				"be trained",
				(long long)(group->end - group->begin), wlb_dataset_path_of(dataset, group->begin));
	}
	return 0;
}

static int64_t document_spans(const struct wlb_schedule *s, int64_t document)
{
	return count_spans(wlb_dataset_length(s->dataset, document), s->seq_length);
}

/* Counts the spans and inputs of a group, whose first span is number `first_span`, and sets the marks of its documents.
 */
static void index_group(struct wlb_schedule *s, struct group *group, const struct wlb_dataset_group *of,
                        int64_t first_span)
{
	*group = (struct group){.first_span = first_span, .epoch = -1};
	for (int64_t i = of->begin; i < of->end; i++) {
		int64_t tokens = wlb_dataset_length(s->dataset, i);
		for (; s->mark_count * DOCUMENTS_A_MARK <= i; s->mark_count++)
			s->marks[s->mark_count] = first_span + group->spans;
		group->spans += count_spans(tokens, s->seq_length);
		group->inputs += tokens < 2 ? 0 : tokens - 1;
	}
}

/* Sets what part of the spans each group is to have, from its part of the tokens. */
static void set_shares(struct wlb_schedule *s)
{
	double sum = 0.0;
	for (int g = 0; g < s->group_count; g++) {
		const struct group *group = &s->groups[g];
		s->groups[g].share =
			wlb_dataset_group(s->dataset, g)->weight * (double)group->spans / (double)group->inputs;
		sum += s->groups[g].share;
	}
	for (int g = 0; g < s->group_count; g++)
		s->groups[g].share /= sum;
}

static int index_spans(struct wlb_schedule *s, struct wlb_error *error)
{
	int64_t documents = wlb_dataset_documents(s->dataset);
	s->group_count = wlb_dataset_group_count(s->dataset);
	if (wlb_schedule_check(s->dataset, error) < 0)
		return -1;
	s->marks = calloc((size_t)(documents / DOCUMENTS_A_MARK) + 1, sizeof(*s->marks));
	s->groups = calloc((size_t)s->group_count, sizeof(*s->groups));
	if (s->marks == NULL || s->groups == NULL)
		return wlb_fail(error, "out of memory for the schedule of %lld documents", (long long)documents);
	int64_t spans = 0;
	for (int g = 0; g < s->group_count; g++) {
		index_group(s, &s->groups[g], wlb_dataset_group(s->dataset, g), spans);
		spans += s->groups[g].spans;
	}
	s->cursor.spans = spans;
	set_shares(s);
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
	s->global_batch_size = global_batch_size;
	s->cursor = (struct wlb_schedule_state){.seed = seed,
	                                        .documents = wlb_dataset_documents(dataset),
	                                        .tokens = wlb_dataset_tokens(dataset),
	                                        .index_digest = wlb_dataset_index_digest(dataset),
	                                        .token_digest = wlb_dataset_token_digest(dataset)};
	if (index_spans(s, error) < 0) {
		wlb_schedule_free(s);
		return NULL;
	}
	s->cursor.groups = s->group_count > 1 ? s->group_count : 0;
	return s;
}

void wlb_schedule_free(struct wlb_schedule *s)
{
	if (s == NULL)
		return;
	free(s->marks);
	free(s->groups);
	free(s->spans);
	free(s);
}

void wlb_schedule_set_ramp(struct wlb_schedule *s, const struct wlb_batch_ramp *ramp)
{
	s->ramp = *ramp;
}

int64_t wlb_schedule_batch(const struct wlb_schedule *s)
{
	return wlb_batch_ramp_at(&s->ramp, s->global_batch_size, s->cursor.windows);
}

/* Returns the document that holds this span, and sets *first to the first span of it. */
static int64_t find_document(const struct wlb_schedule *s, int64_t span, int64_t *first)
{
	int64_t low = 0, high = s->mark_count;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (s->marks[middle] <= span)
			low = middle;
		else
			high = middle;
	}
	int64_t document = low * DOCUMENTS_A_MARK, spans;
	*first = s->marks[low];
	while (*first + (spans = document_spans(s, document)) <= span) {
		*first += spans;
		document++;
	}
	return document;
}

/* Returns the group of the next span: the one that lags most behind its share, the first of several. */
static int choose_group(const struct wlb_schedule *s)
{
	int chosen = 0;
	double total = 0.0, most = -INFINITY;
	if (s->group_count == 1)
		return 0;
	for (int g = 0; g < s->group_count; g++)
		total += (double)s->cursor.taken[g];
	for (int g = 0; g < s->group_count; g++) {
		double lag = s->groups[g].share * fmax(total, 1.0) - (double)s->cursor.taken[g];
		if (lag > most) {
			most = lag;
			chosen = g;
		}
	}
	return chosen;
}

/* Returns the span at a position of the group's order in an epoch. */
static int64_t span_at(struct wlb_schedule *s, int g, int64_t epoch, int64_t position)
{
	struct group *group = &s->groups[g];
	if (epoch != group->epoch) {
		/* Groups of one size have different orders. */
		uint64_t seed = g == 0 ? s->cursor.seed : wlb_word_digest_mix(s->cursor.seed, (uint64_t)g);
		group->epoch = epoch;
		wlb_shuffle_init(&group->order, seed, (uint64_t)epoch, group->spans);
	}
	return group->first_span + wlb_shuffle_at(&group->order, position);
}

/* The next span, of the group that is chosen. */
static int64_t next_span(struct wlb_schedule *s, int g)
{
	int64_t taken = s->cursor.taken[g], spans = s->groups[g].spans;
	return s->group_count == 1 ? span_at(s, g, s->cursor.epoch, s->cursor.position)
	                           : span_at(s, g, taken / spans, taken % spans);
}

/* The span that comes next, which is of group *g, without taking it. */
static struct wlb_span peek(struct wlb_schedule *s, int *g)
{
	if (s->cursor.position == s->cursor.spans) {
		s->cursor.epoch++;
		s->cursor.position = 0;
	}
	*g = choose_group(s);
	int64_t span = next_span(s, *g), first;
	int64_t document = find_document(s, span, &first);
	int64_t start = (span - first) * s->seq_length;
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
	int64_t inputs = 0, batch = wlb_schedule_batch(s);
	s->count = 0;
	for (;;) {
		int group;
		struct wlb_span span = peek(s, &group);
		if (inputs + span.tokens > batch * s->seq_length)
			break;
		if (append(s, &span, error) < 0)
			return -1;
		s->cursor.position++;
		s->cursor.taken[group] += s->group_count > 1;
		inputs += span.tokens;
	}
	s->cursor.step++;
	s->cursor.windows += batch;
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

/* The sum of what was taken of the groups is what was taken of all. */
static int check_taken(const struct wlb_schedule *s, const struct wlb_schedule_state *state, struct wlb_error *error)
{
	int64_t sum = 0, total;
	int is_right = state->groups == s->cursor.groups;
	for (int g = 0; is_right && g < state->groups; g++)
		is_right = state->taken[g] >= 0 && !__builtin_add_overflow(sum, state->taken[g], &sum);
	if (is_right && state->groups > 0)
		is_right = !__builtin_mul_overflow(state->epoch, state->spans, &total) &&
		           !__builtin_add_overflow(total, state->position, &total) && total == sum;
	return is_right ? 0
	                : wlb_fail(error,
	                           "the saved schedule has %d datasets with weights, or other numbers of their spans "
	                           "than "
	                           "of all; this one has %d: use the dataset of the run",
	                           state->groups, s->cursor.groups);
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
	if (state->epoch < 0 || state->step < 0 || state->windows < 0 || state->position < 0 ||
	    state->position > state->spans || state->windows >= WLB_SCHEDULE_WINDOWS_MAX)
		return wlb_fail(
			error,
			"the saved schedule has epoch %lld, position %lld, step %lld, %lld windows: none may be "
			"negative, position at most %lld, and windows below 2^62",
			(long long)state->epoch, (long long)state->position, (long long)state->step,
			(long long)state->windows, (long long)state->spans);
	return check_taken(s, state, error);
}

int wlb_schedule_restore(struct wlb_schedule *s, const struct wlb_schedule_state *state, struct wlb_error *error)
{
	if (wlb_schedule_check_state(s, state, error) < 0)
		return -1;
	uint64_t index_digest = s->cursor.index_digest, token_digest = s->cursor.token_digest;
	s->cursor = *state;
	s->cursor.index_digest = index_digest;
	s->cursor.token_digest = token_digest;
	return 0;
}
