/*
 * Loads OpenBLAS.
 *
 * It is loaded here and not linked, because it reads its processor type and its number of threads when it is loaded,
 * and both must be set before. The releases in distributions fall back to SSE3 on every processor model that is newer
 * than the release, which makes products five times slower; the processor type is therefore chosen by the features of
 * the processor, unless the user has set it.
 */
#include "kernels/cpu/cpu.h"

#include <dlfcn.h>
#include <stdlib.h>

static const char LIBRARY[] = "libopenblas.so.0";

/* Sets an environment variable that the user has not set; returns whether it did. */
static int set_unless_set(const char *name, const char *value)
{
	return value != NULL && getenv(name) == NULL && setenv(name, value, 1) == 0;
}

static void *load(void)
{
	const char *core = wlb_cpu_isa_usable(WLB_CPU_AVX512) ? "SkylakeX"
	                   : wlb_cpu_isa_usable(WLB_CPU_AVX2) ? "Haswell"
	                                                      : NULL;
	int core_set = set_unless_set("OPENBLAS_CORETYPE", core);
	int threads_set = set_unless_set("OPENBLAS_NUM_THREADS", "1");
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (core_set)
		unsetenv("OPENBLAS_CORETYPE");
	if (threads_set)
		unsetenv("OPENBLAS_NUM_THREADS");
	return library;
}

int wlb_cpu_load_blas(struct wlb_cpu_blas *blas, struct wlb_error *error)
{
	void *library = load();
	if (library == NULL)
		return wlb_fail(error, "cannot load OpenBLAS: %s; install it (Debian: libopenblas0)", dlerror());
	void (*set_num_threads)(int) = dlsym(library, "openblas_set_num_threads");
	blas->sgemm = dlsym(library, "cblas_sgemm");
	blas->dgemm = dlsym(library, "cblas_dgemm");
	if (set_num_threads == NULL || blas->sgemm == NULL || blas->dgemm == NULL)
		return wlb_fail(error,
		                "%s has no cblas_sgemm, cblas_dgemm or openblas_set_num_threads; install Debian's "
		                "libopenblas0",
		                LIBRARY);
	/* One pool of threads: OpenMP's. Two pools would compete for the same cores while they wait for work; linear.c
	 * divides a product among OpenMP's threads instead. */
	set_num_threads(1);
	return 0;
}
