/* Makes datasets, and copies to the host the steps that the loaders of all ranks of a layout return. */
#ifndef TESTS_UNIT_WORKER_LOADS_H
#define TESTS_UNIT_WORKER_LOADS_H

#include "tests/unit/data/fixture.h"
#include "worker/load/document_time.h"
#include "worker/load/loader.h"

/* A document's tokens are numbered through the whole file: token i of it has id i. */
struct loads_dataset {
	struct wlb_dataset *dataset;
	int64_t tokens;
	struct wlb_device *device;
	struct wlb_model model; /* small; its vocabulary is all ids */
};

void loads_open(struct loads_dataset *d, void **state, const int32_t *lengths, int count);
/* `count` documents with lengths of the skewed stream, divided by `divisor`. */
void loads_open_skewed(struct loads_dataset *d, void **state, int count, int64_t divisor);
void loads_close(struct loads_dataset *d);

/* Micro-batch size and most tokens (0: as usual) as wlb_loader_micro_batches takes them. */
struct wlb_loader_options loads_options(enum wlb_strategy packing, enum wlb_sharding sharding, int64_t seq_length,
                                        int64_t windows, int64_t micro_batch_size, int64_t max_tokens,
                                        struct wlb_layout layout);

struct wlb_loader *loads_new(const struct loads_dataset *d, const struct wlb_loader_options *options);
const struct wlb_loaded_step *loads_next(struct wlb_loader *loader);

/* A micro-batch of one rank on the host; NULL where it is empty. */
struct loads_batch {
	struct wlb_micro_batch about; /* its pointers must not be dereferenced */
	int32_t *ids, *targets, *positions, *from_ranks, *to_ranks;
	struct wlb_segment *segments;
};
struct loads_batch loads_fetch(struct wlb_device *device, const struct wlb_micro_batch *batch,
                               const struct wlb_layout *layout);
/* How many ranks a key group of struct wlb_groups has: cp, then cp x dp and the powers of two below but for cp. */
int loads_group_ranks(int group, const struct wlb_layout *layout);
/* Rows of all ranks in the exchanges of a micro-batch. */
int64_t loads_exchanged(const struct wlb_micro_batch *batch, const struct wlb_layout *layout);
void loads_batch_free(struct loads_batch *batch);

/* Loaders of all cp x dp ranks of a layout (tp and pp 0), and the micro-batches of their newest step:
 * batches[(dp * cp ranks + cp) * micro_batches + m]. */
struct loads_group {
	const struct loads_dataset *data;
	struct wlb_loader_options options;
	int ranks;
	struct wlb_loader **loaders;
	const struct wlb_loaded_step **steps; /* [ranks] */
	struct loads_batch *batches;
};
void loads_group_open(struct loads_group *g, const struct loads_dataset *d, const struct wlb_loader_options *options);
void loads_group_close(struct loads_group *g);
void loads_group_next(struct loads_group *g);
const struct loads_batch *loads_group_batch(const struct loads_group *g, int dp, int cp, int micro_batch);

/* The steps that schedule and packer return, without a loader. */
struct loads_stream {
	struct wlb_schedule *schedule;
	struct wlb_packer *packer; /* keeps a pointer to `time`: the stream must not move */
	struct wlb_document_time time;
};
void loads_stream_open(struct loads_stream *s, const struct loads_dataset *d, const struct wlb_loader_options *options);
void loads_stream_close(struct loads_stream *s);
const struct wlb_step *loads_stream_next(struct loads_stream *s);
/* Id of the first token of a span. */
int64_t loads_first_id(const struct loads_dataset *d, const struct wlb_span *span);

#endif
