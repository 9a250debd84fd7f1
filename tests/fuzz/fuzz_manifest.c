/* Any manifest.json beside one good shard: refused, or its facts are within bounds and its tensor reads or fails. */
#include <sys/stat.h>

#include "tests/fuzz/scratch.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"

enum { ROWS = 4, COLS = 2 };

static void write_shard(void)
{
	float values[ROWS * COLS] = {0};
	const struct wlb_tensor_part part = {"w", WLB_FLOAT32, 2, ROWS, COLS, 0, ROWS, values};
	struct wlb_error error;
	must(mkdir(scratch_path("c"), 0700) == 0);
	must(wlb_safetensors_write(scratch_path("c/shard_00000.safetensors"), &part, 1, &error) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int once;
	double values[ROWS * COLS];
	const struct wlb_tensor_part part = {"w", WLB_FLOAT64, 2, ROWS, COLS, 0, ROWS, values};
	struct wlb_checkpoint_facts facts;
	struct wlb_error error;
	if (!once++)
		write_shard();
	scratch_write("c/" WLB_MANIFEST_NAME, data, bytes);
	if (wlb_checkpoint_read_facts(scratch_path("c"), &facts, &error) == 0)
		must(facts.step >= 0 && facts.seq_length >= 1 && wlb_model_check(&facts.model, &error) == 0);
	(void)wlb_checkpoint_read(scratch_path("c"), &part, 1, &error);
	return 0;
}
