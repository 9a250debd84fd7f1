#include "coordinator/wlb/trace/node_clocks.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct node *next;
	double ahead_us;
	char name[];
};

struct wlb_node_clocks {
	struct wlb_meetings first;
	struct node *nodes;
};

struct wlb_node_clocks *wlb_node_clocks_new(void)
{
	return calloc(1, sizeof(struct wlb_node_clocks));
}

void wlb_node_clocks_free(struct wlb_node_clocks *clocks)
{
	struct node *next = clocks != NULL ? clocks->nodes : NULL;
	while (next != NULL) {
		struct node *node = next;
		next = node->next;
		free(node);
	}
	free(clocks);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

/* Returns 1 and the median difference of the ends of the calls that are in both, 0 where none is. */
static int median_difference(const struct wlb_meetings *from, const struct wlb_meetings *to, double *median)
{
	double differences[WLB_MEETINGS_MOST];
	int count = 0;
	for (int i = 0, j = 0; i < from->count && j < to->count;) {
		if (from->list[i].seq == to->list[j].seq)
			differences[count++] = to->list[j].end_us - from->list[i].end_us;
		if (from->list[i].seq <= to->list[j].seq)
			i++;
		else
			j++;
	}
	if (count == 0)
		return 0;
	qsort(differences, (size_t)count, sizeof(*differences), compare);
	*median = differences[count / 2];
	return 1;
}

int wlb_node_clocks_add(struct wlb_node_clocks *clocks, const char *name, const struct wlb_meetings *meetings,
                        struct wlb_error *error)
{
	size_t bytes = strlen(name) + 1;
	struct node *node = calloc(1, sizeof(*node) + bytes);
	if (node == NULL)
		return wlb_fail(error, "out of memory");
	if (clocks->nodes == NULL) {
		clocks->first = *meetings;
	} else if (!median_difference(&clocks->first, meetings, &node->ahead_us)) {
		free(node);
		return wlb_fail(error,
		                "node %.200s: its ranks have no call of all ranks in common with the first rank: "
		                "its clock cannot be compared",
		                name);
	}
	memcpy(node->name, name, bytes);
	node->next = clocks->nodes;
	clocks->nodes = node;
	return 0;
}

int wlb_node_clocks_find(const struct wlb_node_clocks *clocks, const char *name, double *ahead_us)
{
	for (const struct node *node = clocks->nodes; node != NULL; node = node->next) {
		if (strcmp(node->name, name) == 0) {
			*ahead_us = node->ahead_us;
			return 1;
		}
	}
	return 0;
}
