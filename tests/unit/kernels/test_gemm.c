/* Matrix products against three loops: every transposition, strides wider than the rows, alpha and beta. */
#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct example {
	int64_t m, n, k;
	double alpha, beta;
};

static const struct example EXAMPLES[] = {
	{1, 1, 1, 1, 0},        {3, 17, 5, 2, 0},  {17, 3, 257, 1, 1}, {257, 129, 65, 0.5, 1}, {65, 257, 1, 1, 0},
	{130, 70, 33, -1, 0.5}, {4, 5, 0, 1, 0.5}, {0, 5, 3, 1, 0},    {5, 1025, 257, 1, 0},
};

/* Rows and stride of a matrix as it is stored. */
struct stored {
	int64_t rows, columns, stride;
};

static struct stored stored_as(int64_t rows, int64_t columns, int transposed)
{
	struct stored s = {transposed ? columns : rows, transposed ? rows : columns, 0};
	s.stride = s.columns + 3;
	return s;
}

static double element(const double *matrix, const struct stored *s, int64_t row, int64_t column, int transposed)
{
	return transposed ? matrix[column * s->stride + row] : matrix[row * s->stride + column];
}

static void check_product(struct wlb_device *device, const struct example *e, int trans_a, int trans_b)
{
	struct stored sa = stored_as(e->m, e->k, trans_a), sb = stored_as(e->k, e->n, trans_b);
	struct stored sc = stored_as(e->m, e->n, 0);
	size_t na = (size_t)(sa.rows * sa.stride), nb = (size_t)(sb.rows * sb.stride);
	size_t nc = (size_t)(sc.rows * sc.stride);
	double *a = random_numbers(na, 1), *b = random_numbers(nb, 2), *want = random_numbers(nc, 3);
	if (e->beta == 0 && nc > 0)
		want[0] = NAN; /* beta 0 means that c is not read */
	void *aa = to_array(device, a, na), *ba = to_array(device, b, nb), *ca = to_array(device, want, nc);
	for (int64_t i = 0; i < e->m; i++)
		for (int64_t j = 0; j < e->n; j++) {
			double sum = 0;
			for (int64_t l = 0; l < e->k; l++)
				sum += element(a, &sa, i, l, trans_a) * element(b, &sb, l, j, trans_b);
			double *c = &want[i * sc.stride + j];
			*c = e->alpha * sum + (e->beta == 0 ? 0 : e->beta * *c);
		}
	device->ops->gemm(device, trans_a, trans_b, e->m, e->n, e->k, e->alpha, aa, sa.stride, ba, sb.stride, e->beta,
	                  ca, sc.stride);
	check_close(device, "c", ca, want, nc, 1e-5);
	RELEASE(device, aa, ba, ca);
	free(a), free(b), free(want);
}

static void check_gemm(struct wlb_device *device)
{
	for (size_t n = 0; n < sizeof(EXAMPLES) / sizeof(EXAMPLES[0]); n++)
		for (int trans = 0; trans < 4; trans++)
			check_product(device, &EXAMPLES[n], trans & 1, trans >> 1);
}

static void test_gemm(void **state)
{
	(void)state;
	for_each_device(check_gemm);
}

static void test_too_large(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	double one = 1;
	device->ops->gemm(device, 0, 0, 1, INT64_C(1) << 31, 1, 1, &one, 1, &one, INT64_C(1) << 31, 0, &one,
	                  INT64_C(1) << 31);
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	assert_non_null(strstr(error.message, "2147483648"));
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemm), cmocka_unit_test(test_too_large)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
