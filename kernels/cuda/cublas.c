#include "kernels/cuda/cublas.h"

#include "kernels/library.h"

#define TEXT_OF(number) #number
#define NAME_OF_RELEASE(major) "libcublasLt.so." TEXT_OF(major)
#define PACKAGE_OF_RELEASE(major) "libcublas of CUDA " TEXT_OF(major)

int wlb_cublas_load(struct wlb_cublas *cublas, struct wlb_error *error)
{
	const char *names[sizeof(*cublas) / sizeof(cublas->cublasLtCreate)];
	int count = 0;
	static const struct wlb_library library = {
		.title = "cuBLASLt",
		.file = NAME_OF_RELEASE(CUBLAS_VER_MAJOR),
		.folder = WLB_CUDA_LIBRARIES,
		.install = PACKAGE_OF_RELEASE(CUBLAS_VER_MAJOR),
		.instead = "use the CPU device",
	};
#define NAME(name) names[count++] = #name
	WLB_CUBLAS_FUNCTIONS(NAME);
#undef NAME
	return wlb_library_load(&library, names, count, cublas, error);
}
