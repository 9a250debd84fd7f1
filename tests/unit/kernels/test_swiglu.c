/* SwiGLU and GeGLU. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const struct {
	int64_t n, width;
} SIZES[] = {{0, 3}, {3, 0}, {1, 1}, {3, 1}, {1, 17}, {5, 257}, {300, 67}};
enum { SIZE_COUNT = sizeof(SIZES) / sizeof(SIZES[0]) };

typedef void forward_operation(struct wlb_device *, void *, const void *, int64_t, int64_t);
typedef void backward_operation(struct wlb_device *, void *, void *, int64_t, int64_t);

static forward_operation *forward_of(const struct wlb_device *device, int is_gelu)
{
	return is_gelu ? device->ops->geglu_forward : device->ops->swiglu_forward;
}

static backward_operation *backward_of(const struct wlb_device *device, int is_gelu)
{
	return is_gelu ? device->ops->geglu_backward : device->ops->swiglu_backward;
}

/* As torch.nn.functional has them: silu, and gelu with approximate="tanh". */
static double activated(double gate, int is_gelu)
{
	if (!is_gelu)
		return gate / (1 + exp(-gate));
	return 0.5 * gate * (1 + tanh(sqrt(2 / acos(-1)) * (gate + 0.044715 * gate * gate * gate)));
}

/* Gates reach from where the sigmoid is 0 to where it is 1, beyond what exp can hold; every row has some. */
static double *gates_and_ups(int64_t n, int64_t width)
{
	double *gate_up = random_numbers((size_t)(2 * n * width), 1);
	for (int64_t t = 0; t < n; t++)
		for (int64_t i = 0; i < width; i++)
			gate_up[2 * t * width + i] *= (t + i) % 5 == 4 ? 1000 : 8;
	return gate_up;
}

static void check_forward_size(struct wlb_device *device, int64_t n, int64_t width, int is_gelu)
{
	size_t count = (size_t)(n * width);
	double *gate_up = gates_and_ups(n, width), *want = random_numbers(count, 3);
	void *in = to_array(device, gate_up, 2 * count), *out = to_array(device, NULL, count);
	for (int64_t t = 0; t < n; t++)
		for (int64_t i = 0; i < width; i++) {
			double gate = gate_up[2 * t * width + i], up = gate_up[(2 * t + 1) * width + i];
			want[t * width + i] = activated(gate, is_gelu) * up;
		}
	forward_of(device, is_gelu)(device, out, in, n, width);
	check_close(device, "out", out, want, count, 2e-6);
	RELEASE(device, in, out);
	free(gate_up), free(want);
}

static void check_forward(struct wlb_device *device)
{
	for (size_t s = 0; s < SIZE_COUNT; s++)
		for (int is_gelu = 0; is_gelu <= 1; is_gelu++)
			check_forward_size(device, SIZES[s].n, SIZES[s].width, is_gelu);
}

static void test_forward(void **state)
{
	(void)state;
	for_each_device(check_forward);
}

struct run {
	struct wlb_device *device;
	int64_t n, width;
	int is_gelu;
	double *gate_up, *out, *weights;
};

static double run_loss(void *context)
{
	struct run *r = context;
	forward_of(r->device, r->is_gelu)(r->device, r->out, r->gate_up, r->n, r->width);
	return weighted_sum(r->out, r->weights, (size_t)(r->n * r->width));
}

static void check_gradient(struct wlb_device *device, int64_t n, int64_t width, int is_gelu)
{
	size_t count = (size_t)(n * width);
	struct run r = {device,
	                n,
	                width,
	                is_gelu,
	                random_numbers(2 * count, 1),
	                random_numbers(count, 3),
	                random_numbers(count, 4)};
	/* The same numbers, which the backward pass replaces. */
	double *d_gate_up = random_numbers(2 * count, 1), *d_out = random_numbers(count, 4);
	backward_of(device, is_gelu)(device, d_gate_up, d_out, n, width);
	check_differences("d_gate_up", &(struct difference_check){run_loss, &r, r.gate_up, d_gate_up, 2 * count});
	free(r.gate_up), free(r.out), free(r.weights), free(d_gate_up), free(d_out);
}

static void test_gradient(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(2);
	for (size_t s = 0; s < SIZE_COUNT; s++)
		for (int is_gelu = 0; is_gelu <= 1; is_gelu++)
			check_gradient(device, SIZES[s].n, SIZES[s].width, is_gelu);
	wlb_device_close(device);
}

/* The backward pass gives the output of the forward pass again, to the last bit. */
static void check_outputs_again(struct wlb_device *device, int is_gelu)
{
	for (size_t s = 0; s < SIZE_COUNT; s++) {
		size_t count = (size_t)(SIZES[s].n * SIZES[s].width);
		double *gate_up = gates_and_ups(SIZES[s].n, SIZES[s].width), *d_out = random_numbers(count, 4);
		void *in = to_array(device, gate_up, 2 * count), *out = to_array(device, NULL, count);
		void *again = to_array(device, d_out, count);
		forward_of(device, is_gelu)(device, out, in, SIZES[s].n, SIZES[s].width);
		backward_of(device, is_gelu)(device, in, again, SIZES[s].n, SIZES[s].width);
		check_same_bits(device, "out again", again, out, count);
		RELEASE(device, in, out, again);
		free(gate_up), free(d_out);
	}
}

static void check_output_again(struct wlb_device *device)
{
	check_outputs_again(device, 0);
	check_outputs_again(device, 1);
}

static void test_output_again(void **state)
{
	(void)state;
	for_each_device(check_output_again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_gradient),
	                                   cmocka_unit_test(test_output_again)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
