/* Operations on vectors whose results are known exactly: copies, additions, gathered rows. */
#ifndef CHECKS_NODE_KNOWN_VECTORS_H
#define CHECKS_NODE_KNOWN_VECTORS_H

#include "checks/node/known_product.h"

enum { WLB_VECTOR_OPERATIONS = 3 };

/* On the host: whole numbers from -8 to 8, which every element type holds exactly, and so do their sums. */
struct wlb_known_vectors {
	struct wlb_host_matrix x, y;
	int32_t *rows; /* [x.rows], in another order; some are -1, which gives zeros */
	struct wlb_host_matrix sums, gathered;
};

int wlb_known_vectors_make(enum wlb_dtype compute, uint64_t seed, struct wlb_known_vectors *vectors,
                           struct wlb_error *error);
void wlb_known_vectors_free(struct wlb_known_vectors *vectors);

/* The same on a device. */
struct wlb_loaded_vectors {
	const struct wlb_known_vectors *known;
	void *x, *y, *rows, *out, *out_host;
};

/* Returns -1 with the reason; wlb_vectors_unload in any case. */
int wlb_vectors_load(struct wlb_device *device, const struct wlb_known_vectors *known,
                     struct wlb_loaded_vectors *vectors, struct wlb_error *error);
void wlb_vectors_unload(struct wlb_device *device, struct wlb_loaded_vectors *vectors);

/* Computes each operation once. Returns 0 where all are exact; 1 with the first that is not in `text`; -1 with the
 * device's error. */
int wlb_vectors_try(struct wlb_device *device, const struct wlb_loaded_vectors *vectors, char *text, size_t size,
                    struct wlb_error *error);

#endif
