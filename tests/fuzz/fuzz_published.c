/* Any model.safetensors.index.json beside good files, or any model.safetensors: refused, or what passes the comparison
 * with a model can be read. The first byte says which of the two the others are. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/scratch.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/published.h"

enum { ROWS = 4, COLS = 2 };

static double values[ROWS * COLS];
static const struct wlb_tensor_part model[] = {
	{"w", WLB_FLOAT64, {2, ROWS, COLS, 0, ROWS, 0, COLS}, {0, 0}, values, 0},
	{"v", WLB_FLOAT64, {1, ROWS, 1, 0, ROWS, 0, 1}, {0, 0}, values, 0},
};

static void write_files(void)
{
	struct wlb_error error;
	must(mkdir(scratch_path("m"), 0700) == 0);
	must(whole_shard_write(scratch_path("m/a"), &model[0], 1, &error) == 0);
	must(whole_shard_write(scratch_path("m/b"), &model[1], 1, &error) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int once;
	struct wlb_error error;
	if (!once++)
		write_files();
	if (bytes == 0)
		return 0;
	if (data[0] == 'i') {
		scratch_write("m/" WLB_PUBLISHED_INDEX, data + 1, bytes - 1);
	} else {
		unlink(scratch_path("m/" WLB_PUBLISHED_INDEX));
		scratch_write("m/" WLB_PUBLISHED_FILE, data + 1, bytes - 1);
	}
	if (wlb_published_check(scratch_path("m"), model, 2, &error) == 0)
		must(wlb_checkpoint_read(scratch_path("m"), model, 2, &error) == 0);
	return 0;
}
