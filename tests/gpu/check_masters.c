/*
 * Checks AdamW where the weights in use have another element type than the masters, and the factor of clipping. The
 * CPU device has one type only, so this is compared with the algorithm as its paper writes it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops.h"

int wlb_check_masters(struct wlb_device *device);

enum { COUNT = 4099, STEPS = 3 }; /* not a multiple of what a thread takes at a time */

enum { PARAM, MASTER, GRADIENT, FIRST, SECOND, FACTOR, ARRAYS };

static double number(int i)
{
	return (i * 37 % 1000 - 500) / 512.0;
}

static void reference(double *param, double *m, double *v, double g, const struct wlb_adamw *a)
{
	*m = a->beta1 * *m + (1 - a->beta1) * g;
	*v = a->beta2 * *v + (1 - a->beta2) * g * g;
	double m_hat = *m / (1 - pow(a->beta1, (double)a->step)), v_hat = *v / (1 - pow(a->beta2, (double)a->step));
	*param -= a->lr * (m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * *param);
}

static struct wlb_adamw settings(int step)
{
	return (struct wlb_adamw){0.01, 0.9, 0.95, 1e-8, 0.1, step};
}

/* Returns how many weights are wrong after STEPS updates with gradients of `gradients`, times `factor`. */
static int count_wrong(const float *master, const uint16_t *param, double factor)
{
	int wrong = 0;
	for (int i = 0; i < COUNT; i++) {
		double want = number(i + 1), m = 0, v = 0;
		uint16_t rounded;
		/* The gradients are multiples of 1/8 below 2: exact in bfloat16. */
		for (int step = 1; factor != 0 && step <= STEPS; step++) {
			struct wlb_adamw adamw = settings(step);
			reference(&want, &m, &v, factor * (i % 31 - 15) / 8.0, &adamw);
		}
		wlb_dtype_store(WLB_BFLOAT16, &rounded, 0, factor != 0 ? (double)master[i] : 0.0);
		wrong += !(fabs(master[i] - want) <= 1e-5) || param[i] != rounded;
	}
	return wrong;
}

static int check_update(struct wlb_device *d, void **a, double factor, struct wlb_error *error)
{
	static float master[COUNT], gradient[COUNT];
	static uint16_t param[COUNT];
	for (int i = 0; i < COUNT; i++) {
		master[i] = (float)number(i + 1);
		wlb_dtype_store(d->gradients, gradient, i, (i % 31 - 15) / 8.0);
	}
	d->ops->to_device(d, NULL, a[MASTER], master, sizeof(master));
	d->ops->to_device(d, NULL, a[GRADIENT], gradient, COUNT * wlb_dtype_bytes(d->gradients));
	d->ops->to_device(d, NULL, a[FACTOR], &factor, sizeof(factor));
	d->ops->zero(d, a[PARAM], sizeof(param));
	d->ops->zero(d, a[FIRST], sizeof(master));
	d->ops->zero(d, a[SECOND], sizeof(master));
	for (int step = 1; step <= STEPS; step++) {
		struct wlb_adamw adamw = settings(step);
		d->ops->adamw(d, a[PARAM], a[MASTER], a[GRADIENT], a[FIRST], a[SECOND], COUNT, &adamw, a[FACTOR]);
	}
	d->ops->to_host(d, master, a[MASTER], sizeof(master));
	d->ops->to_host(d, param, a[PARAM], sizeof(param));
	return d->ops->synchronize(d, error) == 0 && count_wrong(master, param, factor) == 0;
}

/* The factor that the device finds for a sum of squares, a loss and a largest norm. */
static double factor_of(struct wlb_device *d, double *on_device, double sum_squares, double loss, double clip)
{
	double host[2] = {sum_squares, loss}, factor = NAN;
	d->ops->to_device(d, NULL, on_device + 1, host, sizeof(host));
	d->ops->clip_factor(d, on_device, on_device + 1, on_device + 2, clip);
	d->ops->to_host(d, &factor, on_device, sizeof(factor));
	return factor;
}

static int check_factor(struct wlb_device *d, double *a)
{
	return factor_of(d, a, 4, 1, 0) == 1 && factor_of(d, a, 4, 1, 3) == 1 && factor_of(d, a, 0, 1, 1) == 1 &&
	       fabs(factor_of(d, a, 4, 1, 1) - 0.5) < 1e-6 && factor_of(d, a, INFINITY, 1, 1) == 0 &&
	       factor_of(d, a, NAN, 1, 0) == 0 && factor_of(d, a, 4, NAN, 1) == 0 &&
	       factor_of(d, a, 4, -INFINITY, 0) == 0;
}

/* Returns whether all is right. */
int wlb_check_masters(struct wlb_device *device)
{
	/* The types of a device decide which kernel it starts. The device here was opened as float32. */
	const enum wlb_dtype compute = device->compute, gradients = device->gradients;
	struct wlb_error error = {""};
	void *arrays[ARRAYS];
	int passed = 1;
	for (int i = 0; i < ARRAYS; i++) {
		arrays[i] = device->ops->alloc(device, COUNT * sizeof(float), &error);
		passed = passed && arrays[i] != NULL;
	}
	device->compute = WLB_BFLOAT16;
	for (int smaller = 0; smaller < 2 && passed; smaller++) {
		device->gradients = smaller ? WLB_BFLOAT16 : WLB_FLOAT32;
		passed = check_update(device, arrays, 0.5, &error) && check_update(device, arrays, 0, &error);
	}
	passed = passed && check_factor(device, arrays[FACTOR]) && device->ops->synchronize(device, &error) == 0;
	device->compute = compute;
	device->gradients = gradients;
	for (int i = 0; i < ARRAYS; i++)
		device->ops->release(device, arrays[i]);
	printf("%-20s %22s %s%s\n", "masters", "", passed ? "ok" : "FAILED ", error.message);
	return passed;
}
