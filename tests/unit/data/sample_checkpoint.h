/* A checkpoint of a matrix and a vector, cut into blocks in any way. */
#ifndef TESTS_UNIT_DATA_SAMPLE_CHECKPOINT_H
#define TESTS_UNIT_DATA_SAMPLE_CHECKPOINT_H

#include "worker/checkpoint/checkpoint.h"

enum { ROWS = 10, COLS = 7 };

struct sample_values {
	float matrix[ROWS * COLS];
	float vector[ROWS];
};

/* How the matrix is cut: into rows x cols blocks, as evenly as they can be. */
struct sample_grid {
	int rows;
	int cols;
};

/* Of step 60. */
extern const struct wlb_checkpoint_facts sample_facts;
extern const char sample_packer_state[24];

/* The directory, as a run that is alone there has it. Valid until the next call. */
const struct wlb_save_place *sample_place(const char *dir);

/* Sets all values, each another; those of another base differ. */
void sample_fill(struct sample_values *values, float base);
/* All of both tensors. */
void sample_parts(struct sample_values *values, struct wlb_tensor_part parts[2]);
/* Block `number` of the matrix, and that block of the vector for each band of rows (with the band's first block of the
 * matrix; none with the others), their data in `dense`. */
void sample_blocks(struct sample_values *dense, struct sample_grid grid, int number, struct wlb_tensor_part parts[2]);
/* Copies the part's data out of the whole tensor, or into it. */
void sample_take(struct sample_values *values, const struct wlb_tensor_part *part);
void sample_put(struct sample_values *values, const struct wlb_tensor_part *part);

/* Writes a checkpoint with a shard for each block. On -1 its partial folder stays. */
int sample_write(const char *dir, const struct wlb_checkpoint_facts *facts, struct sample_values *values,
                 struct sample_grid grid, int keep, char path[4096], struct wlb_error *error);
/* The same with the facts of the sample at another step; on -1 the partial folder is removed. */
int sample_save(const char *dir, int64_t step, struct sample_values *values, struct sample_grid grid, int keep,
                char path[4096], struct wlb_error *error);
/* The same; a failure ends the test. sample_save_bands cuts into `shards` bands of rows. */
void sample_save_grid(const char *dir, int64_t step, struct sample_values *values, struct sample_grid grid,
                      char path[4096]);
void sample_save_bands(const char *dir, int64_t step, struct sample_values *values, int shards, int keep,
                       char path[4096]);

/* Reads the checkpoint, which must hold these values. */
void sample_expect(const char *path, const struct sample_values *expected);

#endif
