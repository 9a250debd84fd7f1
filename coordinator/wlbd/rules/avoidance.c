#include "coordinator/wlbd/rules/avoidance.h"

#include <stdlib.h>

#include "coordinator/wlbd/rules/evictions.h"

static int by_weight(const void *a, const void *b)
{
	const struct wlbd_known_node *x = *(struct wlbd_known_node *const *)a, *y = *(struct wlbd_known_node *const *)b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return (x > y) - (x < y); /* both are in one array */
}

int wlbd_avoidance_mark(struct wlbd_known_node *nodes, int count)
{
	struct wlbd_known_node **lightest = calloc((size_t)count + 1, sizeof(*lightest));
	int marked = 0, max = wlbd_excluded_max(count);
	if (lightest == NULL)
		return -1;
	for (int i = 0; i < count; i++)
		if (nodes[i].is_excluded)
			max--;
		else if (nodes[i].why != NULL)
			lightest[marked++] = &nodes[i];
	qsort(lightest, (size_t)marked, sizeof(*lightest), by_weight);
	for (int i = 0; i < marked && i < marked - max; i++)
		lightest[i]->why = NULL;
	free(lightest);
	return 0;
}
