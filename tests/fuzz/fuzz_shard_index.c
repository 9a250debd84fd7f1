/* Any index.json of four shards of a tensor cut into four, listed with its size and checksum: refused, or it has what
 * the manifest says, and every block of the tensor reads or fails. */
#include "common/element_checksum.h"
#include "tests/fuzz/four_shards.h"
#include "tests/fuzz/scratch.h"
#include "worker/checkpoint/shard_index.h"

/* What a manifest says of the index. */
static void list_index(const uint8_t *data, size_t bytes, struct wlb_weights_index *index, struct wlb_weights *whole)
{
	struct wlb_error error;
	for (int i = 0; i < SHARDS; i++) {
		const struct wlb_tensor_part part = four_shards_part(i);
		const struct wlb_stored_block block = {
			.name = (char *)part.name, .block = part.block, .range = wlb_tensor_part_range(&part)};
		must(wlb_weights_add_block(whole, &block, &error) == 0);
	}
	*index = (struct wlb_weights_index){SHARDS, (int64_t)bytes, wlb_element_checksum(data, 1, 0, (int64_t)bytes)};
	whole->indexes = index;
	whole->index_count = 1;
	must(wlb_weights_finish(whole, &error) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int once;
	double values[ROWS * COLS];
	const struct wlb_tensor_part part = {"w", WLB_FLOAT64, {2, ROWS, COLS, 0, ROWS, 0, COLS}, {0, 0}, values, 0};
	struct wlb_weights_index index;
	struct wlb_weights whole = {0}, list = {0};
	struct wlb_error error;
	const char *folder = scratch_path(".");
	if (!once++)
		four_shards_write(".");
	scratch_write("index.json", data, bytes);
	list_index(data, bytes, &index, &whole);
	must(wlb_shard_index_check(folder, &whole, 0, &error) == 0);
	if (wlb_shard_index_read(folder, &whole, 0, &list, &error) == 0) {
		must(list.file_count == SHARDS && list.block_count >= SHARDS);
		(void)wlb_weights_check_files(&list, 0, SHARDS, &error);
		(void)wlb_weights_read(&list, &part, 1, &error);
	}
	wlb_weights_free(&list);
	whole.indexes = NULL;
	wlb_weights_free(&whole);
	return 0;
}
