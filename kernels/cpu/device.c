/* Opening the CPU device: which table of operations this processor can run, and how many threads. */
#include "kernels/cpu/cpu.h"

#include <omp.h>
#include <stdlib.h>

extern const struct wlb_ops wlb_cpu_ops_float32_baseline, wlb_cpu_ops_float64_baseline;
#if WLB_CPU_X86_VARIANTS
extern const struct wlb_ops wlb_cpu_ops_float32_avx2, wlb_cpu_ops_float64_avx2;
extern const struct wlb_ops wlb_cpu_ops_float32_avx512, wlb_cpu_ops_float64_avx512;
#endif

static const struct wlb_ops *const OPS[WLB_CPU_ISA_COUNT][2] = {
	[WLB_CPU_BASELINE] =
		{[WLB_FLOAT32] = &wlb_cpu_ops_float32_baseline, [WLB_FLOAT64] = &wlb_cpu_ops_float64_baseline},
#if WLB_CPU_X86_VARIANTS
	[WLB_CPU_AVX2] = {[WLB_FLOAT32] = &wlb_cpu_ops_float32_avx2, [WLB_FLOAT64] = &wlb_cpu_ops_float64_avx2},
	[WLB_CPU_AVX512] = {[WLB_FLOAT32] = &wlb_cpu_ops_float32_avx512, [WLB_FLOAT64] = &wlb_cpu_ops_float64_avx512},
#endif
};

struct wlb_device *wlb_cpu_open_isa(enum wlb_dtype dtype, int threads, enum wlb_cpu_isa isa, struct wlb_error *error)
{
	if (dtype != WLB_FLOAT32 && dtype != WLB_FLOAT64) {
		wlb_fail(error, "element type %d: the CPU device computes in float32 (%d) and float64 (%d)", (int)dtype,
		         (int)WLB_FLOAT32, (int)WLB_FLOAT64);
		return NULL;
	}
	if (threads < 0) {
		wlb_fail(error, "%d threads: the CPU device needs at least 1, or 0 for what OpenMP gives", threads);
		return NULL;
	}
	struct wlb_device *device = calloc(1, sizeof(*device));
	struct wlb_cpu *cpu = calloc(1, sizeof(*cpu));
	if (device == NULL || cpu == NULL) {
		free(device);
		free(cpu);
		wlb_fail(error, "cannot open the CPU device: out of memory");
		return NULL;
	}
	if (wlb_cpu_load_blas(&cpu->blas, error) != 0) {
		free(device);
		free(cpu);
		return NULL;
	}
	cpu->threads = threads > 0 ? threads : omp_get_max_threads();
	*device = (struct wlb_device){.ops = OPS[isa][dtype],
	                              .name = "cpu",
	                              .compute = dtype,
	                              .master = dtype,
	                              .gradients = dtype,
	                              .host_threads = cpu->threads,
	                              .host_memory = 1,
	                              .state = cpu};
	return device;
}

struct wlb_device *wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error)
{
	enum wlb_cpu_isa best = WLB_CPU_BASELINE;
	for (int isa = WLB_CPU_BASELINE; isa < WLB_CPU_ISA_COUNT; isa++)
		if (wlb_cpu_isa_usable(isa))
			best = isa;
	return wlb_cpu_open_isa(dtype, threads, best, error);
}
