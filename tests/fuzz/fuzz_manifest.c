/* Any manifest.json beside good shards of a tensor cut into four and a packer's state: refused, or its facts are within
 * bounds and every block of the tensor reads or fails. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/scratch.h"
#include "tests/unit/data/whole_shard.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/safetensors.h"

enum { ROWS = 4, COLS = 2, HALF_ROWS = 2, SHARDS = 4 };

/* As make_seeds.c cuts it. */
static void write_shards(void)
{
	float values[HALF_ROWS] = {0};
	struct wlb_error error;
	must(mkdir(scratch_path("c"), 0700) == 0);
	for (int i = 0; i < SHARDS; i++) {
		char name[64];
		const struct wlb_tensor_part part = {
			"w", WLB_FLOAT32, {2, ROWS, COLS, i / 2 * HALF_ROWS, HALF_ROWS, i % 2, 1}, {0, 0}, values, 0};
		snprintf(name, sizeof(name), "c/shard_%05d.safetensors", i);
		must(whole_shard_write(scratch_path(name), &part, 1, &error) == 0);
	}
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
		write_shards();
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
