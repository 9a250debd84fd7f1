/* What the product loads from NVIDIA's library is in this program. */
#include "kernels/cuda/cublas.h"

int wlb_cublas_load(struct wlb_cublas *cublas, struct wlb_error *error)
{
	(void)error;
#define TAKE(name) cublas->name = name
	WLB_CUBLAS_FUNCTIONS(TAKE);
#undef TAKE
	return 0;
}
