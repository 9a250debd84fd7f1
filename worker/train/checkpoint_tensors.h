/* The elements of a rank with their names in a checkpoint, in host memory between the device and the files. All are of
 * the device's type `master`. */
#ifndef WORKER_TRAIN_CHECKPOINT_TENSORS_H
#define WORKER_TRAIN_CHECKPOINT_TENSORS_H

#include "worker/checkpoint/checkpoint.h"
#include "worker/optimizer/optimizer.h"

/* The tensor that a part belongs to. */
struct wlb_part_source {
	enum wlb_state state;
	const struct wlb_tensor *tensor;
	char name[96]; /* in the checkpoint */
};

struct wlb_parts {
	const struct wlb_parameters *parameters;
	struct wlb_tensor_part *list;
	struct wlb_part_source *sources; /* of each part of the list */
	int count;
	int owned;  /* of them, the first ones: those of tensors that the rank owns */
	char *host; /* the data of the parts in their order, memory of alloc_host */
	size_t host_bytes;
};

/* Lists the states [first, end) of the elements in the parts of the buckets that rank `member` of a data group has: all
 * that it keeps, or, where only_owned, those of the tensors that the ranks of the group own, so that together all ranks
 * list each element once. On -1 `parts` is empty and may be closed. */
int wlb_parts_open(struct wlb_parts *parts, const struct wlb_parameters *parameters, int member, enum wlb_state first,
                   enum wlb_state end, int only_owned, struct wlb_error *error);
void wlb_parts_close(struct wlb_parts *parts);
/* Gives all parts, which must be of masters, the names and places that they have in a published model: they can then be
 * read from its files. */
void wlb_parts_place_in_published(struct wlb_parts *parts);

/* Starts to copy all parts from the optimizer to the host, on the queue: wlb_optimizer_fetch. */
int wlb_parts_fetch(struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_queue *queue,
                    struct wlb_error *error);
/* Joins the masters that have arrived in halves. Any thread may call it. */
int wlb_parts_join(struct wlb_parts *parts, const struct wlb_optimizer *optimizer, struct wlb_error *error);

/* Gives all parts to the optimizer: wlb_optimizer_store_range. */
int wlb_parts_store(const struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_error *error);

#endif
