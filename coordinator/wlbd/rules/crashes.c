#include "coordinator/wlbd/rules/crashes.h"

#include <math.h>
#include <string.h>

static const double least_weight = 1.5;
static const double times_the_others = 3;

/* A rank died at the same step on another node. */
static bool is_of_program(const struct wlbd_crash *crashes, int count, int crash)
{
	for (int i = 0; i < count && crashes[crash].step >= 0; i++)
		if (crashes[i].step == crashes[crash].step && strcmp(crashes[i].node, crashes[crash].node) != 0)
			return true;
	return false;
}

int64_t wlbd_crashes_program_step(const struct wlbd_crash *crashes, int count)
{
	for (int i = 0; i < count; i++)
		if (is_of_program(crashes, count, i))
			return crashes[i].step;
	return -1;
}

/* Sets the weights. Returns their sum. */
static double weigh(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes, int node_count)
{
	double total = 0;
	for (int i = 0; i < node_count; i++) {
		nodes[i].weight = nodes[i].losses;
		nodes[i].suspected = false;
	}
	for (int c = 0; c < crash_count; c++) {
		if (is_of_program(crashes, crash_count, c))
			continue;
		for (int i = 0; i < node_count; i++)
			if (strcmp(nodes[i].node, crashes[c].node) == 0)
				nodes[i].weight += exp2(-crashes[c].age_s / WLBD_CRASH_HALF_LIFE_S);
	}
	for (int i = 0; i < node_count; i++)
		total += nodes[i].weight;
	return total;
}

void wlbd_crashes_suspect(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes, int node_count)
{
	double total = weigh(crashes, crash_count, nodes, node_count);
	int most = node_count >= 8 ? node_count / 4 : 1;
	if (node_count < 2)
		return;
	for (int found = 0; found < most; found++) {
		struct wlbd_suspect *worst = NULL;
		for (int i = 0; i < node_count; i++)
			if (!nodes[i].suspected && (worst == NULL || nodes[i].weight > worst->weight))
				worst = &nodes[i];
		double others = (total - worst->weight) / (node_count - 1);
		if (worst->weight < least_weight || worst->weight <= times_the_others * others)
			return;
		worst->suspected = true;
	}
}
