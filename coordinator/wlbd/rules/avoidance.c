#include "coordinator/wlbd/rules/avoidance.h"

#include <stddef.h>

#include "coordinator/wlbd/rules/evictions.h"

static int lightest(const struct wlbd_known_node *nodes, int count)
{
	int least = -1;
	for (int i = 0; i < count; i++)
		if (nodes[i].why != NULL && (least < 0 || nodes[i].weight < nodes[least].weight))
			least = i;
	return least;
}

void wlbd_avoidance_mark(struct wlbd_known_node *nodes, int count)
{
	int marked = 0;
	for (int i = 0; i < count; i++)
		marked += nodes[i].why != NULL;
	for (; marked > wlbd_most_left_out(count); marked--)
		nodes[lightest(nodes, count)].why = NULL;
}
