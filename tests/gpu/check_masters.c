/*
 * Checks AdamW where the weights in use have another element type than the masters, and the factor of clipping. The
 * CPU device has one type only, so this is compared with the algorithm as its paper writes it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/bfloat16.h"
#include "kernels/ops.h"

int wlb_check_masters(struct wlb_device *device);

enum { COUNT = 4099, STEPS = 3 }; /* not a multiple of what a thread takes at a time */
enum { UPPERS = 1 << 16 };        /* the values of an upper half; as many masters fit in memory */
enum { SPOILED = 0x3f80 };        /* the upper half whose master an update makes NaN */

enum { PARAM, LOWER, GRADIENT, FIRST, SECOND, FACTOR, ARRAYS };

/* Masters, and the halves that a device has of them. */
struct masters {
	float whole[UPPERS];
	uint16_t weight[UPPERS], lower[UPPERS];
};

static void split_all(struct masters *s, int count)
{
	for (int i = 0; i < count; i++) {
		const struct wlb_halves halves = wlb_split_master(s->whole[i]);
		s->weight[i] = halves.weight;
		s->lower[i] = halves.lower;
	}
}

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
	return (struct wlb_adamw){0.01, 0.9, 0.95, 1e-8, 0.1, step, NULL};
}

/* Puts masters, gradients and the factor on the device, and moments of 0. */
static void send(struct wlb_device *d, void **a, struct masters *s, const void *gradient, double factor, int count)
{
	split_all(s, count);
	d->ops->to_device(d, NULL, a[PARAM], s->weight, (size_t)count * sizeof(*s->weight));
	d->ops->to_device(d, NULL, a[LOWER], s->lower, (size_t)count * sizeof(*s->lower));
	d->ops->to_device(d, NULL, a[GRADIENT], gradient, (size_t)count * wlb_dtype_bytes(d->gradients));
	d->ops->to_device(d, NULL, a[FACTOR], &factor, sizeof(factor));
	d->ops->zero(d, a[FIRST], (size_t)count * sizeof(float));
	d->ops->zero(d, a[SECOND], (size_t)count * sizeof(float));
}

/* Reads the halves, and joins them. */
static int receive(struct wlb_device *d, void **a, struct masters *s, int count, struct wlb_error *error)
{
	d->ops->to_host(d, s->weight, a[PARAM], (size_t)count * sizeof(*s->weight));
	d->ops->to_host(d, s->lower, a[LOWER], (size_t)count * sizeof(*s->lower));
	if (d->ops->synchronize(d, error) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		s->whole[i] = wlb_join_master((struct wlb_halves){s->weight[i], s->lower[i]});
	return 0;
}

/* Whether the halves are those of the master. */
static int is_split(const struct masters *s, int i)
{
	const struct wlb_halves halves = wlb_split_master(s->whole[i]);
	return s->weight[i] == halves.weight && s->lower[i] == halves.lower;
}

/* Returns how many masters are wrong after STEPS updates with gradients of `gradients`, times `factor`. */
static int count_wrong(const struct masters *s, double factor)
{
	int wrong = 0;
	for (int i = 0; i < COUNT; i++) {
		double want = number(i + 1), m = 0, v = 0;
		/* The gradients are multiples of 1/8 below 2: exact in bfloat16. */
		for (int step = 1; factor != 0 && step <= STEPS; step++) {
			struct wlb_adamw adamw = settings(step);
			reference(&want, &m, &v, factor * (i % 31 - 15) / 8.0, &adamw);
		}
		wrong += !(fabs(s->whole[i] - want) <= 1e-5) || !is_split(s, i);
	}
	return wrong;
}

static int check_update(struct wlb_device *d, void **a, double factor, struct wlb_error *error)
{
	static struct masters s;
	static float gradient[COUNT];
	for (int i = 0; i < COUNT; i++) {
		s.whole[i] = (float)number(i + 1);
		wlb_dtype_store(d->gradients, gradient, i, (i % 31 - 15) / 8.0);
	}
	send(d, a, &s, gradient, factor, COUNT);
	for (int step = 1; step <= STEPS; step++) {
		struct wlb_adamw adamw = settings(step);
		d->ops->adamw(d, a[PARAM], a[LOWER], a[GRADIENT], a[FIRST], a[SECOND], COUNT, &adamw, a[FACTOR]);
	}
	return receive(d, a, &s, COUNT, error) == 0 && count_wrong(&s, factor) == 0;
}

/* Whether an update by 0 leaves masters of every upper half as they are, with infinities, and the weight of one that is
 * NaN is NaN, too: also of the one that a GPU makes, whose bits are all ones after the sign, so that rounding them up
 * would leave -0. `lower` is their lower half. */
static int check_halves(struct wlb_device *d, void **a, uint32_t lower, struct wlb_error *error)
{
	static struct masters s;
	static uint32_t gradient[UPPERS];
	const struct wlb_adamw still = {0, 0.9, 0.95, 1e-8, 0, 1, NULL};
	int same = 1;
	for (uint32_t i = 0; i < UPPERS; i++) {
		const uint32_t bits = i << 16 | lower;
		memcpy(&s.whole[i], &bits, sizeof(bits));
	}
	gradient[SPOILED] = d->gradients == WLB_FLOAT32 ? 0x7fffffff : 0;
	send(d, a, &s, gradient, 1, UPPERS);
	d->ops->adamw(d, a[PARAM], a[LOWER], a[GRADIENT], a[FIRST], a[SECOND], UPPERS, &still, a[FACTOR]);
	if (receive(d, a, &s, UPPERS, error) != 0)
		return 0;
	for (uint32_t i = 0; i < UPPERS; i++) {
		const uint32_t want = (i << 16 | lower) | (i == SPOILED ? gradient[i] : 0);
		const int is_nan = want << 1 > 0xff000000u;
		uint32_t bits;
		memcpy(&bits, &s.whole[i], sizeof(bits));
		same &= is_nan ? isnan(wlb_float_of_bfloat16(s.weight[i])) != 0 : bits == want;
		same &= is_split(&s, (int)i);
	}
	return same;
}

/* The factor that the device finds for a sum of squares, a loss and a largest norm. */
static double factor_of(struct wlb_device *d, double *on_device, double sum_squares, double loss, double clip)
{
	double host[2] = {sum_squares, loss}, factor = NAN;
	d->ops->to_device(d, NULL, on_device + 1, host, sizeof(host));
	d->ops->clip_factor(d, on_device, on_device + 1, on_device + 2, clip, INFINITY);
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
		arrays[i] = device->ops->alloc(device, UPPERS * sizeof(float), &error);
		passed = passed && arrays[i] != NULL;
	}
	device->compute = WLB_BFLOAT16;
	for (int smaller = 0; smaller < 2 && passed; smaller++) {
		device->gradients = smaller ? WLB_BFLOAT16 : WLB_FLOAT32;
		passed = check_update(device, arrays, 0.5, &error) && check_update(device, arrays, 0, &error) &&
		         check_halves(device, arrays, 0x7fff, &error) && check_halves(device, arrays, 0x8000, &error);
	}
	passed = passed && check_factor(device, arrays[FACTOR]) && device->ops->synchronize(device, &error) == 0;
	device->compute = compute;
	device->gradients = gradients;
	for (int i = 0; i < ARRAYS; i++)
		device->ops->release(device, arrays[i]);
	printf("%-20s %22s %s%s\n", "masters", "", passed ? "ok" : "FAILED ", error.message);
	return passed;
}
