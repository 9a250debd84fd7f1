/* The tensors of a rank with their names in a checkpoint, in host memory between the device and the files. All are of
 * the device's type `master`. */
#ifndef WORKER_TRAIN_CHECKPOINT_TENSORS_H
#define WORKER_TRAIN_CHECKPOINT_TENSORS_H

#include "worker/checkpoint/checkpoint.h"
#include "worker/optimizer/optimizer.h"

/* The tensor that a part belongs to. */
struct wlb_part_source {
	enum wlb_state state;
	const struct wlb_tensor *tensor;
	int64_t row;   /* of the tensor's block, where the part begins */
	size_t offset; /* of its data in wlb_parts.host, in bytes */
	char name[96]; /* in the checkpoint */
};

struct wlb_parts {
	const struct wlb_parameters *parameters;
	struct wlb_tensor_part *list;
	struct wlb_part_source *sources; /* of each part of the list */
	int count;
	char *host; /* the data of the parts; those of a writer's buckets take turns in it */
};

/* Lists what a writer writes: masters and both moments of the tensors that the rank owns, by state and bucket. Their
 * data are in memory one bucket at a time: all of them would take as much as three copies of the weights. On -1 `parts`
 * is empty and may be closed; also in the next function. */
int wlb_parts_open_owned(struct wlb_parts *parts, const struct wlb_parameters *parameters, struct wlb_error *error);
/* Lists what rank `member` of a data group reads: one state, of the tensors that it holds the rows with elements of its
 * own parts of the buckets. So the ranks of the group read each element once, but for rows that two parts share. */
int wlb_parts_open_kept(struct wlb_parts *parts, const struct wlb_parameters *parameters, int member,
                        enum wlb_state state, struct wlb_error *error);
void wlb_parts_close(struct wlb_parts *parts);

/* Returns the index of the first of the parts of one state and bucket, which follow each other; *count: their number.
 */
int wlb_parts_find(const struct wlb_parts *parts, enum wlb_state state, int bucket, int *count);
/* Copies `count` parts of one state and bucket to the host from `values` (device, master), which begin with the
 * bucket's first element (wlb_optimizer_gather). They have arrived once the device is synchronized. */
void wlb_parts_fetch(struct wlb_parts *parts, int first, int count, const void *values);

/* Gives all parts to the optimizer: wlb_optimizer_store_rows. */
int wlb_parts_store(const struct wlb_parts *parts, struct wlb_optimizer *optimizer, struct wlb_error *error);

#endif
