/* The products of linear layers against three loops: strides wider than the rows, with and without what is added. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct example {
	int64_t n, out, in;
};

static const struct example EXAMPLES[] = {
	{1, 1, 1},     {3, 17, 5},     {17, 3, 257}, {257, 129, 65}, {65, 257, 1},
	{130, 70, 33}, {5, 1025, 257}, {4, 5, 0},    {4, 0, 5},      {0, 5, 3},
};

enum { WIDER = 3 };

/* A matrix with rows of a stride wider than they are, or as wide. */
struct matrix {
	int64_t rows, columns, stride;
	double *values;
};

static struct matrix matrix_of(int64_t rows, int64_t columns, int wider, uint64_t seed)
{
	struct matrix m = {rows, columns, columns + wider, NULL};
	m.values = random_numbers((size_t)(rows * m.stride), seed);
	return m;
}

static void *upload(struct wlb_device *device, const struct matrix *m)
{
	return to_array(device, m->values, (size_t)(m->rows * m->stride));
}

static double at(const struct matrix *m, int64_t row, int64_t column, int transposed)
{
	return transposed ? m->values[column * m->stride + row] : m->values[row * m->stride + column];
}

/* c = op(a) op(b) + added, over `depth`; added NULL: none. */
static void multiply(struct matrix *c, const struct matrix *a, int trans_a, const struct matrix *b, int trans_b,
                     int64_t depth, const struct matrix *added)
{
	for (int64_t i = 0; i < c->rows; i++)
		for (int64_t j = 0; j < c->columns; j++) {
			double sum = added != NULL ? at(added, i, j, 0) : 0;
			for (int64_t l = 0; l < depth; l++)
				sum += at(a, i, l, trans_a) * at(b, l, j, trans_b);
			c->values[i * c->stride + j] = sum;
		}
}

/* The sums are of `depth` products of numbers from -1 to 1, depth / 4 in size together, and of at most two numbers
 * more. Roundings of a sum of n terms are independent, in whatever order a library adds: the error stays within 4
 * sqrt(n) 2^-24 of the sizes (Higham & Mary 2019). */
static void check_matrix(struct wlb_device *device, const char *what, const void *got, const struct matrix *want,
                         int64_t depth)
{
	double tolerance = 4.0 * sqrt((double)depth + 2.0) * 0x1p-24 * (0.25 * (double)depth + 2.0);
	check_close(device, what, got, want->values, (size_t)(want->rows * want->stride), tolerance);
}

static void check_output(struct wlb_device *device, const struct example *e)
{
	struct matrix x = matrix_of(e->n, e->in, WIDER, 1), w = matrix_of(e->out, e->in, 0, 2);
	struct matrix y = matrix_of(e->n, e->out, WIDER, 3), residual = matrix_of(e->n, e->out, WIDER, 4);
	if (e->n * e->out > 0)
		y.values[0] = NAN; /* without a residual y is not read */
	void *xa = upload(device, &x), *wa = upload(device, &w), *ya = upload(device, &y);
	void *ra = upload(device, &residual);
	const struct wlb_weight weight = {wa, e->out, e->in};
	multiply(&y, &x, 0, &w, 1, e->in, NULL);
	device->ops->linear(device, ya, y.stride, xa, x.stride, &weight, NULL, e->n);
	check_matrix(device, "y", ya, &y, e->in);
	multiply(&y, &x, 0, &w, 1, e->in, &residual);
	device->ops->linear(device, ya, y.stride, xa, x.stride, &weight, ra, e->n);
	check_matrix(device, "y with residual", ya, &y, e->in);
	check_matrix(device, "residual", ra, &residual, 0);
	multiply(&residual, &x, 0, &w, 1, e->in, &residual);
	device->ops->linear(device, ra, residual.stride, xa, x.stride, &weight, ra, e->n);
	check_matrix(device, "y in the place of the residual", ra, &residual, e->in);
	RELEASE(device, xa, wa, ya, ra);
	free(x.values), free(w.values), free(y.values), free(residual.values);
}

static void check_gradients(struct wlb_device *device, const struct example *e)
{
	struct matrix x = matrix_of(e->n, e->in, WIDER, 1), w = matrix_of(e->out, e->in, 0, 2);
	struct matrix d_y = matrix_of(e->n, e->out, WIDER, 3), d_x = matrix_of(e->n, e->in, WIDER, 4);
	struct matrix d_w = matrix_of(e->out, e->in, 0, 5);
	if (e->n * e->in > 0)
		d_x.values[0] = NAN;
	if (e->n * e->out * e->in > 0)
		d_w.values[0] = NAN;
	void *xa = upload(device, &x), *wa = upload(device, &w), *d_ya = upload(device, &d_y);
	void *d_xa = upload(device, &d_x), *d_wa = upload(device, &d_w);
	const struct wlb_weight weight = {wa, e->out, e->in};
	multiply(&d_x, &d_y, 0, &w, 0, e->out, NULL);
	device->ops->linear_d_x(device, d_xa, d_x.stride, d_ya, d_y.stride, &weight, 0, e->n);
	check_matrix(device, "d_x", d_xa, &d_x, e->out);
	multiply(&d_x, &d_y, 0, &w, 0, e->out, &d_x);
	device->ops->linear_d_x(device, d_xa, d_x.stride, d_ya, d_y.stride, &weight, 1, e->n);
	check_matrix(device, "d_x, added to", d_xa, &d_x, 2 * e->out);
	if (e->n > 0) {
		multiply(&d_w, &d_y, 1, &x, 0, e->n, NULL);
		device->ops->linear_d_w(device, d_wa, d_ya, d_y.stride, xa, x.stride, 0, e->n, e->out, e->in);
		check_matrix(device, "d_w", d_wa, &d_w, e->n);
	}
	multiply(&d_w, &d_y, 1, &x, 0, e->n, &d_w);
	device->ops->linear_d_w(device, d_wa, d_ya, d_y.stride, xa, x.stride, 1, e->n, e->out, e->in);
	check_matrix(device, "d_w, added to", d_wa, &d_w, 2 * e->n);
	RELEASE(device, xa, wa, d_ya, d_xa, d_wa);
	free(x.values), free(w.values), free(d_y.values), free(d_x.values), free(d_w.values);
}

static void check_linear(struct wlb_device *device)
{
	for (size_t n = 0; n < sizeof(EXAMPLES) / sizeof(EXAMPLES[0]); n++) {
		check_output(device, &EXAMPLES[n]);
		check_gradients(device, &EXAMPLES[n]);
	}
}

static void test_linear(void **state)
{
	(void)state;
	for_each_device(check_linear);
}

static void test_too_large(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	double one = 1;
	const struct wlb_weight weight = {&one, INT64_C(1) << 31, 1};
	device->ops->linear(device, &one, INT64_C(1) << 31, &one, 1, &weight, NULL, 1);
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	assert_non_null(strstr(error.message, "2147483648"));
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear), cmocka_unit_test(test_too_large)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
