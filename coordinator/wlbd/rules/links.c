#include "coordinator/wlbd/rules/links.h"

#include <stdlib.h>

int wlbd_links_worst(const struct wlbd_broken_link *links, int count, int node_count)
{
	int worst = -1;
	int *broken = calloc((size_t)node_count + 1, sizeof(*broken));
	if (broken == NULL)
		return -1;
	for (int i = 0; i < count; i++) {
		broken[links[i].from]++;
		broken[links[i].to]++;
	}
	for (int node = 0; node < node_count; node++)
		if (broken[node] > 0 && (worst < 0 || broken[node] >= broken[worst]))
			worst = node;
	free(broken);
	return worst;
}
