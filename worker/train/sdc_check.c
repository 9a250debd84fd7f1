#include "worker/train/sdc_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rank_trace.h"
#include "planner/node_type.h"
#include "worker/comm/comm_trace.h"
#include "worker/model/gathered_weights.h"
#include "worker/model/gradients.h"
#include "worker/train/device.h"
#include "worker/train/sdc_vote.h"

enum { PIECE_BYTES = 1 << 20, NAMED_MAX = 8 };

struct wlb_sdc_check {
	struct wlb_sdc_check_uses uses;
	struct wlb_sdc_shape shape;
	int places;
	double *loss;                     /* device */
	char *piece_host;                 /* [PIECE_BYTES] */
	uint64_t *own;                    /* [digests] of this rank */
	uint64_t *first, *second;         /* [places, digests] */
	double *halves;                   /* [places, digests, 2] */
	double *ranks;                    /* [places] the rank at each */
	struct wlb_sdc_suspect *suspects; /* [places] */
	int digested;                     /* buckets of gradients so far */
};

struct wlb_sdc_check *wlb_sdc_check_new(const struct wlb_sdc_check_uses *uses, struct wlb_error *error)
{
	struct wlb_sdc_check *c = calloc(1, sizeof(*c));
	const struct wlb_ops *ops = uses->device->ops;
	if (c == NULL) {
		wlb_fail(error, "out of memory for --sdc-check-interval");
		return NULL;
	}
	c->uses = *uses;
	c->shape = (struct wlb_sdc_shape){.layout = uses->groups->layout,
	                                  .chunks = uses->plan->interleave,
	                                  .is_head_shared = uses->plan->shared_head};
	c->places = wlb_layout_ranks(&c->shape.layout);
	size_t digests = (size_t)wlb_sdc_digests(&c->shape), all = (size_t)c->places * digests;
	c->own = calloc(digests, sizeof(*c->own));
	c->first = calloc(all, sizeof(*c->first));
	c->second = calloc(all, sizeof(*c->second));
	c->halves = calloc(2 * all, sizeof(*c->halves));
	c->ranks = calloc((size_t)c->places, sizeof(*c->ranks));
	c->suspects = calloc((size_t)c->places, sizeof(*c->suspects));
	c->loss = ops->alloc(uses->device, sizeof(*c->loss), error);
	c->piece_host = c->loss != NULL ? ops->alloc_host(uses->device, PIECE_BYTES, error) : NULL;
	int has_all = c->own != NULL && c->first != NULL && c->second != NULL && c->halves != NULL &&
	              c->ranks != NULL && c->suspects != NULL;
	if (!has_all)
		wlb_fail(error, "out of memory for --sdc-check-interval on %d ranks", c->places);
	if (has_all && c->piece_host != NULL)
		return c;
	wlb_sdc_check_free(c);
	return NULL;
}

void wlb_sdc_check_free(struct wlb_sdc_check *c)
{
	if (c == NULL)
		return;
	c->uses.device->ops->release(c->uses.device, c->loss);
	c->uses.device->ops->release_host(c->uses.device, c->piece_host);
	free(c->own);
	free(c->first);
	free(c->second);
	free(c->halves);
	free(c->ranks);
	free(c->suspects);
	free(c);
}

/* ---- digests ----------------------------------------------------------------------------------------------------- */

/* Each step can be undone, so that a change of one word always changes the result. */
static uint64_t add_word(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return digest ^ digest >> 32;
}

static uint64_t add_bytes(uint64_t digest, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, count - i < sizeof(word) ? count - i : sizeof(word));
		digest = add_word(digest, word);
	}
	return digest;
}

/* Adds device memory, a piece at a time. */
static uint64_t add_memory(struct wlb_sdc_check *c, uint64_t digest, const void *memory, size_t bytes)
{
	for (size_t offset = 0; offset < bytes; offset += PIECE_BYTES) {
		size_t count = bytes - offset < PIECE_BYTES ? bytes - offset : PIECE_BYTES;
		c->uses.device->ops->to_host(c->uses.device, c->piece_host, (const char *)memory + offset, count);
		digest = add_bytes(digest, c->piece_host, count);
	}
	return digest;
}

/* ---- a micro-batch ----------------------------------------------------------------------------------------------- */

static void pass_begins(void *check, int backward)
{
	(void)check;
	(void)backward;
}

static int pass_queued(void *check, struct wlb_error *error)
{
	(void)check;
	(void)error;
	return 0;
}

static int pass_leaves(void *check, struct wlb_pass pass, const void *stream, size_t bytes, struct wlb_error *error)
{
	struct wlb_sdc_check *c = check;
	(void)error; /* of the copy: it is found when the device is synchronized */
	c->own[pass.backward * c->shape.chunks + pass.chunk] = add_memory(c, 0, stream, bytes);
	return 0;
}

static uint64_t *digest_of_gradients(struct wlb_sdc_check *c)
{
	return &c->own[wlb_sdc_digests(&c->shape) - 1];
}

static void digest_next(struct wlb_sdc_check *c)
{
	const struct wlb_parameters *p = c->uses.parameters;
	const struct wlb_bucket *bucket = &p->buckets[c->digested];
	size_t element_bytes = wlb_dtype_bytes(p->device->gradients);
	wlb_gradients_complete(p, c->digested++);
	*digest_of_gradients(c) = add_memory(c, *digest_of_gradients(c),
	                                     (const char *)p->gradients + bucket->gradient_offset * element_bytes,
	                                     bucket->elements * element_bytes);
}

/* Digests the gradients that are complete: their memory may be that of gradients that follow. */
static int layer_done(void *check, int chunk, int layer, struct wlb_error *error)
{
	struct wlb_sdc_check *c = check;
	const struct wlb_parameters *p = c->uses.parameters;
	(void)error; /* as of pass_leaves */
	while (c->digested < p->bucket_count && wlb_bucket_is_complete(&p->buckets[c->digested], chunk, layer))
		digest_next(c);
	return 0;
}

static int compute(struct wlb_sdc_check *c, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	struct wlb_device *device = c->uses.device;
	const struct wlb_pass_watch watch = {.begins = pass_begins,
	                                     .queued = pass_queued,
	                                     .leaves = pass_leaves,
	                                     .layer_done = layer_done,
	                                     .context = c};
	memset(c->own, 0, (size_t)wlb_sdc_digests(&c->shape) * sizeof(*c->own));
	c->digested = 0;
	if (wlb_weights_await_all(c->uses.parameters, error) < 0) /* their update reads the sums of gradients */
		return -1;
	wlb_optimizer_begin(c->uses.optimizer);
	device->ops->zero(device, c->loss, sizeof(*c->loss));
	if (wlb_pipeline_run_alone(c->uses.pipeline, batch, c->loss, &watch, error) < 0)
		return -1;
	while (c->digested < c->uses.parameters->bucket_count)
		digest_next(c);
	*digest_of_gradients(c) = add_memory(c, *digest_of_gradients(c), c->loss, sizeof(*c->loss));
	return device->ops->synchronize(device, error);
}

/* Sends every rank the digests of all. A double holds half of one. */
static int exchange(struct wlb_sdc_check *c, uint64_t *digests, struct wlb_error *error)
{
	size_t count = (size_t)wlb_sdc_digests(&c->shape), all = (size_t)c->places * count;
	double *own = c->halves + 2 * count * (size_t)c->uses.groups->place;
	memset(c->halves, 0, 2 * all * sizeof(*c->halves));
	for (size_t i = 0; i < count; i++) {
		own[2 * i] = (double)(c->own[i] >> 32);
		own[2 * i + 1] = (double)(c->own[i] & UINT32_MAX);
	}
	if (wlb_comm_all_reduce_double(c->uses.groups->world, c->halves, 2 * all, WLB_SUM, error) < 0)
		return -1;
	for (size_t i = 0; i < all; i++)
		digests[i] = (uint64_t)c->halves[2 * i] << 32 | (uint64_t)c->halves[2 * i + 1];
	return 0;
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static int rank_at(const struct wlb_sdc_check *c, int place)
{
	return (int)c->ranks[place];
}

static const char *node_at(const struct wlb_sdc_check *c, int place)
{
	return wlb_launch_node(c->uses.launch, rank_at(c, place));
}

/* Writes "rank 3 on n2", or "one of rank 0 on n1, rank 1 on n1". */
static void name_suspects(const struct wlb_sdc_check *c, int first, char *text, size_t size)
{
	int count = c->suspects[first].count, named = 0;
	size_t length = (size_t)snprintf(text, size, "%s", count > 1 ? "one of " : "");
	for (int p = first; p < c->places && named < NAMED_MAX && length < size; p++)
		if (c->suspects[p].count > 0 && c->suspects[p].first == first)
			length += (size_t)snprintf(text + length, size - length, "%srank %d on %s",
			                           named++ > 0 ? ", " : "", rank_at(c, p), node_at(c, p));
	if (count > named && length < size)
		snprintf(text + length, size - length, " and %d more", count - named);
}

static void print(const struct wlb_sdc_check *c, int64_t step, int first)
{
	char names[1024], other[256] = "the second time";
	int other_place = c->suspects[first].other;
	name_suspects(c, first, names, sizeof(names));
	if (other_place != first)
		snprintf(other, sizeof(other), "rank %d on %s", rank_at(c, other_place), node_at(c, other_place));
	fprintf(stderr,
	        "wlb-worker: step %lld: silent data corruption: %s computed other bits of a micro-batch than %s\n",
	        (long long)step, names, other);
}

/* Returns the lowest of the ranks that are suspected together; `first` is the lowest of their places. */
static int lowest_rank(const struct wlb_sdc_check *c, int first)
{
	int lowest = rank_at(c, first);
	for (int p = first; p < c->places; p++)
		if (c->suspects[p].count > 0 && c->suspects[p].first == first && rank_at(c, p) < lowest)
			lowest = rank_at(c, p);
	return lowest;
}

static void tell(const struct wlb_sdc_check *c, int64_t step)
{
	int place = c->uses.groups->place;
	const struct wlb_sdc_suspect *own = &c->suspects[place];
	for (int p = 0; p < c->places && c->uses.launch->rank == 0; p++)
		if (c->suspects[p].count > 0 && c->suspects[p].first == p)
			print(c, step, p);
	if (own->count == 0)
		return;
	const struct wlb_trace_corruption corruption = {.step = step,
	                                                .suspects = own->count,
	                                                .first = lowest_rank(c, own->first),
	                                                .other = rank_at(c, own->other)};
	wlb_rank_trace_set_corruption(wlb_comm_trace_memory(wlb_comm_get_trace(c->uses.groups->world)), &corruption);
}

int wlb_sdc_check_run(struct wlb_sdc_check *c, int64_t step, const struct wlb_micro_batch *batch,
                      struct wlb_error *error)
{
	if (compute(c, batch, error) < 0 || exchange(c, c->first, error) < 0)
		return -1;
	if (c->shape.by_replicas && !wlb_sdc_differ(&c->shape, c->first))
		return 0;
	if (compute(c, batch, error) < 0 || exchange(c, c->second, error) < 0)
		return -1;
	if (wlb_sdc_vote(&c->shape, c->first, c->second, c->suspects) > 0)
		tell(c, step);
	return 0;
}

/* ---- whether replicas can be compared ---------------------------------------------------------------------------- */

/* A digest of the model of the processor or GPU, and of the threads that compute. */
static uint64_t machine_of(const struct wlb_sdc_check *c)
{
	char text[256];
	struct wlb_gpu gpu = {0};
	struct wlb_error none; /* a GPU that is not described is one without a name */
	const struct wlb_device *device = c->uses.device;
	wlb_node_type(0, text, sizeof(text));
	if (device->host_memory)
		return add_word(add_bytes(0, text, strlen(text)), (uint64_t)device->host_threads);
	wlb_cuda_describe(wlb_own_gpu(c->uses.launch), &gpu, &none);
	return add_bytes(0, gpu.model, strlen(gpu.model));
}

/* Whether the group has more than two ranks, and they are on several nodes. */
static int is_spread(const struct wlb_sdc_check *c, struct wlb_comm *group, double *spread, struct wlb_error *error)
{
	double node = c->uses.launch->node_of[c->uses.launch->rank], most[2] = {node, -node};
	if (wlb_comm_all_reduce_double(group, most, 2, WLB_MAX, error) < 0)
		return -1;
	if (wlb_comm_size(group) > 2 && most[0] != -most[1])
		*spread = 1.0;
	return 0;
}

int wlb_sdc_check_open(struct wlb_sdc_check *c, struct wlb_error *error)
{
	struct wlb_comm *world = c->uses.groups->world;
	uint64_t machine = machine_of(c);
	double high = (double)(machine >> 32), low = (double)(machine & UINT32_MAX);
	double most[5] = {high, -high, low, -low, 0.0};
	c->ranks[c->uses.groups->place] = c->uses.launch->rank;
	if (is_spread(c, c->uses.groups->tp, &most[4], error) < 0 ||
	    is_spread(c, c->uses.groups->cp, &most[4], error) < 0 ||
	    wlb_comm_all_reduce_double(world, most, 5, WLB_MAX, error) < 0 ||
	    wlb_comm_all_reduce_double(world, c->ranks, (size_t)c->places, WLB_SUM, error) < 0)
		return -1;
	int is_one_machine = most[0] == -most[1] && most[2] == -most[3];
	const char *why = c->shape.layout.dp == 1 ? "there is one replica"
	                  : !is_one_machine       ? "processors, GPUs or numbers of threads differ"
	                  : most[4] > 0.0         ? "groups of tp or cp of more than two ranks are on several nodes"
	                                          : NULL;
	c->shape.by_replicas = why == NULL;
	if (why != NULL && c->uses.launch->rank == 0)
		fprintf(stderr, "wlb-worker: --sdc-check-interval: each rank is compared with itself alone: %s\n", why);
	return 0;
}
