/* The generic resources of a node, as Slurm writes them. */
#ifndef COORDINATOR_SLURM_GRES_H
#define COORDINATOR_SLURM_GRES_H

#include <stddef.h>
#include <stdint.h>

/* How many GPUs: "gpu:a100:4(S:0-1),gpu:2,shard:8" -> 6. An item without a count is one. */
uint32_t wlb_gres_gpus(const char *gres);

/* The type of the first GPUs that have one: "gpu:2,gpu:a100:4" -> "a100"; "" where none has. It is cut where it is
 * longer than `size`. */
void wlb_gres_gpu_type(const char *gres, char *type, size_t size);

#endif
