#include "worker/load/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"
#include "worker/data/dataset.h"
#include "worker/load/rows.h"

static int set_time(struct wlb_preparer *p, struct wlb_error *error)
{
	const struct wlb_document_speeds *speeds = p->options.speeds;
	if (speeds != NULL && speeds->measured)
		return wlb_document_time_measured(&p->time, &p->model, speeds, error);
	wlb_document_time_init(&p->time, &p->model, p->options.layout.tp);
	return 0;
}

static int make_packer(struct wlb_preparer *p, struct wlb_error *error)
{
	struct wlb_packer_options packing;
	wlb_loader_packer_options(&p->options, &packing);
	if (p->options.packing == WLB_STRATEGY_BALANCED) {
		packing.work = wlb_document_s;
		packing.work_context = &p->packing;
	}
	p->packer = wlb_packer_new(&p->model, &packing, error);
	return p->packer == NULL ? -1 : 0;
}

int wlb_preparer_init(struct wlb_preparer *p, const struct wlb_dataset *dataset, const struct wlb_model *model,
                      const struct wlb_loader_options *options, int tile_rows, struct wlb_error *error)
{
	if (wlb_loader_check(options, error) < 0 ||
	    wlb_batch_ramp_check(&options->ramp, options->global_batch_size, error) < 0)
		return -1;
	*p = (struct wlb_preparer){.dataset = dataset, .model = *model, .options = *options, .tile_rows = tile_rows};
	if (set_time(p, error) < 0)
		return -1;
	wlb_document_time_init(&p->packing, model, 1);
	p->schedule = wlb_schedule_new(dataset, options->seq_length, options->global_batch_size, options->seed, error);
	if (p->schedule == NULL)
		return -1;
	wlb_schedule_set_ramp(p->schedule, &options->ramp);
	return make_packer(p, error) < 0 ? -1 : wlb_assigner_init(&p->assigner, options, &p->time, error);
}

int wlb_preparer_rewind(struct wlb_preparer *p, struct wlb_error *error)
{
	struct wlb_schedule_state first;
	wlb_schedule_save(p->schedule, &first);
	first.epoch = first.position = first.step = first.windows = 0;
	memset(first.taken, 0, sizeof(first.taken));
	wlb_packer_free(p->packer);
	p->packer = NULL;
	return make_packer(p, error) < 0 ? -1 : wlb_schedule_restore(p->schedule, &first, error);
}

void wlb_preparer_free(struct wlb_preparer *p)
{
	wlb_schedule_free(p->schedule);
	wlb_packer_free(p->packer);
	wlb_assigner_free(&p->assigner);
	wlb_shards_free(&p->shards);
	free(p->tokens);
}

void wlb_prepared_free(struct wlb_prepared *prepared)
{
	wlb_rows_free(&prepared->rows);
	free(prepared->packer_state);
}

/* Packs the documents of the next global batch. */
static const struct wlb_step *pack(struct wlb_preparer *p, struct wlb_error *error)
{
	const struct wlb_span *spans = NULL;
	wlb_packer_set_micro_batches(p->packer, (int32_t)wlb_schedule_batch(p->schedule));
	int count = wlb_schedule_next(p->schedule, &spans, error);
	if (count < 0)
		return NULL;
	const struct wlb_step *step = wlb_packer_next(p->packer, spans, (size_t)count, error);
	/* The queues of greedy may keep the whole batch. A step must not be empty: the queues are then emptied as at
	 * the end of the data. */
	if (step != NULL && step->tokens == 0)
		step = wlb_packer_next(p->packer, NULL, 0, error);
	return step;
}

/* The documents held by a packer from a checkpoint may belong to another dataset. */
static int check_span(const struct wlb_dataset *dataset, const struct wlb_span *span, struct wlb_error *error)
{
	if (span->document < 0 || span->document >= wlb_dataset_documents(dataset))
		return wlb_fail(error,
		                "%s: document %lld is to be trained, but it has %lld: use the dataset of the run",
		                wlb_dataset_path(dataset), (long long)span->document,
		                (long long)wlb_dataset_documents(dataset));
	int64_t tokens = wlb_dataset_length(dataset, span->document);
	if (span->start < 0 || span->start + span->tokens >= tokens)
		return wlb_fail(error,
		                "%s: tokens %lld to %lld of document %lld are to be trained, but it has %lld: use the "
		                "dataset of the run",
		                wlb_dataset_path(dataset), (long long)span->start,
		                (long long)(span->start + span->tokens), (long long)span->document, (long long)tokens);
	return 0;
}

enum { WRONG_ID = -2 };

/* Ids beyond the vocabulary would read beyond the embedding. Returns WRONG_ID where there is one. */
static int check_ids(const struct wlb_dataset *dataset, int64_t document, const int32_t *ids, int32_t count,
                     int64_t vocab_size, struct wlb_error *error)
{
	for (int32_t i = 0; i < count; i++) {
		if (ids[i] < vocab_size)
			continue;
		wlb_fail(
			error,
			"%.500s: document %lld holds token id %d, ids must be below vocab_size %lld: build it with the "
			"model's tokenizer",
			wlb_dataset_path_of(dataset, document), (long long)wlb_dataset_number_of(dataset, document),
			ids[i], (long long)vocab_size);
		return WRONG_ID;
	}
	return 0;
}

/* Fills ids and targets of micro-batch `number`, as laid out from `shards` for rank `rank`; document d of the shards is
 * spans[d]. A target is the token after the input, also where a document was cut; one that does not count in the loss
 * is none. Returns -1 where the dataset cannot
 * be read or lacks a span, WRONG_ID where a token id is not below vocab_size. */
static int read_rows(struct wlb_rows *rows, int32_t number, const struct wlb_shards *shards, int32_t rank,
                     const struct wlb_span *spans, const struct wlb_dataset *dataset, int64_t vocab_size,
                     struct wlb_error *error)
{
	int32_t *ids = rows->host + rows->arrays[number].ids, *targets = rows->host + rows->arrays[number].targets;
	for (size_t s = shards->first_shard[rank]; s < shards->first_shard[rank + 1]; s++) {
		const struct wlb_shard *shard = &shards->shards[s];
		const struct wlb_span *span = &spans[shard->document];
		int32_t *own = ids + shard->q_start, count = shard->q_count;
		if (check_span(dataset, span, error) < 0 ||
		    wlb_dataset_read(dataset, span->document, span->start + shard->q_offset, (int64_t)count + 1, own,
		                     error) < 0)
			return -1;
		int rc = check_ids(dataset, span->document, own, count + 1, vocab_size, error);
		if (rc < 0)
			return rc;
		memcpy(targets + shard->q_start, own + 1, (size_t)count * sizeof(*targets));
		if (wlb_dataset_mask(dataset, span->document, span->start + shard->q_offset + 1, count,
		                     targets + shard->q_start, error) < 0)
			return -1;
	}
	ids[rows->list[number].own_rows] = 0; /* the last target, where the padding begins */
	return 0;
}

/* Counts the targets of a step that count in the loss. Each rank reads the masks of the whole global batch, a byte for
 * each token, so that the divisor of the loss is known without communication, and is the same in every layout. */
static int count_targets(const struct wlb_dataset *dataset, const struct wlb_step *step, int64_t *counted,
                         struct wlb_error *error)
{
	*counted = step->tokens;
	if (!wlb_dataset_has_loss_mask(dataset))
		return 0;
	*counted = 0;
	for (size_t i = 0; i < step->count; i++) {
		const struct wlb_span *span = &step->spans[i].span;
		if (check_span(dataset, span, error) < 0)
			return -1;
		int64_t of_span = wlb_dataset_mask(dataset, span->document, span->start + 1, span->tokens, NULL, error);
		if (of_span < 0)
			return -1;
		*counted += of_span;
	}
	return 0;
}

/* Documents of a micro-batch. */
struct documents {
	const struct wlb_span *spans;
	const int64_t *tokens;
	const struct wlb_place *places; /* with dynamic packing */
	size_t count;
};

/* Shards a micro-batch of one replica over its context-parallel ranks. */
static int share_of_replica(struct wlb_preparer *p, const struct documents *d, struct wlb_share *share,
                            struct wlb_error *error)
{
	const struct wlb_loader_options *o = &p->options;
	/* A single rank has all documents in order with either sharding. */
	enum wlb_sharding sharding = o->layout.cp > 1 ? o->sharding : WLB_SHARDING_SEQUENCE;
	if (wlb_shard(sharding, &p->time.kernels, d->tokens, d->count, o->layout.cp, &p->shards, error) < 0)
		return -1;
	*share = wlb_share_of_all(&p->shards, 0, o->coords.cp, o->layout.tp);
	return 0;
}

/* Leaves of documents in the order of their first rank those of one group. */
static void keep_group(struct documents *d, int32_t first_rank)
{
	while (d->count > 0 && d->places->first_rank < first_rank) {
		d->spans++;
		d->tokens++;
		d->places++;
		d->count--;
	}
	while (d->count > 0 && d->places[d->count - 1].first_rank > first_rank)
		d->count--;
}

/* Shards the documents of this rank's group over it, and leaves these alone. */
static int share_of_group(struct wlb_preparer *p, struct documents *d, struct wlb_share *share, struct wlb_error *error)
{
	const struct wlb_loader_options *o = &p->options;
	int32_t ranks = d->places->ranks, rank = wlb_loader_rank(o) % ranks;
	*share = (struct wlb_share){0};
	keep_group(d, wlb_loader_rank(o) - rank);
	if (d->count == 0)
		return 0;
	if (wlb_shard(WLB_SHARDING_DOCUMENT, NULL, d->tokens, d->count, ranks, &p->shards, error) < 0)
		return -1;
	*share = wlb_share_of_all(&p->shards, wlb_share_group(ranks, wlb_loader_ranks(o), o->layout.cp), rank,
	                          o->layout.tp);
	return 0;
}

/* Shards a micro-batch of all replicas, each document over its own ranks. */
static int share_of_places(struct wlb_preparer *p, int32_t number, const struct documents *d, struct wlb_share *share,
                           struct wlb_error *error)
{
	const struct wlb_loader_options *o = &p->options;
	if (wlb_shard_places(d->tokens, d->places, d->count, wlb_loader_ranks(o), number, &p->shards, error) < 0)
		return -1;
	*share = wlb_share_of_places(&p->shards, d->tokens, d->places, d->count, wlb_loader_rank(o), &o->layout);
	return 0;
}

/* With dynamic packing micro-batches are of all replicas, but for that of a check. */
static int share_out(struct wlb_preparer *p, int32_t number, struct documents *d, struct wlb_share *share,
                     struct wlb_error *error)
{
	if (p->options.packing != WLB_STRATEGY_DYNAMIC || number == p->options.micro_batches)
		return share_of_replica(p, d, share, error);
	d->places = p->assigner.places + p->assigner.first[number];
	return p->assigner.in_groups ? share_of_group(p, d, share, error) : share_of_places(p, number, d, share, error);
}

/* Fills one micro-batch: shards it, lays out this rank's rows, and reads its tokens. Adds to *predicted_s the time of
 * its passes over it. */
static int fill(struct wlb_preparer *p, struct wlb_rows *rows, int32_t number, double *predicted_s,
                struct wlb_error *error)
{
	const struct wlb_loader_options *o = &p->options;
	const struct wlb_span *spans = p->assigner.spans + p->assigner.first[number];
	size_t count = p->assigner.first[number + 1] - p->assigner.first[number];
	if (count == 0)
		return 0;
	if (wlb_grow((void **)&p->tokens, &p->tokens_capacity, count, sizeof(*p->tokens)) < 0)
		return wlb_fail(error, "out of memory for a micro-batch of %zu spans", count);
	for (size_t i = 0; i < count; i++)
		p->tokens[i] = spans[i].tokens;
	struct documents documents = {.spans = spans, .tokens = p->tokens, .count = count};
	struct wlb_share share;
	if (share_out(p, number, &documents, &share, error) < 0)
		return -1;
	if (share.keys == 0)
		return 0;
	share.second_half = wlb_second_half(share.rows, o->layout.tp, o->halved_rows);
	if (wlb_rows_add(rows, number, &p->shards, &share, &p->model, p->tile_rows, error) < 0)
		return -1;
	*predicted_s += wlb_shards_time_s(&p->time, &p->shards, share.rank, share.rows, o->layout.pp,
	                                  o->coords.pp == o->layout.pp - 1);
	int rc = read_rows(rows, number, &p->shards, share.rank, documents.spans, p->dataset, p->model.vocab_size,
	                   error);
	p->has_wrong_id |= rc == WRONG_ID;
	return rc < 0 ? -1 : 0;
}

/* Fills the micro-batch of a check, behind those that the rank trains. */
static int fill_check(struct wlb_preparer *p, const struct wlb_step *step, int64_t turn, struct wlb_prepared *out,
                      struct wlb_error *error)
{
	int32_t number = p->options.micro_batches;
	double unused_s = 0.0; /* of work that is not the step's */
	if (wlb_assigner_pick(&p->assigner, step, turn, error) < 0 || fill(p, &out->rows, number, &unused_s, error) < 0)
		return -1;
	out->step.check = &out->rows.list[number];
	return 0;
}

/* Saves the states of schedule and packer after the step. */
static int save_states(struct wlb_preparer *p, struct wlb_prepared *out, struct wlb_error *error)
{
	size_t bytes = wlb_packer_state_bytes(p->packer);
	if (wlb_grow(&out->packer_state, &out->packer_state_capacity, bytes, 1) < 0)
		return wlb_fail(error, "out of memory for %zu bytes of the packer's state", bytes);
	wlb_packer_save(p->packer, out->packer_state);
	wlb_schedule_save(p->schedule, &out->step.schedule);
	out->step.packer_state = out->packer_state;
	out->step.packer_state_bytes = bytes;
	return 0;
}

int wlb_prepare(struct wlb_preparer *p, struct wlb_prepared *out, const atomic_bool *stopping, struct wlb_error *error)
{
	const struct wlb_step *step = pack(p, error);
	if (step == NULL || wlb_assigner_assign(&p->assigner, step, error) < 0)
		return -1;
	wlb_rows_clear(&out->rows);
	out->step = (struct wlb_loaded_step){
		.tokens = step->tokens,
		.windows = step->micro_batches,
		.documents = (int)step->count,
		.held_tokens = step->held_tokens,
		.micro_batches = p->options.micro_batches,
		.list = out->rows.list,
	};
	if (count_targets(p->dataset, step, &out->step.loss_tokens, error) < 0)
		return -1;
	for (int32_t m = 0; m < p->options.micro_batches && !atomic_load(stopping); m++) {
		if (fill(p, &out->rows, m, &out->step.predicted_s, error) < 0)
			return -1;
		out->step.work += out->rows.list[m].work;
	}
	if (save_states(p, out, error) < 0)
		return -1;
	out->step.step = out->step.schedule.step;
	int64_t interval = p->options.check_interval;
	if (interval > 0 && out->step.step % interval == 0)
		return fill_check(p, step, out->step.step / interval, out, error);
	return 0;
}
