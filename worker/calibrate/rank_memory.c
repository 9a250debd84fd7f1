#include "worker/calibrate/rank_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/node_type.h"
#include "worker/calibrate/node_hashes.h"
#include "worker/train/device.h"

/* What each rank says of its memory. */
struct memory {
	double bytes;
	double owner; /* a number of what has it: the hash of a GPU's address, 0 for the node */
};

static struct memory own_memory(const struct wlb_launch *launch, const struct wlb_device *device)
{
	struct wlb_gpu gpu = {0};
	struct wlb_error none; /* the device is open, so there is a description */
	if (device->host_memory || wlb_cuda_describe(wlb_own_gpu(launch), &gpu, &none) < 0)
		return (struct memory){wlb_node_memory_bytes(), 0.0};
	return (struct memory){(double)gpu.memory_bytes, wlb_name_hash(gpu.address, (int)strlen(gpu.address))};
}

/* Returns the bytes of `rank`, divided among the ranks of its node that have the same memory. */
static double share_of(const struct wlb_launch *launch, const struct memory *memory, int rank)
{
	int sharing = 0;
	for (int other = 0; other < launch->size; other++)
		sharing += launch->node_of[other] == launch->node_of[rank] && memory[other].owner == memory[rank].owner;
	return memory[rank].bytes / sharing;
}

int wlb_rank_memory(const struct wlb_launch *launch, const struct wlb_device *device, struct wlb_comm *world,
                    double *bytes, struct wlb_error *error)
{
	struct memory *memory = calloc((size_t)launch->size, sizeof(*memory));
	if (memory == NULL)
		return wlb_fail(error, "out of memory for the memory of %d ranks", launch->size);
	memory[launch->rank] = own_memory(launch, device);
	int rc = wlb_comm_all_reduce_double(world, &memory[0].bytes, 2 * (size_t)launch->size, WLB_SUM, error);
	*bytes = INFINITY;
	for (int rank = 0; rc == 0 && rank < launch->size; rank++)
		*bytes = fmin(*bytes, share_of(launch, memory, rank));
	free(memory);
	return rc;
}
