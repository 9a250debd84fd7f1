/*
 * The order in which things run that a GPU may run in any order: threads of a block between barriers, blocks of a
 * grid, heads of streams. A program without a race and without a missing event gives the same bits in every order.
 *
 *   CUDA_HOST_ORDER=ascending | descending | random:SEED    the order (ascending)
 *   CUDA_HOST_QUEUES=immediate | late                       whether what is queued on a stream runs at once, or only
 *                                                           when the host waits for it (immediate)
 */
#ifndef CUDA_HOST_ORDER_H
#define CUDA_HOST_ORDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_host_order { CUDA_HOST_ASCENDING, CUDA_HOST_DESCENDING, CUDA_HOST_RANDOM };

struct cuda_host_orders {
	enum cuda_host_order order;
	uint64_t seed; /* of CUDA_HOST_RANDOM */
	int late;      /* 1: streams run when the host waits for them */
};

/* The orders from now on; nothing may be queued. */
void cuda_host_set_orders(const struct cuda_host_orders *orders);

/* The order now, first read from the environment; a value there that is none of those above ends the program. */
const struct cuda_host_orders *cuda_host_get_orders(void);

/* A number below `count` (at least 1), from the seed and the numbers before it. */
uint64_t cuda_host_random(uint64_t count);

#ifdef __cplusplus
}
#endif

#endif
