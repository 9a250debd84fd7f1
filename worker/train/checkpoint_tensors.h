/* The tensors of a rank with their names in a checkpoint, in host memory between the device and the files. */
#ifndef WORKER_TRAIN_CHECKPOINT_TENSORS_H
#define WORKER_TRAIN_CHECKPOINT_TENSORS_H

#include "worker/checkpoint/checkpoint.h"
#include "worker/model/parameters.h"

/* On the device, moments are read and written in the buffer of gradients (wlb_optimizer_gather_moments). */
enum wlb_part_kind { WLB_PART_WEIGHT, WLB_PART_FIRST_MOMENT, WLB_PART_SECOND_MOMENT, WLB_PART_KINDS };

/* The tensor that a part belongs to. */
struct wlb_part_source {
	enum wlb_part_kind kind;
	const struct wlb_tensor *tensor;
	char name[96]; /* in the checkpoint */
};

struct wlb_parts {
	const struct wlb_parameters *parameters;
	struct wlb_tensor_part *list;
	struct wlb_part_source *sources; /* of each part of the list */
	int count;
	char *host; /* the data of all parts */
};

/* Lists what a writer writes: weights and both moments of the tensors that the rank owns. On -1 `parts` is empty and
 * may be closed; also in the next function. */
int wlb_parts_open_owned(struct wlb_parts *parts, const struct wlb_parameters *parameters, struct wlb_error *error);
/* Lists what a rank reads: one kind, of all tensors that it holds. */
int wlb_parts_open_held(struct wlb_parts *parts, const struct wlb_parameters *parameters, enum wlb_part_kind kind,
                        struct wlb_error *error);
void wlb_parts_close(struct wlb_parts *parts);

/* Copies the parts of one kind from the device to the host. */
int wlb_parts_fetch(struct wlb_parts *parts, enum wlb_part_kind kind, struct wlb_error *error);
/* Copies all parts from the host to the device; they must be of one kind. */
int wlb_parts_store(const struct wlb_parts *parts, struct wlb_error *error);

#endif
