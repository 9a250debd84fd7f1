/* The shards of a tensor "w" that is cut into four, as make_seeds.c cuts it. */
#ifndef TESTS_FUZZ_FOUR_SHARDS_H
#define TESTS_FUZZ_FOUR_SHARDS_H

#include "worker/checkpoint/checkpoint.h"

enum { ROWS = 4, COLS = 2, SHARDS = 4 };

/* The block that a shard has; its data are zeros. */
struct wlb_tensor_part four_shards_part(int shard);
/* Writes FOLDER/shard_00000.safetensors and on, in the folder for the files of a target: scratch.h. */
void four_shards_write(const char *folder);

#endif
