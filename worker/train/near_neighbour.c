#include "worker/train/near_neighbour.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/hash.h"

struct place {
	uint64_t under;
	int node;
};

static int by_switch(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->under != y->under)
		return x->under < y->under ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Returns how many nodes the largest switch has. */
static int largest_switch(const struct place *places, int count)
{
	int most = 0, here = 0;
	for (int i = 0; i < count; i++) {
		here = i > 0 && places[i].under == places[i - 1].under ? here + 1 : 1;
		most = here > most ? here : most;
	}
	return most;
}

/* In the order of switches, a node's neighbour is as many nodes further as the largest switch has: behind the last one
 * under its own switch. Where that switch has more than half of the nodes, as many of them as there are others have a
 * neighbour there. */
int wlb_near_neighbours(int count, const uint64_t *switch_of, int *neighbours, struct wlb_error *error)
{
	struct place *places = calloc((size_t)count + 1, sizeof(*places));
	if (places == NULL)
		return wlb_fail(error, "out of memory for the neighbours of %d nodes", count);
	for (int i = 0; i < count; i++)
		places[i] = (struct place){.under = switch_of[i], .node = i};
	qsort(places, (size_t)count, sizeof(*places), by_switch);
	int shift = largest_switch(places, count);
	if (shift > count / 2)
		shift = count - shift > 1 ? count - shift : 1;
	for (int i = 0; i < count; i++)
		neighbours[places[i].node] = places[(i + shift) % count].node;
	free(places);
	return 0;
}

uint64_t wlb_near_switch(const char *address, const char *pattern)
{
	const char *end = address != NULL ? strrchr(address, '.') : NULL;
	if (end == NULL || pattern == NULL || strchr(pattern, '.') == NULL)
		return 0;
	return wlb_hash_bytes(WLB_HASH_OF_NOTHING, address, (size_t)(end - address)) >> 11;
}
