#include "worker/calibrate/node_hashes.h"

#include <stdint.h>
#include <stdlib.h>

#include "libwlb/hash.h"

/* Folded to the 48 bits that a double holds exactly. */
double wlb_name_hash(const char *name, int length)
{
	uint64_t hash = wlb_hash_bytes(WLB_HASH_OF_NOTHING, name, (size_t)length);
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
