#include "checks/node/known_vectors.h"

#include <stdio.h>
#include <stdlib.h>

/* ROWS is prime, so that multiples of STEP visit each row. Every GAP-th row is gathered as zeros. */
enum { ROWS = 251, WIDTH = 260, STEP = 97, GAP = 10 };

static int allocate(enum wlb_dtype compute, struct wlb_known_vectors *v, struct wlb_error *error)
{
	v->rows = calloc(ROWS, sizeof(*v->rows));
	if (v->rows == NULL)
		return wlb_fail(error, "out of memory for known results");
	struct wlb_host_matrix *const all[] = {&v->x, &v->y, &v->sums, &v->gathered};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (wlb_matrix_make(all[i], compute, ROWS, WIDTH, error) < 0)
			return -1;
	return 0;
}

int wlb_known_vectors_make(enum wlb_dtype compute, uint64_t seed, struct wlb_known_vectors *v, struct wlb_error *error)
{
	uint64_t state = ~seed;
	*v = (struct wlb_known_vectors){0};
	if (allocate(compute, v, error) < 0)
		return -1;
	for (int64_t i = 0; i < ROWS * WIDTH; i++) {
		int x = wlb_next_factor(&state), y = wlb_next_factor(&state);
		wlb_dtype_store(compute, v->x.values, i, x);
		wlb_dtype_store(compute, v->y.values, i, y);
		wlb_dtype_store(compute, v->sums.values, i, x + y);
	}
	for (int32_t row = 0; row < ROWS; row++) {
		int32_t from = row % GAP == 0 ? -1 : row * STEP % ROWS;
		v->rows[row] = from;
		for (int64_t c = 0; c < WIDTH && from >= 0; c++)
			wlb_dtype_store(compute, v->gathered.values, row * WIDTH + c,
			                wlb_dtype_load(compute, v->x.values, from * WIDTH + c));
	}
	return 0;
}

void wlb_known_vectors_free(struct wlb_known_vectors *v)
{
	free(v->x.values);
	free(v->y.values);
	free(v->sums.values);
	free(v->gathered.values);
	free(v->rows);
	*v = (struct wlb_known_vectors){0};
}

int wlb_vectors_load(struct wlb_device *device, const struct wlb_known_vectors *known,
                     struct wlb_loaded_vectors *vectors, struct wlb_error *error)
{
	const struct wlb_ops *ops = device->ops;
	size_t bytes = wlb_matrix_bytes(&known->x), rows_bytes = ROWS * sizeof(*known->rows);
	*vectors = (struct wlb_loaded_vectors){.known = known, .out_host = malloc(bytes)};
	if (vectors->out_host == NULL)
		return wlb_fail(error, "out of memory for results");
	const struct {
		void **memory;
		const void *from;
		size_t bytes;
	} all[] = {{&vectors->x, known->x.values, bytes},
	           {&vectors->y, known->y.values, bytes},
	           {&vectors->out, known->y.values, bytes},
	           {&vectors->rows, known->rows, rows_bytes}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i].memory = ops->alloc(device, all[i].bytes, error);
		if (*all[i].memory == NULL)
			return -1;
		ops->to_device(device, NULL, *all[i].memory, all[i].from, all[i].bytes);
	}
	return ops->synchronize(device, error);
}

void wlb_vectors_unload(struct wlb_device *device, struct wlb_loaded_vectors *vectors)
{
	void *const all[] = {vectors->x, vectors->y, vectors->rows, vectors->out};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		device->ops->release(device, all[i]);
	free(vectors->out_host);
}

/* Compares what is in `out` with the expected matrix; returns as wlb_vectors_try. */
static int compare(struct wlb_device *device, const struct wlb_loaded_vectors *v, const char *operation,
                   const struct wlb_host_matrix *expected, char *text, size_t size, struct wlb_error *error)
{
	char difference[128];
	device->ops->to_host(device, v->out_host, v->out, wlb_matrix_bytes(expected));
	if (device->ops->synchronize(device, error) < 0)
		return -1;
	if (!wlb_matrix_differs(expected, v->out_host, difference, sizeof(difference)))
		return 0;
	snprintf(text, size, "%s of %d x %d is wrong: %s", operation, ROWS, WIDTH, difference);
	return 1;
}

int wlb_vectors_try(struct wlb_device *device, const struct wlb_loaded_vectors *v, char *text, size_t size,
                    struct wlb_error *error)
{
	const struct wlb_ops *ops = device->ops;
	size_t bytes = wlb_matrix_bytes(&v->known->y);
	ops->zero(device, v->out, bytes);
	ops->copy(device, v->out, v->y, bytes);
	int rc = compare(device, v, "copy", &v->known->y, text, size, error);
	if (rc != 0)
		return rc;
	ops->add(device, v->out, v->x, (int64_t)ROWS * WIDTH);
	rc = compare(device, v, "addition", &v->known->sums, text, size, error);
	if (rc != 0)
		return rc;
	ops->gather_rows(device, v->out, WIDTH, v->x, WIDTH, v->rows, ROWS, WIDTH);
	return compare(device, v, "gathered rows", &v->known->gathered, text, size, error);
}
