#include "worker/calibrate/streams.h"

#include "worker/calibrate/memory.h"
#include "worker/calibrate/stopwatch.h"

/* 64 MiB of float32 for each vector. */
enum { COUNT = 16 << 20, WIDTH = 4096, VECTORS = 4 };

struct streams {
	void *vectors[VECTORS];
	void *weight; /* [WIDTH] */
	void *rstd;   /* [COUNT / WIDTH] */
	void *one;
};

static void add(struct wlb_device *device, void *context)
{
	const struct streams *s = context;
	device->ops->add(device, s->vectors[0], s->vectors[1], COUNT);
}

static void swiglu(struct wlb_device *device, void *context)
{
	const struct streams *s = context;
	device->ops->swiglu_forward(device, s->vectors[0], s->vectors[1], COUNT / (2 * WIDTH), WIDTH);
}

static void norm(struct wlb_device *device, void *context)
{
	const struct streams *s = context;
	device->ops->rmsnorm_forward(device, s->vectors[0], s->rstd, NULL, s->vectors[1], NULL, s->weight,
	                             COUNT / WIDTH, WIDTH, 1e-5);
}

static void adamw(struct wlb_device *device, void *context)
{
	const struct streams *s = context;
	const struct wlb_adamw options = {
		.lr = 1e-6, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .grad_scale = 1.0, .step = 1};
	device->ops->adamw(device, s->vectors[0], s->vectors[1], s->vectors[2], s->vectors[3], COUNT, &options);
}

static void scale_one(struct wlb_device *device, void *context)
{
	const struct streams *s = context;
	device->ops->scale(device, s->one, 1.0, 1);
}

/* Vectors that an operation reads and writes. */
static const struct {
	wlb_operation *operation;
	double vectors;
} OPERATIONS[] = {{add, 3.0}, {swiglu, 1.5}, {norm, 2.0}, {adamw, 7.0}};

enum { OPERATION_COUNT = sizeof(OPERATIONS) / sizeof(OPERATIONS[0]) };

static int allocate(struct wlb_device *device, struct streams *s, struct wlb_error *error)
{
	*s = (struct streams){0};
	for (int i = 0; i < VECTORS; i++)
		if ((s->vectors[i] = wlb_calibrate_alloc_reals(device, COUNT, error)) == NULL)
			return -1;
	/* The second moment of AdamW, whose root is taken. */
	device->ops->zero(device, s->vectors[3], COUNT * wlb_dtype_bytes(device->compute));
	s->weight = wlb_calibrate_alloc_reals(device, WIDTH, error);
	s->rstd = s->weight != NULL ? wlb_calibrate_alloc_reals(device, COUNT / WIDTH, error) : NULL;
	s->one = s->rstd != NULL ? wlb_calibrate_alloc_reals(device, 1, error) : NULL;
	return s->one != NULL ? 0 : -1;
}

static void release(struct wlb_device *device, struct streams *s)
{
	for (int i = 0; i < VECTORS; i++)
		device->ops->release(device, s->vectors[i]);
	device->ops->release(device, s->weight);
	device->ops->release(device, s->rstd);
	device->ops->release(device, s->one);
}

int wlb_measure_streams(struct wlb_device *device, double limit_s, double *bytes_per_s, double *operation_s,
                        struct wlb_error *error)
{
	struct streams streams;
	double bytes = 0.0, all_s = 0.0, seconds;
	int rc = allocate(device, &streams, error);
	for (int i = 0; rc == 0 && i < OPERATION_COUNT; i++) {
		rc = wlb_stopwatch(device, OPERATIONS[i].operation, &streams, limit_s / OPERATION_COUNT, &seconds,
		                   error);
		if (rc == 0) {
			bytes += OPERATIONS[i].vectors * COUNT * (double)wlb_dtype_bytes(device->compute);
			all_s += seconds;
		}
	}
	if (rc == 0)
		rc = wlb_stopwatch(device, scale_one, &streams, 0.01, operation_s, error);
	release(device, &streams);
	if (rc == 0)
		*bytes_per_s = bytes / all_s;
	return rc;
}
