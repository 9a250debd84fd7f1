#include "tests/fuzz/four_shards.h"

#include <stdio.h>

#include "tests/fuzz/scratch.h"
#include "tests/unit/data/whole_shard.h"

enum { HALF_ROWS = ROWS / 2 };

struct wlb_tensor_part four_shards_part(int shard)
{
	static float zeros[HALF_ROWS];
	return (struct wlb_tensor_part){
		"w", WLB_FLOAT32, {2, ROWS, COLS, shard / 2 * HALF_ROWS, HALF_ROWS, shard % 2, 1}, {0, 0}, zeros, 0};
}

void four_shards_write(const char *folder)
{
	struct wlb_error error;
	for (int i = 0; i < SHARDS; i++) {
		char name[64];
		const struct wlb_tensor_part part = four_shards_part(i);
		snprintf(name, sizeof(name), "%s/shard_%05d.safetensors", folder, i);
		must(whole_shard_write(scratch_path(name), &part, 1, &error) == 0);
	}
}
