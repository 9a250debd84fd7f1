/* The generic resources of a node, as Slurm writes them. */
#ifndef COORDINATOR_SLURM_GRES_H
#define COORDINATOR_SLURM_GRES_H

#include <stdint.h>

/* How many GPUs: "gpu:a100:4(S:0-1),gpu:2,shard:8" -> 6. An item without a count is one. */
uint32_t wlb_gres_gpus(const char *gres);

#endif
