#include "worker/data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/word_digest.h"
#include "worker/data/indexed.h"
#include "worker/data/input.h"

struct part {
	struct wlb_indexed *indexed;
	int64_t from, to; /* the sequences that are chosen */
	int64_t skipped;  /* documents before the first that has some of them */
	int64_t begin;    /* the number of that one in the dataset */
	int64_t end;
	double weight;
};

struct wlb_dataset {
	struct part *parts;
	int part_count;
	struct wlb_dataset_group *groups;
	int group_count;
	int64_t tokens;
	uint64_t index_digest;
	uint64_t token_digest; /* 0: not made */
};

/* Returns the part that has the document; the last one for documents that there are none of. */
static const struct part *find_part(const struct wlb_dataset *d, int64_t document)
{
	int low = 0, high = d->part_count - 1;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (document < d->parts[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	return &d->parts[low];
}

/* The number of the document in its part. */
static int64_t number_in(const struct part *p, int64_t document)
{
	return document - p->begin + p->skipped;
}

static int is_whole(const struct part *p)
{
	return p->to - p->from == wlb_indexed_sequences(p->indexed);
}

/* Chooses documents of a part, which begin with number `begin`. */
static void choose_documents(struct part *p, const struct wlb_dataset_choice *choice, int64_t begin)
{
	/* Half a sequence is rounded to the even number, as Python's round() and so Megatron-LM does. */
	double sequences = (double)wlb_indexed_sequences(p->indexed);
	p->from = (int64_t)rint(choice->from * sequences);
	p->to = (int64_t)rint(choice->to * sequences);
	p->skipped = 0;
	int64_t end = wlb_indexed_documents(p->indexed);
	if (!is_whole(p))
		wlb_indexed_narrow(p->indexed, p->from, p->to, &p->skipped, &end);
	p->begin = begin;
	p->end = begin + end - p->skipped;
}

static void set_groups(struct wlb_dataset *d, int is_weighted)
{
	if (!is_weighted) {
		d->group_count = 1;
		d->groups[0] = (struct wlb_dataset_group){0, d->parts[d->part_count - 1].end, 1.0};
		return;
	}
	d->group_count = d->part_count;
	for (int i = 0; i < d->part_count; i++)
		d->groups[i] = (struct wlb_dataset_group){d->parts[i].begin, d->parts[i].end, d->parts[i].weight};
}

static uint64_t mix_double(uint64_t digest, double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof(word));
	return wlb_word_digest_mix(digest, word);
}

static void digest_parts(struct wlb_dataset *d)
{
	uint64_t digest = 0;
	d->index_digest = wlb_indexed_index_digest(d->parts[0].indexed);
	if (d->index_digest == 0 || (d->part_count == 1 && is_whole(&d->parts[0])))
		return;
	for (int i = 0; i < d->part_count; i++) {
		digest = wlb_word_digest_mix(digest, wlb_indexed_index_digest(d->parts[i].indexed));
		digest = wlb_word_digest_mix(digest, (uint64_t)d->parts[i].from);
		digest = wlb_word_digest_mix(digest, (uint64_t)(d->parts[i].to - d->parts[i].from));
	}
	for (int g = 0; d->group_count > 1 && g < d->group_count; g++)
		digest = mix_double(wlb_word_digest_mix(digest, (uint64_t)d->groups[g].begin), d->groups[g].weight);
	d->index_digest = digest != 0 ? digest : 1;
}

static int check_choice(const struct wlb_dataset_choice *choice, struct wlb_error *error)
{
	double sum = 0.0;
	if (choice->count < 1 || choice->count > WLB_DATASET_PARTS_MAX)
		return wlb_fail(error, "%d datasets: a blend has 1 to %d: join some of them", choice->count,
		                WLB_DATASET_PARTS_MAX);
	for (int i = 0; i < choice->count; i++)
		sum += choice->sources[i].weight;
	if (choice->is_weighted && sum <= 0.0)
		return wlb_fail(error, "the weights of the %d datasets are all 0: one must be above", choice->count);
	return 0;
}

/* Opens all parts; with weights those of weight 0 are no part. */
static int open_all(struct wlb_dataset *d, const struct wlb_dataset_choice *choice, struct wlb_error *error)
{
	for (int i = 0; i < choice->count; i++) {
		struct part *p = &d->parts[d->part_count];
		p->weight = choice->sources[i].weight;
		if (choice->is_weighted && p->weight <= 0.0)
			continue;
		int rc = wlb_indexed_open(choice->sources[i].prefix, &p->indexed, error);
		if (rc < 0)
			return rc;
		d->part_count++;
	}
	return 0;
}

int wlb_dataset_open_unchecked(const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset,
                               struct wlb_error *error)
{
	*dataset = NULL;
	if (check_choice(choice, error) < 0)
		return -1;
	struct wlb_dataset *d = calloc(1, sizeof(*d));
	if (d != NULL) {
		d->parts = calloc((size_t)choice->count, sizeof(*d->parts));
		d->groups = calloc((size_t)choice->count, sizeof(*d->groups));
	}
	int rc = WLB_UNREADABLE;
	if (d == NULL || d->parts == NULL || d->groups == NULL)
		wlb_fail(error, "%s: out of memory", choice->sources[0].prefix);
	else
		rc = open_all(d, choice, error);
	if (rc == 0)
		*dataset = d;
	else
		wlb_dataset_close(d);
	return rc;
}

/* The places of errors in a part: its sequences by share, the end of its .bin, its documents by share. */
enum { PLACE_SEQUENCES, PLACE_END, PLACE_DOCUMENTS, PLACES };

static double place_of(int part, int array, int share, int shares)
{
	return (double)(part * PLACES + array) + (double)share / shares;
}

void wlb_dataset_check(struct wlb_dataset *d, int share, int shares, struct wlb_dataset_check *check)
{
	*check = (struct wlb_dataset_check){.place = INFINITY};
	for (int i = 0; i < d->part_count && check->place == INFINITY; i++) {
		struct wlb_indexed *indexed = d->parts[i].indexed;
		int has_gaps;
		if (wlb_indexed_check_sequences(indexed, share, shares, &has_gaps, &check->error) < 0)
			check->place = place_of(i, PLACE_SEQUENCES, share, shares);
		else if (wlb_indexed_check_documents(indexed, share, shares, &check->error) < 0)
			check->place = place_of(i, PLACE_DOCUMENTS, share, shares);
		else if (share == 0)
			wlb_indexed_digest_index(indexed);
		check->has_gaps[i] = has_gaps;
	}
}

void wlb_dataset_check_ends(const struct wlb_dataset *d, struct wlb_dataset_check *check)
{
	for (int i = 0; i < d->part_count && place_of(i, PLACE_END, 0, 1) < check->place; i++)
		if (check->has_gaps[i] == 0.0 && wlb_indexed_check_end(d->parts[i].indexed, &check->error) < 0)
			check->place = place_of(i, PLACE_END, 0, 1);
}

int wlb_dataset_choose(struct wlb_dataset *d, const struct wlb_dataset_choice *choice, struct wlb_error *error)
{
	int64_t documents = 0;
	for (int i = 0; i < d->part_count; i++) {
		choose_documents(&d->parts[i], choice, documents);
		int64_t tokens = wlb_indexed_tokens(d->parts[i].indexed, error);
		if (tokens < 0)
			return -1;
		if (__builtin_add_overflow(d->tokens, tokens, &d->tokens))
			return wlb_fail(error, "the %d datasets together have more than 2^63 tokens", d->part_count);
		documents = d->parts[i].end;
	}
	set_groups(d, choice->is_weighted);
	digest_parts(d);
	return 0;
}

int wlb_dataset_open_parts(const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset,
                           struct wlb_error *error)
{
	struct wlb_dataset_check check;
	int rc = wlb_dataset_open_unchecked(choice, dataset, error);
	if (rc < 0)
		return rc;
	wlb_dataset_check(*dataset, 0, 1, &check);
	wlb_dataset_check_ends(*dataset, &check);
	rc = check.place < INFINITY ? wlb_fail(error, "%s", check.error.message)
	                            : wlb_dataset_choose(*dataset, choice, error);
	if (rc == 0)
		return 0;
	wlb_dataset_close(*dataset);
	*dataset = NULL;
	return -1;
}

int wlb_dataset_open(const char *prefix, struct wlb_dataset **dataset, struct wlb_error *error)
{
	const struct wlb_dataset_source source = {.prefix = prefix};
	const struct wlb_dataset_choice choice = {.sources = &source, .count = 1, .to = 1.0};
	return wlb_dataset_open_parts(&choice, dataset, error);
}

void wlb_dataset_close(struct wlb_dataset *d)
{
	if (d == NULL)
		return;
	for (int i = 0; i < d->part_count; i++)
		wlb_indexed_close(d->parts[i].indexed);
	free(d->parts);
	free(d->groups);
	free(d);
}

int64_t wlb_dataset_documents(const struct wlb_dataset *d)
{
	return d->parts[d->part_count - 1].end;
}

int64_t wlb_dataset_tokens(const struct wlb_dataset *d)
{
	return d->tokens;
}

int wlb_dataset_group_count(const struct wlb_dataset *d)
{
	return d->group_count;
}

const struct wlb_dataset_group *wlb_dataset_group(const struct wlb_dataset *d, int group)
{
	return &d->groups[group];
}

uint64_t wlb_dataset_index_digest(const struct wlb_dataset *d)
{
	return d->index_digest;
}

int wlb_dataset_digest_tokens(struct wlb_dataset *d, struct wlb_error *error)
{
	uint64_t digest = 0;
	for (int i = 0; i < d->part_count; i++) {
		int rc = wlb_indexed_digest_tokens(d->parts[i].indexed, error);
		if (rc < 0)
			return rc;
		digest = wlb_word_digest_mix(digest, wlb_indexed_token_digest(d->parts[i].indexed));
	}
	d->token_digest = d->part_count == 1 ? wlb_indexed_token_digest(d->parts[0].indexed) : digest;
	d->token_digest += d->token_digest == 0;
	return 0;
}

uint64_t wlb_dataset_token_digest(const struct wlb_dataset *d)
{
	return d->token_digest;
}

int64_t wlb_dataset_length(const struct wlb_dataset *d, int64_t document)
{
	const struct part *p = find_part(d, document);
	return wlb_indexed_length(p->indexed, number_in(p, document));
}

const char *wlb_dataset_path_of(const struct wlb_dataset *d, int64_t document)
{
	return wlb_indexed_path(find_part(d, document)->indexed);
}

int64_t wlb_dataset_number_of(const struct wlb_dataset *d, int64_t document)
{
	return number_in(find_part(d, document), document);
}

const char *wlb_dataset_path(const struct wlb_dataset *d)
{
	return wlb_indexed_path(d->parts[0].indexed);
}

int wlb_dataset_read(const struct wlb_dataset *d, int64_t document, int64_t start, int64_t count, int32_t *out,
                     struct wlb_error *error)
{
	const struct part *p = find_part(d, document);
	return wlb_indexed_read(p->indexed, number_in(p, document), start, count, out, error);
}

bool wlb_dataset_has_loss_mask(const struct wlb_dataset *d)
{
	for (int i = 0; i < d->part_count; i++)
		if (wlb_indexed_has_loss_mask(d->parts[i].indexed))
			return true;
	return false;
}

int64_t wlb_dataset_mask(const struct wlb_dataset *d, int64_t document, int64_t start, int64_t count, int32_t *targets,
                         struct wlb_error *error)
{
	const struct part *p = find_part(d, document);
	return wlb_indexed_mask(p->indexed, number_in(p, document), start, count, targets, error);
}

int64_t wlb_dataset_count_targets(const struct wlb_dataset *d, struct wlb_error *error)
{
	int64_t total = 0;
	for (int64_t i = 0; i < wlb_dataset_documents(d); i++) {
		int64_t counted = wlb_dataset_mask(d, i, 1, wlb_dataset_length(d, i) - 1, NULL, error);
		if (counted < 0)
			return counted;
		total += counted;
	}
	return total;
}

/* Returns where share `share` of `shares` of the part begins, as a number in the part. */
static int64_t share_begin(const struct part *p, int share, int shares)
{
	int64_t documents = p->end - p->begin;
	return p->skipped + documents / shares * share + documents % shares * share / shares;
}

int64_t wlb_dataset_max_token(const struct wlb_dataset *d, int share, int shares, struct wlb_error *error)
{
	int64_t largest = 0;
	for (int i = 0; i < d->part_count; i++) {
		const struct part *p = &d->parts[i];
		int64_t found = wlb_indexed_max_token(p->indexed, share_begin(p, share, shares),
		                                      share_begin(p, share + 1, shares), error);
		if (found < 0)
			return found;
		largest = found > largest ? found : largest;
	}
	return largest;
}
