/* Compares a matrix product through kernels/cuda/ptx.cuh with plain loops. */
#include "tests/gpu/ptx_product.cuh"

#include <stdio.h>

enum { DEPTH = 5 * PTX_SIDE, COUNT = PTX_SIDE * DEPTH };

/* A whole number from -8 to 8: it is exact in bfloat16, and sums of products are exact in float32. */
static int value_of(int i)
{
	return i * 37 % 17 - 8;
}

static uint16_t to_bf16(int value)
{
	const float number = (float)value;
	uint32_t bits;
	memcpy(&bits, &number, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

/* b[j, l] of a matrix [PTX_SIDE, DEPTH], which is stored transposed or not. */
static int b_of(int j, int l, int transposed)
{
	return value_of(7 + (transposed ? l * PTX_SIDE + j : j * DEPTH + l));
}

static int count_wrong(const float *d, int transposed)
{
	int wrong = 0;
	for (int i = 0; i < PTX_SIDE; i++)
		for (int j = 0; j < PTX_SIDE; j++) {
			int sum = 0;
			for (int l = 0; l < DEPTH; l++)
				sum += value_of(i * DEPTH + l) * b_of(j, l, transposed);
			wrong += d[i * PTX_SIDE + j] != (float)sum;
		}
	return wrong;
}

/* Returns whether both forms of the product are right. */
extern "C" int wlb_check_ptx(struct wlb_device *device)
{
	uint16_t a[COUNT], b[COUNT];
	for (int i = 0; i < COUNT; i++) {
		a[i] = to_bf16(value_of(i));
		b[i] = to_bf16(value_of(7 + i));
	}
	const struct wlb_ops *ops = device->ops;
	struct wlb_error error = {""};
	float d[PTX_SIDE * PTX_SIDE];
	void *device_a = ops->alloc(device, sizeof(a), &error), *device_b = ops->alloc(device, sizeof(b), &error);
	void *device_d = ops->alloc(device, sizeof(d), &error);
	int wrong = device_a == NULL || device_b == NULL || device_d == NULL;
	for (int transposed = 0; transposed < 2 && wrong == 0; transposed++) {
		ops->to_device(device, NULL, device_a, a, sizeof(a));
		ops->to_device(device, NULL, device_b, b, sizeof(b));
		wlb_cuda_launch(device, "ptx_product", {1, 32}, ptx_product<PTX_NO_FAULT>, (float *)device_d,
		                (const uint16_t *)device_a, (const uint16_t *)device_b, (int)DEPTH, transposed);
		ops->to_host(device, d, device_d, sizeof(d));
		wrong = ops->synchronize(device, &error) != 0 || count_wrong(d, transposed) > 0;
	}
	ops->release(device, device_a);
	ops->release(device, device_b);
	ops->release(device, device_d);
	printf("%-20s %22s %s%s\n", "ptx", "", wrong ? "FAILED " : "ok", error.message);
	return !wrong;
}
