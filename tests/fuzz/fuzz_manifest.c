/* Any manifest.json beside good shards of a tensor cut into four, their index and a packer's state: refused, or its
 * facts are within bounds and every block of the tensor reads or fails. */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/four_shards.h"
#include "tests/fuzz/scratch.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/shard_index.h"

static void write_files(void)
{
	struct wlb_error error;
	must(mkdir(scratch_path("c"), 0700) == 0);
	four_shards_write("c");
	must(wlb_shard_index_write(scratch_path("c"), 0, SHARDS, &error) == 0);
	scratch_write("c/" WLB_PACKER_NAME, "packer", 6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int once;
	double values[ROWS * COLS];
	const struct wlb_tensor_part parts[] = {
		{"w", WLB_FLOAT64, {2, ROWS, COLS, 0, ROWS, 0, COLS}, {0, 0}, values, 0},
		{"w", WLB_FLOAT64, {2, ROWS, COLS, 1, 2, 0, COLS}, {1, 3}, values, 0},
		{"w", WLB_FLOAT64, {2, ROWS, COLS, 0, ROWS, 1, 1}, {0, 0}, values, 0}};
	void *packer;
	size_t packer_bytes;
	struct wlb_checkpoint_facts facts;
	struct wlb_error error;
	if (!once++)
		write_files();
	scratch_write("c/" WLB_MANIFEST_NAME, data, bytes);
	if (wlb_checkpoint_read_facts(scratch_path("c"), &facts, &error) == 0)
		must((!facts.has_hyper || facts.hyper.lr > 0) && facts.step >= 0 && facts.seq_length >= 1 &&
		     wlb_model_check(&facts.model, &error) == 0);
	for (int i = 0; i < 3; i++)
		(void)wlb_checkpoint_read(scratch_path("c"), &parts[i], 1, &error);
	if (wlb_checkpoint_read_packer(scratch_path("c"), &packer, &packer_bytes, &error) == 0) {
		must(packer_bytes == 6);
		free(packer);
	}
	return 0;
}
