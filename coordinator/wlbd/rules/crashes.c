#include "coordinator/wlbd/rules/crashes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/rules/name_index.h"

static const double min_weight = 1.5;
static const double times_the_others = 3;

/* Whether ranks died at the same step on two nodes. Where the run has made progress between, this is chance. */
static bool are_of_program(const struct wlbd_crash *a, const struct wlbd_crash *b)
{
	return a->step >= 0 && a->step == b->step && a->later_progress == b->later_progress &&
	       strcmp(a->node, b->node) != 0;
}

static bool is_of_program(const struct wlbd_crash *crashes, int count, int crash)
{
	for (int i = 0; i < count; i++)
		if (are_of_program(&crashes[i], &crashes[crash]))
			return true;
	return false;
}

int64_t wlbd_crashes_program_step(const struct wlbd_crash *crashes, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = i + 1; k < count; k++)
			if (crashes[i].in_row && crashes[k].in_row && are_of_program(&crashes[i], &crashes[k]))
				return crashes[i].step;
	return -1;
}

/* Returns -1 if out of memory. wlbd_name_index_free releases the index. */
static int index_nodes(const struct wlbd_suspect *nodes, int node_count, struct wlbd_name_index *index)
{
	const char **names = calloc((size_t)node_count + 1, sizeof(*names));
	int rc = -1;
	for (int i = 0; names != NULL && i < node_count; i++)
		names[i] = nodes[i].node;
	if (names != NULL)
		rc = wlbd_name_index_make(index, names, node_count);
	free(names);
	return rc;
}

/* Sets the weights, and their sum. Returns -1 if out of memory. */
static int weigh(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes, int node_count,
                 double *total)
{
	struct wlbd_name_index index;
	if (index_nodes(nodes, node_count, &index) != 0)
		return -1;
	for (int i = 0; i < node_count; i++) {
		nodes[i].weight = nodes[i].losses;
		nodes[i].suspected = false;
	}
	for (int c = 0; c < crash_count; c++) {
		int node = is_of_program(crashes, crash_count, c) ? -1 : wlbd_name_index_find(&index, crashes[c].node);
		if (node >= 0)
			nodes[node].weight += exp2(-crashes[c].age_s / WLBD_CRASH_HALF_LIFE_S);
	}
	*total = 0;
	for (int i = 0; i < node_count; i++)
		*total += nodes[i].weight;
	wlbd_name_index_free(&index);
	return 0;
}

static int by_weight(const void *a, const void *b)
{
	const struct wlbd_suspect *x = *(struct wlbd_suspect *const *)a, *y = *(struct wlbd_suspect *const *)b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x > y) - (x < y); /* both are in one array */
}

int wlbd_crashes_suspect(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes, int node_count)
{
	double total;
	int max = node_count >= 8 ? node_count / 4 : 1;
	struct wlbd_suspect **worst = calloc((size_t)node_count + 1, sizeof(*worst));
	if (worst == NULL || weigh(crashes, crash_count, nodes, node_count, &total) != 0) {
		free(worst);
		return -1;
	}
	for (int i = 0; i < node_count; i++)
		worst[i] = &nodes[i];
	qsort(worst, (size_t)node_count, sizeof(*worst), by_weight);
	for (int i = 0; i < max && node_count > 1; i++) {
		double others = (total - worst[i]->weight) / (node_count - 1);
		if (worst[i]->weight < min_weight || worst[i]->weight <= times_the_others * others)
			break;
		worst[i]->suspected = true;
	}
	free(worst);
	return 0;
}
