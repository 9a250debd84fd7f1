/* How often the calls of this process did what a GPU's program avoids in a step. */
#ifndef CUDA_HOST_COUNT_H
#define CUDA_HOST_COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_host_counts {
	long waits;   /* calls for which CUDA makes the host wait for a stream, or for a copy of pageable memory */
	long memory;  /* allocations and releases of device memory and pinned host memory; they wait, too */
	long objects; /* streams and events that were made */
};

/* Since the start of the process, by all of its threads. */
struct cuda_host_counts cuda_host_get_counts(void);

#ifdef __cplusplus
}
#endif

#endif
