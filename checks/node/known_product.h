/* Matrix products whose results are known exactly, whatever the order of their sums. */
#ifndef CHECKS_NODE_KNOWN_PRODUCT_H
#define CHECKS_NODE_KNOWN_PRODUCT_H

#include "kernels/ops.h"

/* The products of a linear layer, in the order of kernels/ops.h. */
enum wlb_product_kind { WLB_PRODUCT_FORWARD, WLB_PRODUCT_INPUT_GRADIENT, WLB_PRODUCT_WEIGHT_GRADIENT };

/* A matrix of the host, of elements of its type. */
struct wlb_host_matrix {
	enum wlb_dtype dtype;
	int64_t rows, columns;
	void *values;
};

struct wlb_known_product {
	enum wlb_product_kind kind;
	int64_t n, out, in;           /* as in kernels/ops.h */
	struct wlb_host_matrix left;  /* x, d_y, d_y */
	struct wlb_host_matrix right; /* W, W, x */
	struct wlb_host_matrix result;
};

/* Products of each kind in several shapes; the last are small and uneven. */
enum { WLB_KNOWN_PRODUCTS = 9 };

/*
 * Makes the products: factors are whole numbers from -8 to 8 without 0, and sums have 512 terms at most, so that every
 * partial sum is a whole number below 2^24, which float32 holds exactly. So any order of the sums gives the same bits,
 * and the result is the sum of whole numbers that the host computes, rounded once to the type of the result. Without
 * zeros among the factors no sum is -0. Returns -1 if out of memory; wlb_known_products_free in any case.
 */
int wlb_known_products_make(enum wlb_dtype compute, uint64_t seed, struct wlb_known_product list[WLB_KNOWN_PRODUCTS],
                            struct wlb_error *error);
void wlb_known_products_free(struct wlb_known_product list[WLB_KNOWN_PRODUCTS]);

/* Queues the product on the device, of factors there. */
void wlb_known_product_queue(struct wlb_device *device, const struct wlb_known_product *product, void *result,
                             const void *left, const void *right);

/* "x W^T of 96 x 512 x 384", for messages. */
void wlb_known_product_name(const struct wlb_known_product *product, char *text, size_t size);

size_t wlb_matrix_bytes(const struct wlb_host_matrix *matrix);

/* Allocates a matrix; returns -1 if out of memory. */
int wlb_matrix_make(struct wlb_host_matrix *matrix, enum wlb_dtype dtype, int64_t rows, int64_t columns,
                    struct wlb_error *error);

/* Returns 0 where `got` has the bits of the matrix, else 1 and writes where it differs: "element (3, 9) is 4, not 5; 1
 * of 64 elements differ". */
int wlb_matrix_differs(const struct wlb_host_matrix *matrix, const void *got, char *text, size_t size);

/* The next whole number from -8 to 8 without 0, of the sequence of the state (random.h). */
int wlb_next_factor(uint64_t *state);

#endif
