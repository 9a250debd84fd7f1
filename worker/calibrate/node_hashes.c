#include "worker/calibrate/node_hashes.h"

#include <stdint.h>
#include <stdlib.h>

/* FNV-1a of 64 bits, folded to the 48 that a double holds exactly. */
double wlb_name_hash(const char *name, int length)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (int i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	return 1.0 + (double)((hash ^ (hash >> 48)) & 0xffffffffffffu);
}

double *wlb_share_node_hashes(const struct wlb_launch *launch, struct wlb_comm *world, double own,
                              struct wlb_error *error)
{
	double *hashes = calloc((size_t)launch->node_count, sizeof(*hashes));
	if (hashes == NULL) {
		wlb_fail(error, "out of memory for the hashes of %d nodes", launch->node_count);
		return NULL;
	}
	hashes[launch->node_of[launch->rank]] = own;
	if (wlb_comm_all_reduce_double(world, hashes, (size_t)launch->node_count, WLB_MAX, error) == 0)
		return hashes;
	free(hashes);
	return NULL;
}
