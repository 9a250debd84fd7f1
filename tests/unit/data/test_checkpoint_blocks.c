/* The blocks of a checkpoint: what is saved in any blocks is read in any others, also from the files of other programs.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/sample_checkpoint.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"

/* With more blocks than rows or columns some shards are empty. */
static const struct sample_grid grids[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 3},  {3, 2},
                                           {2, 3}, {4, 4}, {7, 1}, {1, 7}, {1, 9}, {12, 1}, {3, 11}};
enum { GRIDS = sizeof(grids) / sizeof(grids[0]) };

static void test_any_layout_reads_any_other(void **state)
{
	for (int writers = 0; writers < GRIDS; writers++) {
		struct sample_values values;
		char path[4096];
		sample_fill(&values, (float)writers);
		sample_save_grid(*state, writers, &values, grids[writers], path);
		for (int readers = 0; readers < GRIDS; readers++) {
			struct sample_values read;
			memset(&read, 0xff, sizeof(read));
			for (int r = 0; r < grids[readers].rows * grids[readers].cols; r++) {
				struct sample_values dense;
				struct wlb_tensor_part parts[2];
				struct wlb_error error;
				sample_blocks(&dense, grids[readers], r, parts);
				if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
					fail_msg("%s", error.message);
				sample_put(&read, &parts[0]);
				sample_put(&read, &parts[1]);
			}
			assert_memory_equal(&read, &values, sizeof(values));
		}
	}
}

/* What lies outside of a wanted block is not written to. */
static void test_a_block_fills_its_own_memory_only(void **state)
{
	struct sample_values values;
	char path[4096];
	float data[2 + 2 * 3 + 2];
	struct wlb_error error;
	const struct wlb_tensor_part part = {"matrix", WLB_FLOAT32, {2, ROWS, COLS, 4, 2, 2, 3}, {0, 0}, data + 2, 0};
	sample_fill(&values, 1);
	sample_save_grid(*state, 1, &values, (struct sample_grid){2, 2}, path);
	for (int i = 0; i < 10; i++)
		data[i] = -1;
	assert_int_equal(wlb_checkpoint_read(path, &part, 1, &error), 0);
	for (int i = 0; i < 6; i++)
		assert_true(data[2 + i] == values.matrix[(4 + i / 3) * COLS + 2 + i % 3]);
	assert_true(data[0] == -1 && data[1] == -1 && data[8] == -1 && data[9] == -1);
}

static void test_only_the_shards_needed_are_opened(void **state)
{
	struct sample_values values, dense;
	struct wlb_tensor_part parts[2];
	char path[4096], shard[4200];
	struct wlb_error error;
	sample_fill(&values, 1);
	sample_save_grid(*state, 1, &values, (struct sample_grid){1, 3}, path);
	snprintf(shard, sizeof(shard), "%s/shard_00000.safetensors", path);
	assert_int_equal(unlink(shard), 0);
	sample_blocks(&dense, (struct sample_grid){1, 3}, 2, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), 0);
	sample_blocks(&dense, (struct sample_grid){1, 2}, 0, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), -1);
	assert_says(error.message, "shard_00000.safetensors: cannot be opened");
}

static void test_float64_reads_float32(void **state)
{
	struct sample_values values;
	char path[4096];
	double wide[ROWS];
	struct wlb_error error;
	const struct wlb_tensor_part part = {"vector", WLB_FLOAT64, {1, ROWS, 1, 0, ROWS, 0, 1}, {0, 0}, wide, 0};
	sample_fill(&values, 0.1f);
	sample_save_bands(*state, 1, &values, 3, 0, path);
	assert_int_equal(wlb_checkpoint_read(path, &part, 1, &error), 0);
	for (int i = 0; i < ROWS; i++)
		assert_true(wide[i] == (double)values.vector[i]);
}

static void test_wanted_parts_that_are_not_there(void **state)
{
	struct sample_values values;
	char path[4096];
	float data[100];
	struct wlb_error error;
	const struct wlb_tensor_part missing = {"norm.weight", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1},
	                                        {0, 0},        data,        0};
	const struct wlb_tensor_part taller = {"vector", WLB_FLOAT32, {1, ROWS + 1, 1, 0, ROWS, 0, 1}, {0, 0}, data, 0};
	const struct wlb_tensor_part flat = {"matrix", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1}, {0, 0}, data, 0};
	const struct wlb_tensor_part wider = {"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, ROWS, 4, 4}, {0, 0}, data, 0};
	sample_fill(&values, 1);
	sample_save_bands(*state, 1, &values, 2, 0, path);
	assert_int_equal(wlb_checkpoint_read(path, &missing, 1, &error), -1);
	assert_says(error.message, "step_00000001: tensor norm.weight is missing");
	assert_int_equal(wlb_checkpoint_read(path, &taller, 1, &error), -1);
	assert_says(error.message, "tensor vector has shape 10 x 1, the model needs 11 x 1");
	assert_int_equal(wlb_checkpoint_read(path, &flat, 1, &error), -1);
	assert_says(error.message, "tensor matrix has shape 10 x 7, the model needs 10 x 1");
	assert_int_equal(wlb_checkpoint_read(path, &wider, 1, &error), -1);
	assert_says(error.message, "tensor matrix: rows 0 + 10 of 10, columns 4 + 4 of 7: they must lie within");
	assert_int_equal(wlb_checkpoint_read(*state, &flat, 1, &error), -1);
	assert_says(error.message, "holds neither manifest.json nor model.safetensors");
}

/* Rows, columns of the matrix that a shard holds: first, count. */
struct area {
	int row;
	int rows;
	int col;
	int cols;
};

/* Commits a matrix of these areas, one a shard. */
static int commit_areas(void **state, const struct area *areas, int count, struct wlb_error *error)
{
	static float data[ROWS * COLS];
	char path[4096];
	int64_t bytes;
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, error), 0);
	for (int i = 0; i < count; i++) {
		const struct area *a = &areas[i];
		const struct wlb_tensor_part part = {
			"matrix", WLB_FLOAT32, {2, ROWS, COLS, a->row, a->rows, a->col, a->cols}, {0, 0}, data, 0};
		assert_int_equal(whole_shard_save(sample_place(*state), 60, i, &part, 1, error), 0);
	}
	int rc = wlb_checkpoint_commit(sample_place(*state), &sample_facts, count, 0, path, &bytes, error);
	if (rc < 0)
		wlb_checkpoint_abandon(sample_place(*state), 60);
	return rc;
}

static void test_elements_must_be_covered_once(void **state)
{
	enum { MOST = 5 };
	static const struct area cases[][MOST] = {
		{{0, 6, 0, 7}, {5, 4, 0, 7}},                                           /* overlapping bands */
		{{0, 4, 0, 7}, {5, 5, 0, 7}},                                           /* a row too few between */
		{{0, 5, 0, 7}, {5, 4, 0, 7}},                                           /* at the end */
		{{1, 5, 0, 7}, {6, 4, 0, 7}},                                           /* at the beginning */
		{{0, 10, 0, 4}, {0, 10, 3, 4}},                                         /* the same of columns */
		{{0, 10, 0, 3}, {0, 10, 4, 3}},                                         /* */
		{{0, 10, 0, 3}, {0, 10, 3, 3}},                                         /* */
		{{0, 10, 1, 3}, {0, 10, 4, 3}},                                         /* */
		{{0, 5, 0, 7}, {0, 5, 0, 7}, {5, 5, 0, 7}},                             /* twice */
		{{0, 5, 0, 3}, {0, 5, 3, 4}, {5, 5, 0, 3}},                             /* a corner too few */
		{{0, 5, 0, 3}, {5, 5, 0, 3}, {5, 5, 3, 4}},                             /* */
		{{0, 5, 0, 3}, {0, 5, 3, 4}, {5, 5, 0, 3}, {5, 4, 3, 4}},               /* a row of a corner */
		{{0, 5, 0, 7}, {5, 5, 1, 6}},                                           /* a column of a band */
		{{0, 6, 0, 3}, {0, 5, 3, 4}, {5, 5, 0, 7}},                             /* bands of uneven height */
		{{0, 5, 0, 3}, {0, 6, 3, 4}, {5, 5, 0, 3}, {6, 4, 3, 4}},               /* no bands */
		{{0, 3, 0, 4}, {0, 7, 4, 3}, {3, 7, 0, 3}, {3, 4, 3, 1}, {7, 3, 3, 4}}, /* nor here */
	};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_error error;
		int count = 0;
		while (count < MOST && cases[c][count].rows > 0)
			count++;
		if (commit_areas(state, cases[c], count, &error) == 0)
			fail_msg("case %zu was believed", c);
		assert_says(error.message, "tensor matrix: there is a gap or an overlap");
		assert_int_equal(fixture_entries(*state), 0);
	}
}

static void test_bands_may_be_cut_each_in_its_own_way(void **state)
{
	static const struct area areas[] = {{7, 3, 6, 1}, {0, 2, 0, 7}, {2, 5, 4, 3},
	                                    {2, 5, 0, 4}, {7, 3, 0, 2}, {7, 3, 2, 4}};
	struct wlb_error error;
	assert_int_equal(commit_areas(state, areas, 6, &error), 0);
}

static void test_blocks_of_one_tensor_have_one_shape(void **state)
{
	static float data[ROWS * COLS];
	const struct wlb_tensor_part parts[] = {
		{"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, 5, 0, COLS}, {0, 0}, data, 0},
		{"matrix", WLB_FLOAT32, {2, ROWS + 1, COLS, 5, 6, 0, COLS}, {0, 0}, data, 0}};
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 60, &error), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(whole_shard_save(sample_place(*state), 60, i, &parts[i], 1, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(sample_place(*state), &sample_facts, 2, 0, path, &bytes, &error), -1);
	assert_says(error.message, "tensor matrix: its blocks differ in the shape");
}

/* Shards of equal size that changed places. */
static void test_swapped_shards(void **state)
{
	struct sample_values values, read;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096], a[4200], b[4200], moved[4200];
	sample_fill(&values, 1);
	sample_save_bands(*state, 60, &values, 2, 0, path);
	snprintf(a, sizeof(a), "%s/shard_00000.safetensors", path);
	snprintf(b, sizeof(b), "%s/shard_00001.safetensors", path);
	snprintf(moved, sizeof(moved), "%s/moved", path);
	assert_true(rename(a, moved) == 0 && rename(b, a) == 0 && rename(moved, b) == 0);
	sample_parts(&read, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), -1);
	assert_says(error.message, "shard_00000.safetensors: tensor matrix: the manifest says that rows 0 + 5");
}

/* A checkpoint of a large layout has more shards than a process may have files open. */
static void test_more_shards_than_files(void **state)
{
	struct sample_values values;
	struct rlimit normal, limited;
	char path[4096];
	sample_fill(&values, 1);
	sample_save_grid(*state, 60, &values, (struct sample_grid){ROWS, COLS}, path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &normal), 0);
	limited = (struct rlimit){40, normal.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited), 0);
	sample_expect(path, &values);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &normal), 0);
}

/* A folder with the files "a" and "b", each holding one of the two tensors. */
static void write_hugging_face(void **state, struct sample_values *values, const char *a, const char *b)
{
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	struct sample_values *v = values;
	sample_parts(v, parts);
	char path[4096];
	assert_int_equal(wlb_checkpoint_begin(sample_place(*state), 1, &error), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(whole_shard_save(sample_place(*state), 1, i, &parts[i], 1, &error), 0);
		snprintf(path, sizeof(path), ".step_00000001.sample.partial/shard_%05d.safetensors", i);
		assert_int_equal(rename(fixture_path(state, path), fixture_path(state, i == 0 ? a : b)), 0);
	}
}

static void test_hugging_face_folders(void **state)
{
	struct sample_values values;
	struct wlb_tensor_part part;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	float read[ROWS * COLS];
	sample_fill(&values, 3);
	write_hugging_face(state, &values, "model.safetensors", "model-2.safetensors");
	sample_parts(&values, parts);
	part = parts[0];
	part.data_host = read;
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), 0);
	assert_memory_equal(read, values.matrix, sizeof(read));
	fixture_write_text(state, "model.safetensors.index.json",
	                   "{\"metadata\":{},\"weight_map\":{\"matrix\":\"model.safetensors\","
	                   "\"vector\":\"model-2.safetensors\"}}");
	sample_expect(*state, &values);
	fixture_write_text(state, "model.safetensors.index.json", "{\"weight_map\":{\"matrix\":\"../x\"}}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "weight_map.matrix is '../x'");
	fixture_write_text(state, "model.safetensors.index.json", "{\"weight_map\":{\"matrix\":\"absent\"}}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "absent: cannot be opened");
	fixture_write_text(state, "model.safetensors.index.json", "{}");
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), -1);
	assert_says(error.message, "weight_map is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_more_shards_than_files, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_any_layout_reads_any_other, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_block_fills_its_own_memory_only, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_only_the_shards_needed_are_opened, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_float64_reads_float32, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_wanted_parts_that_are_not_there, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_elements_must_be_covered_once, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bands_may_be_cut_each_in_its_own_way, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_blocks_of_one_tensor_have_one_shape, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_swapped_shards, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_hugging_face_folders, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint_blocks", tests, NULL, NULL);
}
