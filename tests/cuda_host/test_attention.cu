/* Attention of the CUDA device: every case is within its bounds, and all orders give the same bits. */
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/trial.h"
#include "tests/gpu/attention_case.h"

namespace
{
const struct cuda_host_orders ORDERS[] = {
	{CUDA_HOST_ASCENDING, 0, 0}, {CUDA_HOST_DESCENDING, 0, 1}, {CUDA_HOST_RANDOM, 1, 1}};
const int ORDER_COUNT = 3;

struct wlb_device *open_device()
{
	struct wlb_error error;
	cuda_host_set_orders(&ORDERS[0]);
	struct wlb_device *const device = wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error);
	assert_non_null(device);
	return device;
}

void check(const struct attention_case *of, int is_bf16, int head_dim)
{
	struct attention_run runs[ORDER_COUNT];
	struct wlb_error error = {""};
	for (int i = 0; i < ORDER_COUNT; i++) {
		struct wlb_device *const device = open_device();
		cuda_host_set_orders(&ORDERS[i]);
		if (attention_case_run(&runs[i], device, of, is_bf16, head_dim, &error) != 0)
			print_error("%s\n", error.message);
		assert_string_equal(error.message, "");
		wlb_device_close(device);
	}
	const double largest = attention_case_error(&runs[0]);
	print_message("%s, %s, head_dim %d: error %.3f of its bound\n", of->name, is_bf16 ? "bfloat16" : "float32",
	              head_dim, largest);
	int same = 0;
	for (int i = 0; i < ORDER_COUNT; i++)
		same += attention_case_same(&runs[0], &runs[i]);
	for (int i = 0; i < ORDER_COUNT; i++)
		attention_case_free(&runs[i]);
	assert_true(largest <= 1);
	assert_int_equal(same, ORDER_COUNT);
}

void check_all(int is_bf16, int head_dim)
{
	for (int c = 0; c < ATTENTION_CASE_COUNT; c++)
		check(&ATTENTION_CASES[c], is_bf16, head_dim);
}

template <int head_dim> void test_float32(void **)
{
	check_all(0, head_dim);
}

template <int head_dim> void test_bfloat16(void **)
{
	check_all(1, head_dim);
}
/* What breaks a rule of attention.h is refused with its value, and nothing is queued. */
void expect_refused(const struct wlb_cuda_attention &attention, const char *part)
{
	struct wlb_device *const device = open_device();
	struct wlb_error error = {""};
	assert_int_equal(wlb_cuda_attention_backward(device, &attention, &error), -1);
	if (strstr(error.message, part) == NULL)
		print_error("no '%s' in: %s\n", part, error.message);
	assert_non_null(strstr(error.message, part));
	assert_int_equal(device->ops->synchronize(device, &error), 0);
	wlb_device_close(device);
}

void test_refused(void **)
{
	const struct wlb_cuda_rows q = {NULL, 256}, k = {NULL, 128};
	struct wlb_cuda_attention right = {};
	right.is_bf16 = 1;
	right.heads = 4;
	right.kv_heads = 2;
	right.head_dim = 64;
	right.tile_rows = wlb_cuda_attention_tile_rows(1, 64);
	right.q = right.out = right.d_out = right.d_q = q;
	right.k = right.v = right.d_k = right.d_v = k;
	struct wlb_cuda_attention wrong = right;
	wrong.head_dim = 80;
	expect_refused(wrong, "head_dim 80; a CUDA device has 64, 96, 128 and 256");
	wrong = right;
	wrong.kv_heads = 3;
	expect_refused(wrong, "4 heads with 3 KV heads");
	wrong = right;
	wrong.tile_rows = 64;
	expect_refused(wrong, "tiles of 64 rows; they must be of 128");
	wrong = right;
	wrong.v.stride = 120;
	expect_refused(wrong, "v has rows of 128 elements and a stride of 120");
	wrong = right;
	wrong.d_q.stride = 260;
	expect_refused(wrong, "d_q at");
	wrong = right;
	wrong.query_tile_count = 1 << 30;
	expect_refused(wrong, "1073741824 tiles of queries");
}
} // namespace

/* With an argument, only the tests whose names match it ("*64*"), so that ctest can run them side by side. */
int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_float32<64>),
		cmocka_unit_test(test_float32<96>),   cmocka_unit_test(test_float32<128>),
		cmocka_unit_test(test_float32<256>),  cmocka_unit_test(test_bfloat16<64>),
		cmocka_unit_test(test_bfloat16<96>),  cmocka_unit_test(test_bfloat16<128>),
		cmocka_unit_test(test_bfloat16<256>),
	};
	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
