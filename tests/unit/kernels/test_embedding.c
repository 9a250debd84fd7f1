#include "tests/unit/kernels/support.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 7, TOKENS = 129 };

static const int64_t WIDTHS[] = {1, 3, 17, 257};

/* Ids repeat, in no order. */
static void fill_ids(int32_t *ids)
{
	for (int t = 0; t < TOKENS; t++)
		ids[t] = t * t % VOCAB;
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
	device->ops->embedding_forward(device, oa, ta, ids, TOKENS, width);
	check_close(device, "out", oa, out, out_n, 1e-7);
	device->ops->embedding_backward(device, dta, doa, ids, TOKENS, width, VOCAB);
	check_close(device, "d_table", dta, d_table, table_n, 5e-6);
	RELEASE(device, ta, oa, dta, doa);
	free(table), free(out), free(d_table), free(d_out);
}

static void check_embedding(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(WIDTHS) / sizeof(WIDTHS[0]); i++)
		check_width(device, WIDTHS[i]);
	device->ops->embedding_forward(device, NULL, NULL, NULL, 0, 3);
	device->ops->embedding_backward(device, NULL, NULL, NULL, 0, 3, VOCAB);
}

static void test_embedding(void **state)
{
	(void)state;
	for_each_device(check_embedding);
}

static void test_id_outside(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(1);
	struct wlb_error error;
	const int32_t ids[] = {0, VOCAB};
	double d_out[2] = {1, 1}, d_table[VOCAB] = {0};
	device->ops->embedding_backward(device, d_table, d_out, ids, 2, 1, VOCAB);
	assert_int_equal(device->ops->synchronize(device, &error), -1);
	assert_non_null(strstr(error.message, "token id 7 at row 1 is not in [0, 7)"));
	assert_true(d_table[0] == 0);
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_embedding), cmocka_unit_test(test_id_outside)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
