/* Which instruction sets this build has and this processor can run. */
#include "kernels/cpu/cpu.h"

int wlb_cpu_isa_usable(enum wlb_cpu_isa isa)
{
#if WLB_CPU_X86_VARIANTS
	/* The levels x86-64-v3 and -v4 of the psABI, by the features that set them apart from the level below. */
	int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
	             __builtin_cpu_supports("avx512vl");
	return isa == WLB_CPU_AVX512 ? avx512 : isa == WLB_CPU_AVX2 ? avx2 : isa == WLB_CPU_BASELINE;
#else
	return isa == WLB_CPU_BASELINE;
#endif
}
