#include "coordinator/wlb/run/attempt/host_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/node_order.h"
#include "coordinator/slurm/slurm_api.h"

struct named {
	const char *name;
	int number;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Writes into order[] the number of each node among `sorted`, which has the same names. Returns whether the orders
 * differ; -1 with the reason where a name is missing or there twice. */
static int find_order(char *const *nodes, char *const *sorted, int count, int *order, struct wlb_error *error)
{
	struct named *index = calloc((size_t)count + 1, sizeof(*index));
	int differs = 0;
	if (index == NULL)
		return wlb_fail(error, "out of memory for the order of %d nodes", count);
	for (int i = 0; i < count; i++)
		index[i] = (struct named){sorted[i], i};
	qsort(index, (size_t)count, sizeof(*index), by_name);
	for (int i = 0; i < count && differs >= 0; i++) {
		const struct named key = {.name = nodes[i]};
		const struct named *found = bsearch(&key, index, (size_t)count, sizeof(key), by_name);
		if (found == NULL)
			differs = wlb_fail(error, "node %s is none of those that Slurm's order has", nodes[i]);
		else
			order[i] = found->number;
		differs = differs < 0 ? -1 : differs || order[i] != i;
	}
	free(index);
	return differs;
}

/* Writes the node of each rank. */
static int write_hosts(const struct wlb_attempt *attempt, int fd)
{
	FILE *file = fdopen(dup(fd), "w");
	if (file == NULL)
		return -1;
	for (int i = 0; i < attempt->node_count; i++)
		for (int rank = 0; rank < wlb_attempt_tasks_on(attempt, i); rank++)
			fprintf(file, "%s\n", attempt->nodes[i]);
	return fclose(file);
}

int wlb_run_host_list(const struct wlb_attempt *attempt, struct wlb_host_list *hosts, struct wlb_error *error)
{
	char **sorted;
	int count, differs = -1;
	*hosts = (struct wlb_host_list){.fd = -1};
	if (wlb_hostlist_sort(attempt->nodes, attempt->node_count, &sorted, &count, error) < 0)
		return -1;
	int *order = calloc((size_t)attempt->node_count + 1, sizeof(*order));
	if (order == NULL)
		wlb_fail(error, "out of memory for the order of %d nodes", attempt->node_count);
	else if (count != attempt->node_count)
		wlb_fail(error, "%d nodes, but Slurm's list has %d names: each node must be named once",
		         attempt->node_count, count);
	else
		differs = find_order(attempt->nodes, sorted, count, order, error);
	if (differs > 0 || (differs == 0 && attempt->fewer_on_last > 0)) {
		hosts->order = wlb_node_order_format(order, count);
		hosts->fd = memfd_create("nodes of ranks", 0);
		if (hosts->order == NULL || hosts->fd < 0 || write_hosts(attempt, hosts->fd) != 0)
			differs = wlb_fail(error, "the nodes of %d ranks cannot be listed for srun: %s",
			                   wlb_attempt_tasks(attempt), strerror(errno));
	}
	free(order);
	wlb_strings_free(sorted, count);
	return differs < 0 ? -1 : 0;
}

void wlb_run_host_list_free(struct wlb_host_list *hosts)
{
	if (hosts->fd >= 0)
		close(hosts->fd);
	free(hosts->order);
	*hosts = (struct wlb_host_list){.fd = -1};
}
