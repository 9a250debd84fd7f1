#include "tests/unit/kernels/support.h"

#include <stdlib.h>

enum { VOCAB = 7, TOKENS = 129 };

static const int64_t WIDTHS[] = {1, 3, 17, 257};

/* Ids repeat, in no order. */
static void fill_ids(int32_t *ids)
{
	for (int t = 0; t < TOKENS; t++)
		ids[t] = t * t % VOCAB;
}

/* Uneven slices, one of them empty. */
static const int64_t SLICES[] = {0, 3, 3, 4, VOCAB};
enum { SLICE_COUNT = sizeof(SLICES) / sizeof(SLICES[0]) - 1 };

static char *row_of(struct wlb_device *device, void *table, int64_t row, int64_t width)
{
	return (char *)table + (size_t)(row * width) * wlb_dtype_bytes(device->compute);
}

/* Of each row one slice gives what the whole table gives, and the others 0: their sum is the whole. */
static void check_forward_slices(struct wlb_device *device, void *table, const double *want, const int32_t *ids,
                                 int64_t width)
{
	size_t n = (size_t)(TOKENS * width);
	double *numbers = random_numbers(n, 5);
	void *sum = to_array(device, NULL, n), *out = to_array(device, numbers, n);
	for (int s = 0; s < SLICE_COUNT; s++) {
		device->ops->embedding_forward(device, out, row_of(device, table, SLICES[s], width), ids, TOKENS, width,
		                               SLICES[s], SLICES[s + 1] - SLICES[s]);
		device->ops->add(device, sum, out, (int64_t)n);
	}
	check_close(device, "sum of the slices' out", sum, want, n, 1e-7);
	RELEASE(device, sum, out);
	free(numbers);
}

static void check_width(struct wlb_device *device, int64_t width)
{
	int32_t ids[TOKENS];
	fill_ids(ids);
	size_t table_n = (size_t)(VOCAB * width), out_n = (size_t)(TOKENS * width);
	double *table = random_numbers(table_n, 1), *out = random_numbers(out_n, 2);
	double *d_table = random_numbers(table_n, 3), *d_out = random_numbers(out_n, 4);
	void *ta = to_array(device, table, table_n), *oa = to_array(device, NULL, out_n);
	void *dta = to_array(device, d_table, table_n), *doa = to_array(device, d_out, out_n);
	for (int64_t t = 0; t < TOKENS; t++)
		for (int64_t i = 0; i < width; i++) {
			out[t * width + i] = table[ids[t] * width + i];
			d_table[ids[t] * width + i] += d_out[t * width + i];
		}
	device->ops->embedding_forward(device, oa, ta, ids, TOKENS, width, 0, VOCAB);
	check_close(device, "out", oa, out, out_n, 1e-7);
	check_forward_slices(device, ta, out, ids, width);
	device->ops->embedding_backward(device, dta, doa, ids, TOKENS, width, 0, VOCAB);
	check_close(device, "d_table", dta, d_table, table_n, 5e-6);
	RELEASE(device, ta, oa, dta, doa);
	free(table), free(out), free(d_table), free(d_out);
}

static void check_embedding(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(WIDTHS) / sizeof(WIDTHS[0]); i++)
		check_width(device, WIDTHS[i]);
	device->ops->embedding_forward(device, NULL, NULL, NULL, 0, 3, 0, VOCAB);
	device->ops->embedding_backward(device, NULL, NULL, NULL, 0, 3, 0, VOCAB);
}

static void test_embedding(void **state)
{
	(void)state;
	for_each_device(check_embedding);
}

/* A slice's gradient is that of its rows of the whole table, bit by bit; the rows around it stay as they are. */
static void check_backward_slices(struct wlb_device *device)
{
	enum { WIDTH = 33, N = VOCAB * WIDTH };
	int32_t ids[TOKENS];
	fill_ids(ids);
	double *start = random_numbers(N, 3), *d_out = random_numbers(TOKENS * WIDTH, 4);
	void *whole = to_array(device, start, N), *from = to_array(device, d_out, TOKENS * WIDTH);
	device->ops->embedding_backward(device, whole, from, ids, TOKENS, WIDTH, 0, VOCAB);
	double *want = from_array(device, whole, N);
	for (int s = 0; s < SLICE_COUNT; s++) {
		void *table = to_array(device, start, N);
		device->ops->embedding_backward(device, row_of(device, table, SLICES[s], WIDTH), from, ids, TOKENS,
		                                WIDTH, SLICES[s], SLICES[s + 1] - SLICES[s]);
		double *got = from_array(device, table, N);
		for (int64_t i = 0; i < N; i++) {
			int mine = i >= SLICES[s] * WIDTH && i < SLICES[s + 1] * WIDTH;
			double expected = device->compute == WLB_FLOAT32 ? (float)start[i] : start[i];
			assert_true(got[i] == (mine ? want[i] : expected));
		}
		RELEASE(device, table);
		free(got);
	}
	RELEASE(device, whole, from);
	free(start), free(d_out), free(want);
}

static void test_backward_slices(void **state)
{
	(void)state;
	for_each_device(check_backward_slices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_embedding), cmocka_unit_test(test_backward_slices)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
