#include "spank/step_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/node_order.h"

/* The value of a variable; NULL when it is not set. */
static const char *find(char *const *entries, const char *name)
{
	size_t length = strlen(name);
	for (; *entries != NULL; entries++)
		if (strncmp(*entries, name, length) == 0 && (*entries)[length] == '=')
			return *entries + length + 1;
	return NULL;
}

/* A number from 1 to 999999; 0 otherwise. */
static int find_ways(char *const *entries, const char *name)
{
	char *end;
	const char *text = find(entries, name);
	if (text == NULL)
		text = find(entries, name + strlen("SLURM_"));
	long ways = text != NULL ? strtol(text, &end, 10) : 0;
	return ways >= 1 && ways <= 999999 && *end == '\0' ? (int)ways : 0;
}

bool wlb_step_layout(char *const *entries, int tasks, struct wlb_layout *layout)
{
	*layout = (struct wlb_layout){
		.tp = find_ways(entries, "SLURM_WLB_TP"),
		.cp = find_ways(entries, "SLURM_WLB_CP"),
		.pp = find_ways(entries, "SLURM_WLB_PP"),
		.dp = find_ways(entries, "SLURM_WLB_DP"),
	};
	return tasks > 0 && (double)layout->tp * layout->cp * layout->pp * layout->dp == (double)tasks;
}

/* Reads "4" or "4(x2)" at *at, which moves past it; false if it is neither. */
static bool read_group(const char **at, long *tasks, long *repeats)
{
	char *end;
	*repeats = 1;
	*tasks = strtol(*at, &end, 10);
	if (end != *at && strncmp(end, "(x", 2) == 0) {
		*repeats = strtol(end + 2, &end, 10);
		if (*end++ != ')')
			return false;
	}
	*at = end;
	return *tasks >= 1 && *repeats >= 1;
}

/* Fills in tasks_on[most]; returns the number of nodes, or -1 if the text is not in Slurm's format, or has more. */
static int read_nodes(const char *text, int *tasks_on, int most)
{
	long tasks, repeats;
	for (int count = 0;;) {
		if (!read_group(&text, &tasks, &repeats) || tasks > most || repeats > most - count)
			return -1;
		for (long i = 0; i < repeats; i++)
			tasks_on[count++] = (int)tasks;
		if (*text == '\0')
			return count;
		if (*text++ != ',')
			return -1;
	}
}

int wlb_step_nodes(char *const *entries, const char *variable, int tasks, int **tasks_on, struct wlb_error *error)
{
	const char *text = find(entries, variable);
	if (text == NULL)
		return wlb_fail(error, "Slurm does not set %s: the nodes of the tasks are unknown", variable);
	/* Each node has at least one task. */
	int *on = calloc((size_t)tasks + 1, sizeof(*on));
	if (on == NULL)
		return wlb_fail(error, "out of memory for the nodes of %d tasks", tasks);
	const struct wlb_nodes nodes = {.count = read_nodes(text, on, tasks), .ranks_on = on};
	if (nodes.count > 0 && wlb_nodes_ranks(&nodes) == tasks) {
		*tasks_on = on;
		return nodes.count;
	}
	free(on);
	return wlb_fail(error, "%s is '%.200s': it must name the %d tasks of the step, such as 4(x2),3", variable, text,
	                tasks);
}

int *wlb_step_order(char *const *entries, int count)
{
	return wlb_node_order_parse(find(entries, WLB_NODE_ORDER), count);
}
