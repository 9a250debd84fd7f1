#include "worker/calibrate/switches.h"

#include <stdlib.h>
#include <string.h>

#include "worker/calibrate/node_hashes.h"

const char *wlb_leaf_in_address(const char *address, const char *pattern, int *length)
{
	static const char end[] = "switch.node";
	size_t ends_at = strlen(pattern) < strlen(end) ? 0 : strlen(pattern) - strlen(end);
	const char *node = strrchr(address, '.');
	if (node == NULL || node == address || strcmp(pattern + ends_at, end) != 0)
		return NULL;
	const char *leaf = node;
	while (leaf > address && leaf[-1] != '.')
		leaf--;
	*length = (int)(node - leaf);
	return *length > 0 ? leaf : NULL;
}

/* Returns the hash of the name of this node's leaf switch; 0 where Slurm names none. */
static double own_leaf_hash(void)
{
	const char *address = getenv("SLURM_TOPOLOGY_ADDR"), *pattern = getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
	int length = 0;
	const char *leaf = address != NULL && pattern != NULL ? wlb_leaf_in_address(address, pattern, &length) : NULL;
	return leaf != NULL ? wlb_name_hash(leaf, length) : 0.0;
}

int wlb_find_switches(const struct wlb_launch *launch, struct wlb_comm *world, int *leaf_of, struct wlb_error *error)
{
	int count = 0, nodes = launch->node_count;
	double *hashes = wlb_share_node_hashes(launch, world, own_leaf_hash(), error);
	if (hashes == NULL)
		return -1;
	for (int n = 0; n < nodes; n++) {
		leaf_of[n] = count;
		for (int before = 0; before < n && leaf_of[n] == count; before++)
			if (hashes[before] == hashes[n])
				leaf_of[n] = leaf_of[before];
		count += leaf_of[n] == count;
	}
	free(hashes);
	return count;
}
