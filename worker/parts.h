/* Weights and moments as a checkpoint names them, in host memory between the device and the files. */
#ifndef WLB_PARTS_H
#define WLB_PARTS_H

#include "worker/checkpoint/checkpoint.h"
#include "worker/model/parameters.h"
#include "worker/optimizer/optimizer.h"

struct wlb_parts {
	const struct wlb_parameters *parameters;
	const struct wlb_optimizer *optimizer;
	struct wlb_tensor_part *list; /* every tensor three times: weight, first moment, second moment */
	int count;
	char *host;        /* three flat buffers, one after the other */
	char (*names)[96]; /* of the moments */
};

/* On -1 there is nothing in it, and closing it is still right. */
int wlb_parts_open(struct wlb_parts *parts, const struct wlb_parameters *parameters,
                   const struct wlb_optimizer *optimizer, struct wlb_error *error);
void wlb_parts_close(struct wlb_parts *parts);

int wlb_parts_fetch(struct wlb_parts *parts, struct wlb_error *error); /* device to host */
int wlb_parts_store(struct wlb_parts *parts, struct wlb_error *error); /* host to device */

#endif
