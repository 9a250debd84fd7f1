/* Reserves the scratch memory of all operations. They use it one after the other, so that it is as large as the largest
 * need. */
#include "kernels/cuda/cuda.h"

int wlb_cuda_reserve(struct wlb_device *device, const struct wlb_largest_pass *largest, struct wlb_error *error)
{
	const size_t needs[] = {
		wlb_cuda_embedding_scratch_bytes(largest->rows, largest->width),
		wlb_cuda_rmsnorm_scratch_bytes(largest->rows, largest->width),
		wlb_cuda_cross_entropy_scratch_bytes(largest->rows),
		wlb_cuda_attention_scratch_bytes(largest->rows, largest->heads),
		wlb_cuda_sum_squares_scratch_bytes(),
	};
	size_t most = 0;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		most = needs[i] > most ? needs[i] : most;
	return wlb_cuda_scratch(device, most, "all operations") != NULL ? 0 : wlb_cuda_report(device, error);
}
