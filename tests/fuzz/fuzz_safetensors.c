/* Any safetensors file: refused, or every tensor of it can be read. */
#include "tests/fuzz/scratch.h"
#include "worker/checkpoint/safetensors.h"

enum { MOST_ELEMENTS = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	double values[MOST_ELEMENTS];
	uint64_t checksum = 0;
	struct wlb_error error;
	struct wlb_safetensors *file = wlb_safetensors_open(scratch_write("x", data, bytes), &error);
	if (file == NULL)
		return 0;
	const struct wlb_stored_tensor *tensors;
	int count = wlb_safetensors_tensors(file, &tensors);
	for (int i = 0; i < count; i++) {
		const struct wlb_stored_tensor *t = &tensors[i];
		must(wlb_safetensors_find(file, t->name) == t);
		must(t->block.row_start >= 0 && t->block.row_start + t->block.rows <= t->block.global_rows);
		must(t->block.col_start >= 0 && t->block.col_start + t->block.cols <= t->block.global_cols);
		if (t->stored == WLB_STORED_OTHER || t->block.rows * t->block.cols > MOST_ELEMENTS)
			continue;
		const struct wlb_stored_range whole = {0, t->block.rows, 0, t->block.cols};
		const struct wlb_stored_range last = {0, t->block.rows, t->block.cols - t->block.cols / 2,
		                                      t->block.cols / 2};
		must(wlb_safetensors_read(file, t, &whole, WLB_FLOAT64, values, t->block.cols, &checksum, &error) == 0);
		must(wlb_safetensors_read(file, t, &last, WLB_FLOAT64, values, t->block.cols / 2, &checksum, &error) ==
		     0);
	}
	wlb_safetensors_close(file);
	return 0;
}
