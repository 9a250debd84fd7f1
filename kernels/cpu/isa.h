/* The instruction sets that the operations of the CPU device are compiled for. */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

enum wlb_cpu_isa { WLB_CPU_BASELINE, WLB_CPU_AVX2, WLB_CPU_AVX512, WLB_CPU_ISA_COUNT };

/* Returns 1 where this build has the variant and this processor can run it, else 0. */
int wlb_cpu_isa_usable(enum wlb_cpu_isa isa);

#endif
