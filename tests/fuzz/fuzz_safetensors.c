/* Any safetensors file: refused, or every tensor of it can be read. */
#include "tests/fuzz/scratch.h"
#include "worker/checkpoint/safetensors.h"

enum { MOST_ELEMENTS = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	double values[MOST_ELEMENTS];
	struct wlb_error error;
	struct wlb_safetensors *file = wlb_safetensors_open(scratch_write("x", data, bytes), &error);
	if (file == NULL)
		return 0;
	const struct wlb_stored_tensor *tensors;
	int count = wlb_safetensors_tensors(file, &tensors);
	for (int i = 0; i < count; i++) {
		const struct wlb_stored_tensor *t = &tensors[i];
		must(wlb_safetensors_find(file, t->name) == t);
		must(t->row_start >= 0 && t->row_start + t->rows <= t->global_rows);
		must(t->col_start >= 0 && t->col_start + t->cols <= t->global_cols);
		if (t->stored == WLB_STORED_OTHER || t->rows * t->cols > MOST_ELEMENTS)
			continue;
		const struct wlb_stored_range whole = {0, t->rows, 0, t->cols};
		const struct wlb_stored_range last = {0, t->rows, t->cols - t->cols / 2, t->cols / 2};
		must(wlb_safetensors_read(file, t, &whole, WLB_FLOAT64, values, t->cols, &error) == 0);
		must(wlb_safetensors_read(file, t, &last, WLB_FLOAT64, values, t->cols / 2, &error) == 0);
	}
	wlb_safetensors_close(file);
	return 0;
}
