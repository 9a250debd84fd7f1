/* Loads cuBLASLt: from where the loader finds it, else from the toolkit that this was compiled with. */
#include "kernels/cuda/cublas.h"

#include <dlfcn.h>

#define TEXT_OF(number) #number
#define NAME_OF_RELEASE(major) "libcublasLt.so." TEXT_OF(major)
#define LIBRARY NAME_OF_RELEASE(CUBLAS_VER_MAJOR)

static void *load(void)
{
	const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
	void *library = dlopen(LIBRARY, flags);
	return library != NULL ? library : dlopen(WLB_CUDA_LIBRARIES "/" LIBRARY, flags);
}

int wlb_cublas_load(struct wlb_cublas *cublas, struct wlb_error *error)
{
	void *library = load();
	if (library == NULL)
		return wlb_fail(error,
		                "cannot load cuBLASLt: %s; install libcublas of CUDA %d, name its folder in "
		                "LD_LIBRARY_PATH, or use the CPU device",
		                dlerror(), CUBLAS_VER_MAJOR);
#define LOAD(name)                                                                                                     \
	if ((cublas->name = (__typeof__(cublas->name))dlsym(library, #name)) == NULL)                                  \
	return wlb_fail(error, "%s has no function %s; install libcublas of CUDA %d", LIBRARY, #name, CUBLAS_VER_MAJOR)
	WLB_CUBLAS_FUNCTIONS(LOAD);
#undef LOAD
	return 0;
}
