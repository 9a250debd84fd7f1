#include "tests/unit/data/sample_checkpoint.h"

#include <string.h>

#include "tests/unit/data/fixture.h"
#include "tests/unit/data/whole_shard.h"

const struct wlb_save_place *sample_place(const char *dir)
{
	static struct wlb_save_place place;
	place = (struct wlb_save_place){.dir = dir, .id = "sample", .is_alone = 1};
	return &place;
}

void sample_fill(struct sample_values *v, float base)
{
	for (int i = 0; i < ROWS * COLS; i++)
		v->matrix[i] = base + (float)i;
	for (int i = 0; i < ROWS; i++)
		v->vector[i] = -base - (float)i;
}

void sample_parts(struct sample_values *v, struct wlb_tensor_part parts[2])
{
	parts[0] = (struct wlb_tensor_part){"matrix", WLB_FLOAT32, {2, ROWS, COLS, 0, ROWS, 0, COLS},
	                                    {0, 0},   v->matrix,   0};
	parts[1] = (struct wlb_tensor_part){"vector", WLB_FLOAT32, {1, ROWS, 1, 0, ROWS, 0, 1}, {0, 0}, v->vector, 0};
}

void sample_blocks(struct sample_values *dense, struct sample_grid grid, int number, struct wlb_tensor_part parts[2])
{
	int band = number / grid.cols, column = number % grid.cols;
	sample_parts(dense, parts);
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
static float *element(struct sample_values *values, const struct wlb_tensor_part *part, int64_t i)
{
	float *whole = strcmp(part->name, "matrix") == 0 ? values->matrix : values->vector;
	int64_t row = part->block.row_start + i / part->block.cols, col = part->block.col_start + i % part->block.cols;
	return &whole[row * part->block.global_cols + col];
}

void sample_take(struct sample_values *values, const struct wlb_tensor_part *part)
{
	for (int64_t i = 0; i < part->block.rows * part->block.cols; i++)
		((float *)part->data_host)[i] = *element(values, part, i);
}

void sample_put(struct sample_values *values, const struct wlb_tensor_part *part)
{
	for (int64_t i = 0; i < part->block.rows * part->block.cols; i++)
		*element(values, part, i) = ((float *)part->data_host)[i];
}

const struct wlb_checkpoint_facts sample_facts = {
	.step = 60,
	.schedule = {.seed = UINT64_MAX,
                     .documents = 1000,
                     .tokens = 123456789,
                     .index_digest = UINT64_MAX - 1,
                     .token_digest = UINT64_MAX - 2,
                     .epoch = 2,
                     .position = 17,
                     .spans = 512,
                     .step = 60,
                     .windows = 700,
                     .groups = 3,
                     .taken = {1000, 40, 1}},
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
                  .tie_word_embeddings = 1,
                  .family = WLB_FAMILY_SMOLLM3,
                  .rope_scaling = {.type = WLB_ROPE_YARN,
                                   .truncate = 1,
                                   .factor = 4.0,
                                   .original_max_position_embeddings = 512.0,
                                   .beta_fast = 32.0,
                                   .beta_slow = 1.0,
                                   .attention_factor = 1.138629436111989},
                  .rotary_dim = 8,
                  .no_rope_layer_interval = 4,
                  .sliding_window = 1024},
	.seq_length = 256,
	.global_batch_size = 16,
	.ramp = {.start = 4, .increment = 6, .windows = 1000},
	.seed = UINT64_MAX,
	.packing = WLB_STRATEGY_FIXED,
	.train_loss = 2.1000000000000001,
	.hyper = {.lr = 3e-4,
                  .min_lr = 3e-5,
                  .lr_warmup_iters = 100,
                  .lr_decay_iters = 1000,
                  .lr_decay_style = WLB_LR_LINEAR,
                  .weight_decay = 0.1,
                  .adam_beta1 = 0.9,
                  .adam_beta2 = 0.95,
                  .adam_eps = 1e-8,
                  .clip_grad = 1.0},
	.has_hyper = 1,
};

const char sample_packer_state[24] = "the state of the packer";

int sample_write(const char *dir, const struct wlb_checkpoint_facts *facts, struct sample_values *values,
                 struct sample_grid grid, int keep, char path[4096], struct wlb_error *error)
{
	int64_t bytes;
	if (wlb_checkpoint_begin(sample_place(dir), facts->step, error) < 0)
		return -1;
	for (int i = 0; i < grid.rows * grid.cols; i++) {
		struct sample_values dense;
		struct wlb_tensor_part parts[2];
		sample_blocks(&dense, grid, i, parts);
		sample_take(values, &parts[0]);
		sample_take(values, &parts[1]);
		if (whole_shard_save(sample_place(dir), facts->step, i, parts, 2, error) < 0)
			return -1;
	}
	if (whole_shard_save_indexes(sample_place(dir), facts->step, grid.rows * grid.cols, error) < 0 ||
	    wlb_checkpoint_write_packer(sample_place(dir), facts->step, sample_packer_state,
	                                sizeof(sample_packer_state), error) < 0)
		return -1;
	return wlb_checkpoint_commit(sample_place(dir), facts, grid.rows * grid.cols, keep, path, &bytes, error);
}

int sample_save(const char *dir, int64_t step, struct sample_values *values, struct sample_grid grid, int keep,
                char path[4096], struct wlb_error *error)
{
	struct wlb_checkpoint_facts facts = sample_facts;
	facts.step = step;
	int rc = sample_write(dir, &facts, values, grid, keep, path, error);
	if (rc < 0)
		wlb_checkpoint_abandon(sample_place(dir), step);
	return rc;
}

void sample_save_grid(const char *dir, int64_t step, struct sample_values *values, struct sample_grid grid,
                      char path[4096])
{
	struct wlb_error error;
	if (sample_save(dir, step, values, grid, 0, path, &error) < 0)
		fail_msg("%s", error.message);
}

void sample_save_bands(const char *dir, int64_t step, struct sample_values *values, int shards, int keep,
                       char path[4096])
{
	struct wlb_error error;
	if (sample_save(dir, step, values, (struct sample_grid){shards, 1}, keep, path, &error) < 0)
		fail_msg("%s", error.message);
}

void sample_expect(const char *path, const struct sample_values *expected)
{
	struct sample_values read;
	struct wlb_tensor_part parts[2];
	struct wlb_error error;
	memset(&read, 0xff, sizeof(read));
	sample_parts(&read, parts);
	if (wlb_checkpoint_read(path, parts, 2, &error) < 0)
		fail_msg("%s", error.message);
	assert_memory_equal(&read, expected, sizeof(read));
}
