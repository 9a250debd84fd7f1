/* The file format: written as its readers expect, read only where every rule holds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/safetensors.h"

/* An element type that a later version may have. */
#define NO_TYPE ((enum wlb_dtype)99)

/* Writes FOLDER/x.safetensors from a header as given and `data_bytes` bytes 0, 1, 2, ... of data. */
static const char *write_raw(void **state, const char *header, size_t data_bytes)
{
	size_t length = strlen(header);
	char *file = malloc(8 + length + data_bytes);
	assert_non_null(file);
	uint64_t stored = length;
	memcpy(file, &stored, 8);
	memcpy(file + 8, header, length);
	for (size_t i = 0; i < data_bytes; i++)
		file[8 + length + i] = (char)i;
	const char *path = fixture_write(state, "x.safetensors", file, 8 + length + data_bytes);
	free(file);
	return path;
}

static void expect_refused_file(const char *path, const char *reason)
{
	struct wlb_error error;
	struct wlb_safetensors *file = wlb_safetensors_open(path, &error);
	if (file != NULL)
		fail_msg("opened, where this was expected: %s", reason);
	assert_says(error.message, path);
	assert_says(error.message, reason);
}

/* One number that is such a block of a tensor. */
#define BLOCK_OF(place)                                                                                                \
	"{\"__metadata__\":{\"block:a\":\"" place "\"},"                                                               \
	"\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

static void test_headers(void **state)
{
	static const struct {
		const char *header;
		size_t data_bytes;
		const char *reason;
	} cases[] = {
		{"", 0, "header: "},
		{"[]", 0, "must be one JSON object"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "header: "},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "leave the file's 3 bytes"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "end at byte 4 of 5"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "do not hold 2 x 1 elements"},
		{"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is 'F31'"},
		{"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is 'not a string'"},
		{"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape is missing"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape[0] is -1"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "shape[0]"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4, "2^63"},
		{"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0,
	         "do not hold"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "data_offsets [4, 0]"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "data_offsets [-4, 0]"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two whole numbers"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
	         8, "duplicate"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	         4, "gaps and overlaps"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
	         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
	         12, "gaps and overlaps"},
		{"{\"a\":3}", 0, "tensor a: it must be an object"},
		{BLOCK_OF("1 of 1, 0 of 1"), 4, "block is '1 of 1, 0 of 1'"},
		{BLOCK_OF("0 of 1, 1 of 1"), 4, "block is '0 of 1, 1 of 1'"},
		{BLOCK_OF("0 of 2, 0 of 0"), 4, "block is '0 of 2, 0 of 0'"},
		{BLOCK_OF("-1 of 2, 0 of 1"), 4, "block is '-1 of 2, 0 of 1'"},
		{BLOCK_OF("0 of 2, 0 of 1x"), 4, "block is '0 of 2, 0 of 1x'"},
		{BLOCK_OF("0 of 2"), 4, "block is '0 of 2'"},
		{BLOCK_OF("999999999999999999 of 999999999999999999, 0 of 1"), 4, "block is '999"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refused_file(write_raw(state, cases[i].header, cases[i].data_bytes), cases[i].reason);
}

static void test_header_length(void **state)
{
	static const uint64_t lengths[] = {1, 100000001, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		expect_refused_file(fixture_write(state, "x", &lengths[i], 8), "header length is");
	for (size_t bytes = 0; bytes < 8; bytes++)
		expect_refused_file(fixture_write(state, "x", lengths, bytes), "it is truncated");
	/* One byte over the format's bound, in a file that has it (as a hole). */
	const char *path = fixture_write(state, "x", &lengths[1], 8);
	assert_int_equal(truncate(path, 200000000), 0);
	expect_refused_file(path, "it must be at most 100000000");
}

static void test_zero_sized_and_scalar_tensors(void **state)
{
	struct wlb_error error;
	struct wlb_safetensors *f =
		wlb_safetensors_open(write_raw(state,
	                                       "{\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[4,4]},"
	                                       "\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}   ",
	                                       4),
	                             &error);
	assert_non_null(f);
	assert_int_equal(wlb_safetensors_find(f, "none")->block.rows, 0);
	assert_int_equal(wlb_safetensors_find(f, "none")->block.cols, 7);
	assert_int_equal(wlb_safetensors_find(f, "one")->block.dimensions, 0);
	assert_null(wlb_safetensors_find(f, "two"));
	wlb_safetensors_close(f);
}

static int read_rows(const struct wlb_safetensors *f, const struct wlb_stored_tensor *t, int64_t row, int64_t rows,
                     enum wlb_dtype dtype, void *out, struct wlb_error *error)
{
	const struct wlb_stored_range range = {row, rows, 0, t->block.cols};
	uint64_t checksum = 0;
	return wlb_safetensors_read(f, t, &range, dtype, out, t->block.cols, &checksum, error);
}

static void test_round_trip_and_conversion(void **state)
{
	float singles[6] = {0.1f, -2.5f, INFINITY, 1e-40f, 3e38f, -0.0f};
	double doubles[3] = {0.1, 1e300, -1e-300};
	const struct wlb_tensor_part parts[] = {{"w", WLB_FLOAT32, {2, 3, 2, 0, 3, 0, 2}, {0, 0}, singles, 0},
	                                        {"v", WLB_FLOAT64, {1, 3, 1, 0, 3, 0, 1}, {0, 0}, doubles, 0}};
	struct wlb_error error;
	const char *path = fixture_path(state, "x.safetensors");
	assert_int_equal(whole_shard_write(path, parts, 2, &error), 0);
	struct wlb_safetensors *f = wlb_safetensors_open(path, &error);
	assert_non_null(f);
	const struct wlb_stored_tensor *w = wlb_safetensors_find(f, "w"), *v = wlb_safetensors_find(f, "v");
	float back[6];
	double wide[6];
	assert_int_equal(read_rows(f, w, 0, 3, NO_TYPE, back, &error), -1);
	assert_says(error.message, "tensor w: element type 99: it must be float32 (0), float64 (1) or bfloat16 (2)");
	assert_int_equal(read_rows(f, w, 0, 3, WLB_FLOAT32, back, &error), 0);
	assert_memory_equal(back, singles, sizeof(singles));
	assert_int_equal(read_rows(f, w, 1, 2, WLB_FLOAT64, wide, &error), 0);
	for (int i = 0; i < 4; i++)
		assert_true(wide[i] == (double)singles[2 + i]);
	assert_int_equal(read_rows(f, v, 0, 3, WLB_FLOAT64, wide, &error), 0);
	assert_memory_equal(wide, doubles, sizeof(doubles));
	assert_int_equal(read_rows(f, v, 0, 3, WLB_FLOAT32, back, &error), 0);
	assert_true(back[0] == 0.1f && back[1] == INFINITY && back[2] == 0);
	assert_int_equal(read_rows(f, w, 2, 2, WLB_FLOAT32, back, &error), -1);
	assert_says(error.message, "rows 2 + 2, columns 0 + 2 are asked for, it has 3 x 2");
	wlb_safetensors_close(f);
}

/* More than is written in one piece, and than is written before a sync; not a multiple of either. */
static void test_large_tensors(void **state)
{
	enum { FIRST = 1 << 20 | 3, SECOND = 65 << 17 | 1 };
	struct wlb_error error;
	double *data = malloc((FIRST + SECOND) * sizeof(*data)), *back = malloc(SECOND * sizeof(*back));
	assert_true(data != NULL && back != NULL);
	for (int i = 0; i < FIRST + SECOND; i++)
		data[i] = i;
	const struct wlb_tensor_part parts[] = {
		{"a", WLB_FLOAT64, {1, FIRST, 1, 0, FIRST, 0, 1}, {0, 0}, data, 0},
		{"b", WLB_FLOAT64, {1, SECOND, 1, 0, SECOND, 0, 1}, {0, 0}, data + FIRST, 0}};
	const char *path = fixture_path(state, "x.safetensors");
	assert_int_equal(whole_shard_write(path, parts, 2, &error), 0);
	struct wlb_safetensors *f = wlb_safetensors_open(path, &error);
	assert_non_null(f);
	assert_int_equal(read_rows(f, wlb_safetensors_find(f, "a"), 0, FIRST, WLB_FLOAT64, back, &error), 0);
	assert_memory_equal(back, data, FIRST * sizeof(*data));
	assert_int_equal(read_rows(f, wlb_safetensors_find(f, "b"), 0, SECOND, WLB_FLOAT64, back, &error), 0);
	assert_memory_equal(back, data + FIRST, SECOND * sizeof(*data));
	wlb_safetensors_close(f);
	free(data);
	free(back);
}

static void test_half_precision(void **state)
{
	static const struct {
		uint16_t f16;
		uint16_t bf16;
		float value;
	} cases[] = {{0x3c00, 0x3f80, 1.0f},     {0xc500, 0xc0a0, -5.0f},     {0x8000, 0x8000, -0.0f},
	             {0x7c00, 0x7f80, INFINITY}, {0xfc00, 0xff80, -INFINITY}, {0x3800, 0x3f00, 0.5f}};
	enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
	char header[256], file[512];
	int length = snprintf(header, sizeof(header),
	                      "{\"h\":{\"dtype\":\"F16\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
	                      "\"b\":{\"dtype\":\"BF16\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
	                      COUNT, 2 * COUNT, COUNT, 2 * COUNT, 4 * COUNT);
	uint64_t stored = (uint64_t)length;
	memcpy(file, &stored, 8);
	memcpy(file + 8, header, (size_t)length);
	for (int i = 0; i < COUNT; i++) {
		memcpy(file + 8 + length + 2 * i, &cases[i].f16, 2);
		memcpy(file + 8 + length + 2 * (COUNT + i), &cases[i].bf16, 2);
	}
	struct wlb_error error;
	struct wlb_safetensors *f =
		wlb_safetensors_open(fixture_write(state, "x", file, 8 + (size_t)length + 4 * COUNT), &error);
	assert_non_null(f);
	static const char *const names[] = {"h", "b"};
	for (int n = 0; n < 2; n++) {
		float read[COUNT];
		assert_int_equal(read_rows(f, wlb_safetensors_find(f, names[n]), 0, COUNT, WLB_FLOAT32, read, &error),
		                 0);
		for (int i = 0; i < COUNT; i++)
			assert_memory_equal(&read[i], &cases[i].value, sizeof(float));
	}
	wlb_safetensors_close(f);
}

static void test_subnormal_half(void **state)
{
	struct wlb_error error;
	/* Data bytes 0, 1, 2, 3: the halves 0x0100 and 0x0302. */
	struct wlb_safetensors *f = wlb_safetensors_open(
		write_raw(state, "{\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4), &error);
	double read[2];
	assert_non_null(f);
	assert_int_equal(read_rows(f, wlb_safetensors_find(f, "h"), 0, 2, WLB_FLOAT64, read, &error), 0);
	assert_true(read[0] == 0x100 * 0x1p-24 && read[1] == 0x302 * 0x1p-24);
	wlb_safetensors_close(f);
}

static void test_other_dtypes_are_known_but_not_weights(void **state)
{
	struct wlb_error error;
	struct wlb_safetensors *f = wlb_safetensors_open(
		write_raw(state, "{\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8), &error);
	float read;
	assert_non_null(f);
	assert_int_equal(read_rows(f, wlb_safetensors_find(f, "i"), 0, 1, WLB_FLOAT32, &read, &error), -1);
	assert_says(error.message, "tensor i: dtype is I64");
	wlb_safetensors_close(f);
}

static void test_alignment_and_blocks(void **state)
{
	float rows[4] = {1, 2, 3, 4};
	const struct wlb_tensor_part part = {"weight", WLB_FLOAT32, {2, 10, 5, 6, 2, 3, 2}, {0, 0}, rows, 0};
	struct wlb_error error;
	const char *path = fixture_path(state, "x.safetensors");
	assert_int_equal(whole_shard_write(path, &part, 1, &error), 0);
	size_t bytes;
	char *file = fixture_read(path, &bytes);
	uint64_t length;
	memcpy(&length, file, 8);
	assert_int_equal(length % 8, 0);
	assert_int_equal(bytes, 8 + length + sizeof(rows));
	free(file);
	struct wlb_safetensors *f = wlb_safetensors_open(path, &error);
	assert_non_null(f);
	assert_int_equal(wlb_safetensors_find(f, "weight")->block.row_start, 6);
	assert_int_equal(wlb_safetensors_find(f, "weight")->block.global_rows, 10);
	assert_int_equal(wlb_safetensors_find(f, "weight")->block.col_start, 3);
	assert_int_equal(wlb_safetensors_find(f, "weight")->block.global_cols, 5);
	wlb_safetensors_close(f);
}

/* Bytes that this process has asked the system to read so far. */
static long long bytes_read(void)
{
	long long count = -1;
	FILE *io = fopen("/proc/self/io", "r");
	if (io == NULL || fscanf(io, "rchar: %lld", &count) != 1)
		count = -1;
	if (io != NULL)
		fclose(io);
	return count;
}

/* Rows longer than what is read at a time, and no more of them than is wanted. */
static void test_columns(void **state)
{
	enum { ROWS = 20, COLS = 40000, FIRST = 10001, MOST = 20003 };
	static float whole[ROWS * COLS], some[ROWS * MOST];
	static const int widths[] = {1, 7, MOST};
	const struct wlb_tensor_part part = {"w", WLB_FLOAT32, {2, ROWS, COLS, 0, ROWS, 0, COLS}, {0, 0}, whole, 0};
	struct wlb_error error;
	uint64_t checksum = 0;
	for (int i = 0; i < ROWS * COLS; i++)
		whole[i] = (float)i;
	const char *path = fixture_path(state, "x.safetensors");
	assert_int_equal(whole_shard_write(path, &part, 1, &error), 0);
	struct wlb_safetensors *f = wlb_safetensors_open(path, &error);
	assert_non_null(f);
	for (int w = 0; w < 3; w++) {
		const struct wlb_stored_range range = {3, ROWS - 3, FIRST, widths[w]};
		const struct wlb_stored_tensor *t = wlb_safetensors_find(f, "w");
		long long before = bytes_read();
		assert_int_equal(wlb_safetensors_read(f, t, &range, WLB_FLOAT32, some, MOST, &checksum, &error), 0);
		long long after = bytes_read();
		for (int row = 0; row < ROWS - 3; row++)
			for (int col = 0; col < widths[w]; col++)
				assert_true(some[row * MOST + col] == whole[(3 + row) * COLS + FIRST + col]);
		if (before >= 0) /* counting itself reads a little */
			assert_in_range(after - before, 4 * (ROWS - 3) * widths[w], 4 * (ROWS - 3) * widths[w] + 4096);
	}
	const struct wlb_stored_range outside = {0, 1, COLS - 1, 2};
	assert_int_equal(wlb_safetensors_read(f, wlb_safetensors_find(f, "w"), &outside, WLB_FLOAT32, some, MOST,
	                                      &checksum, &error),
	                 -1);
	assert_says(error.message, "columns 39999 + 2 are asked for, it has 20 x 40000");
	wlb_safetensors_close(f);
}

static void test_bad_parts(void **state)
{
	float rows[4] = {0};
	const struct wlb_tensor_part twice[] = {{"w", WLB_FLOAT32, {2, 4, 1, 0, 2, 0, 1}, {0, 0}, rows, 0},
	                                        {"w", WLB_FLOAT32, {2, 4, 1, 2, 2, 0, 1}, {0, 0}, rows, 0}};
	const struct wlb_tensor_part below = {"w", WLB_FLOAT32, {2, 4, 1, 3, 2, 0, 1}, {0, 0}, rows, 0};
	const struct wlb_tensor_part beside = {"w", WLB_FLOAT32, {2, 4, 3, 0, 1, 1, 3}, {0, 0}, rows, 0};
	const struct wlb_tensor_part cubic = {"w", WLB_FLOAT32, {3, 4, 1, 0, 4, 0, 1}, {0, 0}, rows, 0};
	const struct wlb_tensor_part untyped = {"w", NO_TYPE, {2, 4, 1, 0, 4, 0, 1}, {0, 0}, rows, 0};
	const struct wlb_tensor_part broad = {"w", WLB_FLOAT32, {1, 4, 2, 0, 4, 0, 1}, {0, 0}, rows, 0};
	struct wlb_error error;
	const char *path = fixture_path(state, "x.safetensors");
	assert_int_equal(whole_shard_write(path, twice, 2, &error), -1);
	assert_says(error.message, "one block of a tensor");
	assert_int_equal(whole_shard_write(path, &below, 1, &error), -1);
	assert_says(error.message, "rows 3 + 2 of 4");
	assert_int_equal(whole_shard_write(path, &beside, 1, &error), -1);
	assert_says(error.message, "columns 1 + 3 of 3");
	assert_int_equal(whole_shard_write(path, &broad, 1, &error), -1);
	assert_says(error.message, "1 dimensions with 2 columns");
	assert_int_equal(whole_shard_write(path, &cubic, 1, &error), -1);
	assert_says(error.message, "3 dimensions");
	assert_int_equal(whole_shard_write(path, &untyped, 1, &error), -1);
	assert_says(error.message, "tensor w: element type 99: it must be float32 (0), float64 (1) or bfloat16 (2)");
	assert_false(fixture_exists(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_headers, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_header_length, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_zero_sized_and_scalar_tensors, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_round_trip_and_conversion, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_large_tensors, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_half_precision, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_subnormal_half, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_dtypes_are_known_but_not_weights, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_alignment_and_blocks, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_columns, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bad_parts, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
