#include "coordinator/wlbd/detection/rank_processes.h"

#include <stdlib.h>

static int ranks_of(const struct wlbd_node_processes *processes)
{
	int ranks = processes != NULL ? processes->count : 0;
	for (int i = 0; processes != NULL && i < processes->span_count; i++)
		ranks += processes->spans[i].count;
	return ranks;
}

static int ranks_max(const struct wlbd_processes_node *list, int count)
{
	int most = 0;
	for (int i = 0; i < count; i++)
		most = ranks_of(list[i].processes) > most ? ranks_of(list[i].processes) : most;
	int64_t all = (int64_t)most * count;
	return all < WLBD_ACTIVITY_RANKS_MAX ? (int)all : WLBD_ACTIVITY_RANKS_MAX;
}

static void set(struct wlbd_rank_processes *processes, int max, int rank, struct wlbd_rank_process process)
{
	if (rank >= max)
		return;
	processes->list[rank] = process;
	processes->count = rank >= processes->count ? rank + 1 : processes->count;
}

static void fill_node(struct wlbd_rank_processes *processes, int max, const struct wlbd_processes_node *node)
{
	struct wlbd_rank_process process = {node->name, node->reported_ms, WLBD_PROCESS_RUNNING};
	const struct wlbd_node_processes *of = node->processes;
	for (int i = 0; i < of->span_count; i++)
		for (int k = 0; k < of->spans[i].count; k++)
			set(processes, max, of->spans[i].first + k, process);
	for (int i = 0; i < of->count; i++) {
		process.state = of->list[i].fault == WLBD_PROCESS_IS_STOPPED ? WLBD_PROCESS_STOPPED : WLBD_PROCESS_GONE;
		if (of->list[i].fault != WLBD_LAUNCHER_WAITS)
			set(processes, max, of->list[i].rank, process);
	}
}

void wlbd_rank_processes_fill(struct wlbd_rank_processes *processes, const struct wlbd_processes_node *list, int count)
{
	int max = ranks_max(list, count);
	*processes = (struct wlbd_rank_processes){.list = calloc((size_t)max + 1, sizeof(*processes->list))};
	for (int i = 0; i < count && processes->list != NULL; i++)
		if (list[i].processes != NULL)
			fill_node(processes, max, &list[i]);
}

void wlbd_rank_processes_free(struct wlbd_rank_processes *processes)
{
	free(processes->list);
	*processes = (struct wlbd_rank_processes){0};
}

const struct wlbd_rank_process *wlbd_rank_processes_of(const struct wlbd_rank_processes *processes, int rank)
{
	if (processes == NULL || rank >= processes->count || processes->list[rank].node == NULL)
		return NULL;
	return &processes->list[rank];
}
