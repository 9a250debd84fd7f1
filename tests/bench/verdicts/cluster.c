#include "tests/bench/verdicts/cluster.h"

#include <stdio.h>
#include <stdlib.h>

/* Those of a number of ranks one after the other. In two of 8 ranks a stage has one or two ranks, and so few peers. */
static const struct wlb_verdict_layout layouts[] = {
	{1, 1, 1, 8, 4},  {2, 1, 2, 2, 4},   {1, 2, 2, 2, 2},   {1, 1, 4, 2, 4},    {1, 1, 8, 1, 4},
	{2, 2, 2, 2, 4},  {1, 1, 4, 4, 4},   {1, 1, 1, 64, 8},  {8, 1, 1, 8, 8},    {2, 2, 4, 4, 8},
	{4, 2, 2, 4, 8},  {8, 2, 4, 4, 8},   {1, 1, 1, 256, 8}, {8, 2, 8, 8, 8},    {4, 1, 4, 64, 8},
	{8, 2, 8, 32, 8}, {8, 1, 16, 32, 8}, {8, 2, 16, 64, 8}, {8, 1, 16, 128, 8},
};

const struct wlb_verdict_layout *cluster_layouts(int32_t ranks, int32_t *count)
{
	const struct wlb_verdict_layout *first = NULL;
	*count = 0;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct wlb_verdict_layout *l = &layouts[i];
		if (l->tp * l->cp * l->pp * l->dp != ranks)
			continue;
		first = first == NULL ? l : first;
		++*count;
	}
	return first;
}

void *must_allocate(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (memory == NULL) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

static void place_group(struct cluster *cluster, int32_t g)
{
	static const enum cluster_slot slots[] = {[WLB_VERDICT_TP] = SLOT_TP,
	                                          [WLB_VERDICT_CP] = SLOT_CP,
	                                          [WLB_VERDICT_DP] = SLOT_DP,
	                                          [WLB_VERDICT_WORLD] = SLOT_WORLD};
	const struct wlb_verdict_group *group = &cluster->world->groups[g];
	for (int32_t m = 0; m < group->count; m++) {
		int32_t rank = group->members[m];
		cluster->crosses[g] |= cluster->world->node_of[rank] != cluster->world->node_of[group->members[0]];
		if (group->kind != WLB_VERDICT_PP) {
			cluster->group[rank][slots[group->kind]] = g;
			continue;
		}
		int forward = group->members[0] < group->members[1];
		if (m == 0)
			cluster->group[rank][forward ? SLOT_FORWARD_OUT : SLOT_BACKWARD_OUT] = g;
		else
			cluster->group[rank][forward ? SLOT_FORWARD_IN : SLOT_BACKWARD_IN] = g;
	}
}

static void list_transfers(struct cluster *cluster)
{
	static const double slot_bytes[SLOTS] = {[SLOT_TP] = 4e9,          [SLOT_CP] = 1e9, [SLOT_FORWARD_IN] = 2e8,
	                                         [SLOT_BACKWARD_IN] = 2e8, [SLOT_DP] = 2e9, [SLOT_WORLD] = 0.0};
	int32_t count = 0;
	for (int32_t r = 0; r < cluster->world->ranks; r++) {
		for (int s = 0; s < SLOTS; s++)
			if (cluster->group[r][s] >= 0 && slot_bytes[s] > 0.0)
				cluster->transfer[count++] = (struct wlb_verdict_transfer){
					.group = cluster->group[r][s], .calls = 8, .bytes = slot_bytes[s]};
		cluster->first_transfer[r + 1] = count;
	}
}

struct cluster cluster_new(const struct wlb_verdict_layout *layout)
{
	struct wlb_verdict_error error;
	struct cluster cluster = {.layout = *layout, .world = wlb_verdict_world_of_layout(layout, &error)};
	if (cluster.world == NULL) {
		fprintf(stderr, "wlb-verdicts-bench: %s\n", error.message);
		exit(1);
	}
	cluster.world->micro_batches = CLUSTER_MICRO_BATCHES * layout->pp;
	size_t ranks = (size_t)cluster.world->ranks;
	cluster.group = must_allocate(ranks, sizeof(*cluster.group));
	cluster.stage = must_allocate(ranks, sizeof(*cluster.stage));
	cluster.replica = must_allocate(ranks, sizeof(*cluster.replica));
	cluster.transfer = must_allocate(ranks * SLOTS, sizeof(*cluster.transfer));
	cluster.first_transfer = must_allocate(ranks, sizeof(*cluster.first_transfer));
	cluster.crosses = must_allocate((size_t)cluster.world->group_count, 1);
	for (int32_t r = 0; r < cluster.world->ranks; r++) {
		cluster.stage[r] = r / (layout->tp * layout->cp) % layout->pp;
		cluster.replica[r] = r / (layout->tp * layout->cp * layout->pp);
		for (int s = 0; s < SLOTS; s++)
			cluster.group[r][s] = -1;
	}
	for (int32_t g = 0; g < cluster.world->group_count; g++)
		place_group(&cluster, g);
	list_transfers(&cluster);
	return cluster;
}

void cluster_free(struct cluster *cluster)
{
	wlb_verdict_world_free(cluster->world);
	free(cluster->group);
	free(cluster->crosses);
	free(cluster->stage);
	free(cluster->replica);
	free(cluster->transfer);
	free(cluster->first_transfer);
}

int cluster_nic_is_known(const struct cluster *cluster, int32_t node)
{
	int32_t other = -1;
	for (int32_t r = node * cluster->layout.ranks_per_node; r < (node + 1) * cluster->layout.ranks_per_node; r++)
		for (int s = SLOT_FORWARD_IN; s <= SLOT_DP; s++) {
			int32_t g = cluster->group[r][s];
			if (g < 0 || !cluster->crosses[g])
				continue;
			if (s == SLOT_DP)
				return 1;
			const int32_t *members = cluster->world->groups[g].members;
			int32_t peer = cluster->world->node_of[members[0] == r ? members[1] : members[0]];
			if (other >= 0 && peer != other)
				return 1;
			other = peer;
		}
	return 0;
}
