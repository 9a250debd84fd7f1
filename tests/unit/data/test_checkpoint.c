/* Checkpoints: what is saved is read under any layout, and nothing half-written passes for one. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "worker/checkpoint/checkpoint.h"

enum { ROWS = 10, COLS = 7 };

struct values {
	float matrix[ROWS * COLS];
	float vector[ROWS];
};

static void fill(struct values *v, float base)
{
	for (int i = 0; i < ROWS * COLS; i++)
		v->matrix[i] = base + (float)i;
	for (int i = 0; i < ROWS; i++)
		v->vector[i] = -base - (float)i;
}

/* All of both tensors. */
static void make_parts(struct values *v, struct wlb_tensor_part parts[2])
{
	parts[0] = (struct wlb_tensor_part){"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, ROWS, 0, COLS}, v->matrix};
	parts[1] = (struct wlb_tensor_part){"vector", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1}, v->vector};
}

/* How the matrix is cut: into rows x cols blocks, as evenly as they can be. */
struct grid {
	int rows;
	int cols;
};

/* Block `number` of the matrix, and that block of the vector for each band of rows (with the band's first block of the
 * matrix; none with the others), their data in `dense`. */
static void make_blocks(struct values *dense, struct grid grid, int number, struct wlb_tensor_part parts[2])
{
	int band = number / grid.cols, column = number % grid.cols;
	make_parts(dense, parts);
	for (int i = 0; i < 2; i++) {
		parts[i].block.row_start = ROWS * band / grid.rows;
		parts[i].block.rows = ROWS * (band + 1) / grid.rows - parts[i].block.row_start;
	}
	parts[0].block.col_start = COLS * column / grid.cols;
	parts[0].block.cols = COLS * (column + 1) / grid.cols - parts[0].block.col_start;
	if (column > 0)
		parts[1].block.rows = 0;
}

/* The element of `values` that element i of the part's data stands for. */
static float *element(struct values *values, const struct wlb_tensor_part *part, int64_t i)
{
	float *whole = strcmp(part->name, "matrix") == 0 ? values->matrix : values->vector;
	int64_t row = part->block.row_start + i / part->block.cols, col = part->block.col_start + i % part->block.cols;
	return &whole[row * part->block.global_cols + col];
}

/* Copies the part's data out of the whole tensor, or into it. */
static void take(struct values *values, const struct wlb_tensor_part *part)
{
	for (int64_t i = 0; i < part->block.rows * part->block.cols; i++)
		((float *)part->data_host)[i] = *element(values, part, i);
}

static void put(struct values *values, const struct wlb_tensor_part *part)
{
	for (int64_t i = 0; i < part->block.rows * part->block.cols; i++)
		*element(values, part, i) = ((float *)part->data_host)[i];
}

static const struct wlb_checkpoint_facts some_facts = {
	.step = 60,
	.schedule = {.seed = UINT64_MAX,
                     .documents = 1000,
                     .tokens = 123456789,
                     .epoch = 2,
                     .position = 17,
                     .spans = 512,
                     .step = 60},
	.model = {.hidden_size = 64,
                  .intermediate_size = 128,
                  .num_hidden_layers = 2,
                  .num_attention_heads = 4,
                  .num_key_value_heads = 2,
                  .head_dim = 16,
                  .vocab_size = 257,
                  .max_position_embeddings = 2048,
                  .rope_theta = 10000.0,
                  .rms_norm_eps = 1e-6,
                  .tie_word_embeddings = 1},
	.seq_length = 256,
	.global_batch_size = 16,
	.seed = UINT64_MAX,
	.packing = WLB_STRATEGY_FIXED,
	.train_loss = 2.1000000000000001,
};

static const char packer_state[] = "where the packer stands";

static int write_all(const char *dir, const struct wlb_checkpoint_facts *facts, struct values *values, struct grid grid,
                     int keep, char path[4096], struct wlb_error *error)
{
	int64_t bytes;
	if (wlb_checkpoint_begin(dir, facts->step, error) < 0)
		return -1;
	for (int i = 0; i < grid.rows * grid.cols; i++) {
		struct values dense;
		struct wlb_tensor_part parts[2];
		make_blocks(&dense, grid, i, parts);
		take(values, &parts[0]);
		take(values, &parts[1]);
		if (wlb_checkpoint_write_shard(dir, facts->step, i, parts, 2, error) < 0)
			return -1;
	}
	if (wlb_checkpoint_write_packer(dir, facts->step, packer_state, sizeof(packer_state), error) < 0)
		return -1;
	return wlb_checkpoint_commit(dir, facts, grid.rows * grid.cols, keep, path, &bytes, error);
}

/* Saves `values` in a shard for each block. */
static int save(const char *dir, int64_t step, struct values *values, struct grid grid, int keep, char path[4096],
                struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts = some_facts;
	facts.step = step;
	int rc = write_all(dir, &facts, values, grid, keep, path, error);
	if (rc < 0)
		wlb_checkpoint_abandon(dir, step);
	return rc;
}

static void save_grid(const char *dir, int64_t step, struct values *values, struct grid grid, char path[4096])
{
	struct wlb_error error;
	if (save(dir, step, values, grid, 0, path, &error) < 0)
		fail_msg("%s", error.message);
}

/* In `shards` bands of rows. */
static void save_good(const char *dir, int64_t step, struct values *values, int shards, int keep, char path[4096])
{
	struct wlb_error error;
	if (save(dir, step, values, (struct grid){shards, 1}, keep, path, &error) < 0)
		fail_msg("%s", error.message);
}

static void expect_values(const char *path, const struct values *expected)
{
	struct values read;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	memset(&read, 0xff, sizeof(read));
	make_parts(&read, parts);
	if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
		fail_msg("%s", error.message);
	assert_memory_equal(&read, expected, sizeof(read));
}

static void test_facts(void **state)
{
	struct values values;
	struct wlb_checkpoint_facts facts;
	struct wlb_error error;
	char path[4096], newest[4096];
	const char *dir = fixture_path(state, "a/b");
	fill(&values, 1);
	memset(&facts, 0, sizeof(facts));
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 0);
	save_good(dir, 60, &values, 1, 0, path);
	assert_int_equal(wlb_checkpoint_newest(dir, newest, &error), 1);
	assert_string_equal(newest, path);
	assert_non_null(strstr(path, "/a/b/step_00000060"));
	assert_int_equal(wlb_checkpoint_read_facts(path, &facts, &error), 0);
	assert_memory_equal(&facts.schedule, &some_facts.schedule, sizeof(facts.schedule));
	assert_memory_equal(&facts.model, &some_facts.model, sizeof(facts.model));
	assert_int_equal(facts.step, 60);
	assert_int_equal(facts.seq_length, 256);
	assert_int_equal(facts.global_batch_size, 16);
	assert_true(facts.seed == UINT64_MAX && facts.train_loss == some_facts.train_loss);
	assert_int_equal(facts.packing, WLB_STRATEGY_FIXED);
	assert_int_equal(fixture_entries(dir), 1);
}

/* With more blocks than rows or columns some shards are empty. */
static const struct grid grids[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 3},  {3, 2},
                                    {2, 3}, {4, 4}, {7, 1}, {1, 7}, {1, 9}, {12, 1}, {3, 11}};
enum { GRIDS = sizeof(grids) / sizeof(grids[0]) };

static void test_any_layout_reads_any_other(void **state)
{
	for (int writers = 0; writers < GRIDS; writers++) {
		struct values values;
		char path[4096];
		fill(&values, (float)writers);
		save_grid(*state, writers, &values, grids[writers], path);
		for (int readers = 0; readers < GRIDS; readers++) {
			struct values read;
			memset(&read, 0xff, sizeof(read));
			for (int r = 0; r < grids[readers].rows * grids[readers].cols; r++) {
				struct values dense;
				struct wlb_tensor_part parts[2];
				struct wlb_error error;
				make_blocks(&dense, grids[readers], r, parts);
				if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
					fail_msg("%s", error.message);
				put(&read, &parts[0]);
				put(&read, &parts[1]);
			}
			assert_memory_equal(&read, &values, sizeof(values));
		}
	}
}

/* What lies outside of a wanted block is not written to. */
static void test_a_block_fills_its_own_memory_only(void **state)
{
	struct values values;
	char path[4096];
	float data[2 + 2 * 3 + 2];
	struct wlb_error error;
	const struct wlb_tensor_part part = {"matrix", WLB_FLOAT32, {2, ROWS, COLS, 4, 2, 2, 3}, data + 2};
	fill(&values, 1);
	save_grid(*state, 1, &values, (struct grid){2, 2}, path);
	for (int i = 0; i < 10; i++)
		data[i] = -1;
	assert_int_equal(wlb_checkpoint_read(path, &part, 1, &error), 0);
	for (int i = 0; i < 6; i++)
		assert_true(data[2 + i] == values.matrix[(4 + i / 3) * COLS + 2 + i % 3]);
	assert_true(data[0] == -1 && data[1] == -1 && data[8] == -1 && data[9] == -1);
}

static void test_only_the_shards_needed_are_opened(void **state)
{
	struct values values, dense;
	struct wlb_tensor_part parts[2];
	char path[4096], shard[4200];
	struct wlb_error error;
	fill(&values, 1);
	save_grid(*state, 1, &values, (struct grid){1, 3}, path);
	snprintf(shard, sizeof(shard), "%s/shard_00000.safetensors", path);
	assert_int_equal(unlink(shard), 0);
	make_blocks(&dense, (struct grid){1, 3}, 2, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), 0);
	make_blocks(&dense, (struct grid){1, 2}, 0, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), -1);
	assert_says(error.message, "shard_00000.safetensors: cannot be opened");
}

static void test_float64_reads_float32(void **state)
{
	struct values values;
	char path[4096];
	double wide[ROWS];
	struct wlb_error error;
	const struct wlb_tensor_part part = {"vector", WLB_FLOAT64, {1, ROWS, 1, 0, ROWS, 0, 1}, wide};
	fill(&values, 0.1f);
	save_good(*state, 1, &values, 3, 0, path);
	assert_int_equal(wlb_checkpoint_read(path, &part, 1, &error), 0);
	for (int i = 0; i < ROWS; i++)
		assert_true(wide[i] == (double)values.vector[i]);
}

static void test_wanted_parts_that_are_not_there(void **state)
{
	struct values values;
	char path[4096];
	float data[100];
	struct wlb_error error;
	const struct wlb_tensor_part missing = {"norm.weight", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1}, data};
	const struct wlb_tensor_part taller = {"vector", WLB_FLOAT32, {1, ROWS + 1, 1, 0, ROWS, 0, 1}, data};
	const struct wlb_tensor_part flat = {"matrix", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1}, data};
	const struct wlb_tensor_part wider = {"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, ROWS, 4, 4}, data};
	fill(&values, 1);
	save_good(*state, 1, &values, 2, 0, path);
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
	assert_int_equal(wlb_checkpoint_begin(*state, 60, error), 0);
	for (int i = 0; i < count; i++) {
		const struct area *a = &areas[i];
		const struct wlb_tensor_part part = {
			"matrix", WLB_FLOAT32, {2, ROWS, COLS, a->row, a->rows, a->col, a->cols}, data};
		assert_int_equal(wlb_checkpoint_write_shard(*state, 60, i, &part, 1, error), 0);
	}
	int rc = wlb_checkpoint_commit(*state, &some_facts, count, 0, path, &bytes, error);
	if (rc < 0)
		wlb_checkpoint_abandon(*state, 60);
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
	const struct wlb_tensor_part parts[] = {{"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, 5, 0, COLS}, data},
	                                        {"matrix", WLB_FLOAT32, {2, ROWS + 1, COLS, 5, 6, 0, COLS}, data}};
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wlb_checkpoint_write_shard(*state, 60, i, &parts[i], 1, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &some_facts, 2, 0, path, &bytes, &error), -1);
	assert_says(error.message, "tensor matrix: its blocks differ in the shape");
}

/* Shards of equal size that changed places. */
static void test_swapped_shards(void **state)
{
	struct values values, read;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096], a[4200], b[4200], aside[4200];
	fill(&values, 1);
	save_good(*state, 60, &values, 2, 0, path);
	snprintf(a, sizeof(a), "%s/shard_00000.safetensors", path);
	snprintf(b, sizeof(b), "%s/shard_00001.safetensors", path);
	snprintf(aside, sizeof(aside), "%s/aside", path);
	assert_true(rename(a, aside) == 0 && rename(b, a) == 0 && rename(aside, b) == 0);
	make_parts(&read, parts);
	assert_int_equal(wlb_checkpoint_read(path, parts, 2, &error), -1);
	assert_says(error.message, "shard_00000.safetensors: tensor matrix: the manifest says that rows 0 + 5");
}

static void test_packer(void **state)
{
	struct values values;
	struct wlb_error error;
	char path[4096], newest[4096], file[4200];
	void *read;
	size_t bytes;
	fill(&values, 1);
	save_good(*state, 60, &values, 2, 0, path);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), 0);
	assert_int_equal(bytes, sizeof(packer_state));
	assert_memory_equal(read, packer_state, bytes);
	free(read);
	snprintf(file, sizeof(file), "%s/packer.bin", path);
	assert_int_equal(truncate(file, 5), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "packer.bin: has 5 bytes: the manifest says 24");
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "packer.bin: No such file or directory");
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 0);
	static const struct area whole = {0, ROWS, 0, COLS};
	assert_int_equal(commit_areas(state, &whole, 1, &error), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), -1);
	assert_says(error.message, "step_00000060: its manifest lists no packer.bin");
}

/* A state of no bytes is a state. */
static void test_empty_packer(void **state)
{
	struct values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096];
	int64_t total;
	void *read;
	size_t bytes;
	fill(&values, 1);
	make_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_write_packer(*state, 60, "", 0, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &some_facts, 1, 0, path, &total, &error), 0);
	assert_int_equal(wlb_checkpoint_read_packer(path, &read, &bytes, &error), 0);
	assert_int_equal(bytes, 0);
	free(read);
}

static void test_permissions_are_what_the_umask_leaves(void **state)
{
	static const char *const names[] = {"shard_00000.safetensors", "packer.bin", "manifest.json"};
	struct values values;
	char path[4096], file[4200];
	mode_t old = umask(027);
	fill(&values, 1);
	save_good(*state, 60, &values, 1, 0, path);
	umask(old);
	for (int i = 0; i < 3; i++) {
		struct stat st;
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
}

/* The size told is that of all files together. */
static void test_size(void **state)
{
	static const char *const names[] = {"shard_00000.safetensors", "packer.bin", "manifest.json"};
	struct values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096], file[4200];
	int64_t bytes;
	fill(&values, 1);
	make_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_write_packer(*state, 60, packer_state, sizeof(packer_state), &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &some_facts, 1, 0, path, &bytes, &error), 0);
	for (int i = 0; i < 3; i++) {
		struct stat st;
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(stat(file, &st), 0);
		bytes -= st.st_size;
	}
	assert_int_equal(bytes, 0);
}

/* A writer that fails leaves the others' folder alone. */
static void test_a_failed_shard_leaves_the_others(void **state)
{
	struct values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	char path[4096];
	int64_t bytes;
	fill(&values, 1);
	make_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	parts[1].block.row_start = 1;
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 1, parts, 2, &error), -1);
	assert_int_equal(fixture_entries(fixture_path(state, ".step_00000060.partial")), 1);
	assert_int_equal(wlb_checkpoint_commit(*state, &some_facts, 2, 0, path, &bytes, &error), -1);
	wlb_checkpoint_abandon(*state, 60);
	assert_int_equal(fixture_entries(*state), 0);
}

static void test_missing_shard_and_diverged_loss(void **state)
{
	struct wlb_checkpoint_facts facts = some_facts;
	struct values values;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	int64_t bytes;
	char path[4096];
	fill(&values, 1);
	make_parts(&values, parts);
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &facts, 2, 0, path, &bytes, &error), -1);
	assert_says(error.message, "shard_00001.safetensors: cannot be opened");
	wlb_checkpoint_abandon(*state, 60);
	assert_int_equal(fixture_entries(*state), 0);
	facts.train_loss = NAN;
	assert_int_equal(wlb_checkpoint_begin(*state, 60, &error), 0);
	assert_int_equal(wlb_checkpoint_write_shard(*state, 60, 0, parts, 2, &error), 0);
	assert_int_equal(wlb_checkpoint_commit(*state, &facts, 1, 0, path, &bytes, &error), -1);
	assert_says(error.message, "train_loss of step 60 is nan");
	wlb_checkpoint_abandon(*state, 60);
	assert_int_equal(fixture_entries(*state), 0);
}

static void test_leftovers_are_removed_and_ignored(void **state)
{
	struct values values;
	struct wlb_error error;
	char path[4096];
	fill(&values, 1);
	assert_int_equal(mkdir(fixture_path(state, ".step_00000090.partial"), 0777), 0);
	fixture_write_text(state, ".step_00000090.partial/manifest.json", "{}");
	fixture_write_text(state, "notes.txt", "kept");
	assert_int_equal(wlb_checkpoint_newest(*state, path, &error), 0);
	save_good(*state, 10, &values, 1, 0, path);
	assert_int_equal(fixture_entries(*state), 2);
}

static void test_keep(void **state)
{
	struct values values;
	char path[4096];
	fill(&values, 1);
	for (int step = 1; step <= 5; step++)
		save_good(*state, step, &values, 1, 2, path);
	assert_int_equal(fixture_entries(*state), 2);
	assert_true(fixture_exists(fixture_path(state, "step_00000004")));
	assert_true(fixture_exists(fixture_path(state, "step_00000005")));
	/* A run set back to step 2 writes 3: later ones do not push it out. */
	save_good(*state, 3, &values, 1, 2, path);
	assert_true(fixture_exists(path));
	assert_int_equal(fixture_entries(*state), 3);
}

static void test_same_step_again(void **state)
{
	struct values first, second;
	char path[4096];
	fill(&first, 1);
	fill(&second, 2);
	save_good(*state, 7, &first, 3, 0, path);
	save_good(*state, 7, &second, 2, 0, path);
	expect_values(path, &second);
	assert_int_equal(fixture_entries(*state), 1);
	assert_int_equal(fixture_entries(path), 4);
}

static void test_damaged_ones_are_passed_over(void **state)
{
	struct values values;
	struct wlb_error error;
	char path[4096], newest[4096], shard[4200];
	fill(&values, 1);
	for (int step = 1; step <= 5; step++)
		save_good(*state, step, &values, 1, 0, path);
	assert_int_equal(unlink(fixture_path(state, "step_00000004/packer.bin")), 0);
	snprintf(shard, sizeof(shard), "%s/shard_00000.safetensors", path);
	assert_int_equal(truncate(shard, 100), 0);
	assert_int_equal(unlink(fixture_path(state, "step_00000003/manifest.json")), 0);
	assert_int_equal(truncate(fixture_path(state, "step_00000002/manifest.json"), 300), 0);
	assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
	assert_string_equal(newest, fixture_path(state, "step_00000001"));
}

/* Replaces the first `from` of the manifest by `to`, and expects to be told. */
static void expect_manifest_refused(void **state, const char *path, const char *from, const char *to,
                                    const char *reason)
{
	struct values read;
	struct wlb_tensor_part parts[2];
	struct wlb_checkpoint_facts facts;
	struct wlb_error error = {0};
	char name[4200];
	void *packer;
	size_t bytes, good_bytes;
	snprintf(name, sizeof(name), "%s/manifest.json", path);
	char *good = fixture_read(name, &good_bytes), *at = strstr(good, from);
	assert_non_null(at);
	FILE *file = fopen(name, "w");
	fprintf(file, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
	fclose(file);
	make_parts(&read, parts);
	if (wlb_checkpoint_read_facts(path, &facts, &error) == 0 && wlb_checkpoint_read(path, parts, 2, &error) == 0 &&
	    wlb_checkpoint_read_packer(path, &packer, &bytes, &error) == 0)
		fail_msg("%s instead of %s was believed", to, from);
	assert_says(error.message, reason);
	file = fopen(name, "w");
	fwrite(good, 1, good_bytes, file);
	fclose(file);
	free(good);
	(void)state;
}

/* As they stand in the manifest. */
#define SHAPE(rows, cols) "[\n    " #rows ",\n    " #cols "\n   ]"
#define BLOCK(shard, row, rows, col, cols)                                                                             \
	"[\n     " #shard ",\n     " #row ",\n     " #rows ",\n     " #col ",\n     " #cols "\n    ]"
#define MOST "9223372036854775807"

static void test_damaged_manifests(void **state)
{
	static const struct {
		const char *from;
		const char *to;
		const char *reason;
	} cases[] = {
		{"\"wlb-checkpoint\"", "\"other\"", "format is 'other'"},
		{"\"version\": 2", "\"version\": 1", "version 1"},
		{"\"step\": 60", "\"step\": -60", "step is -60"},
		{"\"step\": 60", "\"stop\": 60", "step"},
		{"\"step\": 60", "\"step\": \"60\"", "Expected integer"},
		{"\"train_loss\": 2.1", "\"train_loss\": NaN", "invalid token"},
		{"\"train_loss\": 2.1", "\"train_loss\": 1e999", "real number overflow"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"18446744073709551616\"", "seed is '1844"},
		{"\"seed\": \"18446744073709551615\"", "\"seed\": \"-1\"", "seed is '-1'"},
		{"\"packing\": \"fixed\"", "\"packing\": \"tight\"", "packing: "},
		{"\"packing\": \"fixed\"", "\"packing\": 2", "Expected string"},
		{"\"epoch\"", "\"epoche\"", "schedule: "},
		{"\"hidden_size\": 64", "\"hidden_size\": 0", "model: hidden_size is 0"},
		{"\"packer\"", "\"packers\"", "packer"},
		{"\"packer.bin\"", "\"../packer.bin\"", "packer is '../packer.bin'"},
		{"\"bytes\": 24", "\"bytes\": -24", "packer is 'packer.bin' of -24 bytes"},
		{"\"bytes\": 24", "\"bytes\": " MOST, "has 24 bytes: the manifest says " MOST},
		{"shard_00000.safetensors", "../x", "shards[0] is '../x'"},
		{"safetensors\",\n   \"bytes\": ", "safetensors\", \"bytes\": 1", "the manifest says 1"},
		{"safetensors\",\n   \"bytes\": ", "safetensors\", \"bytes\": -", "shards[0]"},
		{"\"tensors\"", "\"tensor\"", "tensors"},
		{SHAPE(10, 7), SHAPE(10, 8), "tensor matrix: there is a gap"},
		{SHAPE(10, 7), SHAPE(11, 7), "tensor matrix: there is a gap"},
		{SHAPE(10, 7), SHAPE(9, 7), "tensor matrix: blocks[2]: rows"},
		{SHAPE(10, 7), SHAPE(10, 6), "tensor matrix: blocks[1]: rows"},
		{SHAPE(10, 7), "[" MOST ", 7]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[10, -7]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[10, 7, 1]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[]", "tensor matrix: shape"},
		{SHAPE(10, 7), "[18446744073709551616, 7]", "too big integer"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 4, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 5, 0, 4), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 1, 4, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(0, 0, 5, 0, 3), BLOCK(0, 0, 5, 1, 2), "tensor matrix: there is a gap"},
		{BLOCK(2, 5, 5, 0, 3), BLOCK(2, 4, 5, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(2, 5, 5, 0, 3), BLOCK(2, 0, 5, 0, 3), "tensor matrix: there is a gap"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, 3, 3), "tensor matrix: there is a gap"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 6, 3, 4), "tensor matrix: blocks[3]: rows 5 + 6"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, 4, 4), "tensor matrix: blocks[3]: rows 5 + 5, columns 4 + 4"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 0, 3, 4), "tensor matrix: blocks[3]"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(3, 5, 5, -3, 4), "tensor matrix: blocks[3]"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, " MOST ", 3, 4]", "tensor matrix: blocks[3]: rows 5 + " MOST},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, " MOST "]",
	         "tensor matrix: blocks[3]: rows 5 + 5, columns 3 + " MOST},
		{BLOCK(3, 5, 5, 3, 4), "[3, " MOST ", 5, 3, 4]", "tensor matrix: blocks[3]: rows " MOST " + 5"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, " MOST ", 4]",
	         "tensor matrix: blocks[3]: rows 5 + 5, columns " MOST " + 4"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 4, 5]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 4.0]", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), "3", "tensor matrix: blocks[3]: "},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(4, 5, 5, 3, 4), "blocks[3]: shard is 4"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(-1, 5, 5, 3, 4), "blocks[3]: shard is -1"},
		{BLOCK(3, 5, 5, 3, 4), BLOCK(1, 5, 5, 3, 4), "the shard differs"},
		{BLOCK(3, 5, 5, 3, 4), "[3, 5, 5, 3, 2], [3, 5, 5, 5, 2]", "the shard differs"},
		{"\"matrix\": {", "\"matrix\": {\"blocks\": [], \"shape\": [1]}, \"other\": {",
	         "matrix: blocks must be"},
		{"\"matrix\"", "\"matrox\"", "matrix is missing"},
	};
	struct values values;
	char path[4096];
	fill(&values, 1);
	save_grid(*state, 60, &values, (struct grid){2, 2}, path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_manifest_refused(state, path, cases[i].from, cases[i].to, cases[i].reason);
	expect_values(path, &values);
}

/* What the child saves over and over must be whole at whatever moment it is killed. */
static void test_killed_at_any_time(void **state)
{
	char path[4096], newest[4096];
	struct wlb_error error;
	struct values values;
	fill(&values, 5);
	save_good(*state, 3, &values, 2, 2, path); /* from here on there is always one */
	for (int round = 0; round < 30; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			for (int step = 1;; step = step % 3 + 1)
				if (save(*state, step, &values, (struct grid){1, 2}, 2, path, &error) < 0)
					_exit(1);
		}
		usleep((unsigned)(1000 + 2000 * round));
		assert_int_equal(kill(child, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status)); /* it had not failed */
		assert_int_equal(wlb_checkpoint_newest(*state, newest, &error), 1);
		expect_values(newest, &values);
	}
}

/* The size at which a write fails, from the first byte on. */
static void test_failing_writes(void **state)
{
	char path[4096];
	struct wlb_error error;
	struct values values;
	struct rlimit normal, limited;
	int failures = 0, successes = 0;
	fill(&values, 5);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &normal), 0);
	for (rlim_t bytes = 0; successes == 0; bytes += 64) {
		limited = (struct rlimit){bytes, normal.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
		int rc = save(*state, 60, &values, (struct grid){2, 1}, 0, path, &error);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &normal), 0);
		if (rc == 0) {
			successes++;
			continue;
		}
		failures++;
		assert_says(error.message, "File too large");
		assert_true(strstr(error.message, ".safetensors") || strstr(error.message, "packer.bin") ||
		            strstr(error.message, "manifest.json"));
		assert_int_equal(fixture_entries(*state), 0);
	}
	assert_true(failures > 5);
	expect_values(path, &values);
}

/* In a child with a file system of its own: 0 when all was well, 77 when it may not mount one. */
static int full_disk(void **state)
{
	char path[4096];
	struct wlb_error error;
	static float large[64 * 1024];
	struct wlb_tensor_part part = {"large", WLB_FLOAT32, {1, 64 * 1024, 1, 0, 64 * 1024, 0, 1}, large};
	struct wlb_checkpoint_facts facts = some_facts;
	int64_t bytes;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", *state, "tmpfs", 0, "size=400k") < 0)
		return 77;
	for (int step = 1; step <= 2; step++) { /* the first fits, the second does not */
		facts.step = step;
		int rc = wlb_checkpoint_begin(*state, step, &error);
		if (rc == 0)
			rc = wlb_checkpoint_write_shard(*state, step, 0, &part, 1, &error);
		if (rc == 0)
			rc = wlb_checkpoint_commit(*state, &facts, 1, 1, path, &bytes, &error);
		if (rc < 0)
			wlb_checkpoint_abandon(*state, step);
		if (rc != (step == 1 ? 0 : -1) || fixture_entries(*state) != 1)
			return 1;
	}
	if (strstr(error.message, "No space left on device") == NULL || strstr(error.message, ".safetensors") == NULL)
		return 2;
	return wlb_checkpoint_newest(*state, path, &error) == 1 && strstr(path, "step_00000001") ? 0 : 3;
}

static void test_full_disk(void **state)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(full_disk(state));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* not root, or not allowed to mount */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A folder with the files "a" and "b", each holding one of the two tensors. */
static void write_hugging_face(void **state, struct values *values, const char *a, const char *b)
{
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	struct values *v = values;
	make_parts(v, parts);
	char path[4096];
	assert_int_equal(wlb_checkpoint_begin(*state, 1, &error), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wlb_checkpoint_write_shard(*state, 1, i, &parts[i], 1, &error), 0);
		snprintf(path, sizeof(path), ".step_00000001.partial/shard_%05d.safetensors", i);
		assert_int_equal(rename(fixture_path(state, path), fixture_path(state, i == 0 ? a : b)), 0);
	}
}

static void test_hugging_face_folders(void **state)
{
	struct values values;
	struct wlb_tensor_part part;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	float read[ROWS * COLS];
	fill(&values, 3);
	write_hugging_face(state, &values, "model.safetensors", "model-2.safetensors");
	make_parts(&values, parts);
	part = parts[0];
	part.data_host = read;
	assert_int_equal(wlb_checkpoint_read(*state, &part, 1, &error), 0);
	assert_memory_equal(read, values.matrix, sizeof(read));
	fixture_write_text(state, "model.safetensors.index.json",
	                   "{\"metadata\":{},\"weight_map\":{\"matrix\":\"model.safetensors\","
	                   "\"vector\":\"model-2.safetensors\"}}");
	expect_values(*state, &values);
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
		cmocka_unit_test_setup_teardown(test_facts, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_any_layout_reads_any_other, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_float64_reads_float32, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_wanted_parts_that_are_not_there, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_block_fills_its_own_memory_only, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_only_the_shards_needed_are_opened, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_elements_must_be_covered_once, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_bands_may_be_cut_each_in_its_own_way, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_blocks_of_one_tensor_have_one_shape, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_swapped_shards, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_packer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_empty_packer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_permissions_are_what_the_umask_leaves, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_size, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_a_failed_shard_leaves_the_others, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_missing_shard_and_diverged_loss, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_leftovers_are_removed_and_ignored, fixture_setup,
	                                        fixture_teardown),
		cmocka_unit_test_setup_teardown(test_keep, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_same_step_again, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_ones_are_passed_over, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_manifests, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_killed_at_any_time, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_failing_writes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_hugging_face_folders, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
