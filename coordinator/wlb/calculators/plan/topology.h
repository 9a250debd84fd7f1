/* Slurm's topology.conf (topology/tree) into struct wlb_topology. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_TOPOLOGY_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_TOPOLOGY_H

#include "libwlb/wlb.h"

/* Nodes are numbered in the order in which the lines name them. Starts zeroed; free it in any case. */
struct wlb_topology_file {
	struct wlb_topology topology; /* points into what follows */
	struct wlb_switch *switches;
	char **names; /* of the switches, as topology has them */
	char **nodes; /* names */
	int32_t node_count;
};

/* Lines "SwitchName=s1 Nodes=n[1-16]" and "SwitchName=s0 Switches=s[1-4]"; LinkSpeed is passed over, keys may be of
 * any case, '#' begins a comment, a backslash at the end goes on. -1 with the file, the line, the value and the rule:
 * each switch and each node is there once, a switch that is named has a line. */
int wlb_topology_file_read(const char *path, struct wlb_topology_file *file, struct wlb_error *error);

/* The text of such a file; it is changed. */
int wlb_topology_file_parse(char *text, struct wlb_topology_file *file, struct wlb_error *error);

/* "n[1-3,5]" as names, freed with wlb_strings_free(); brackets must be closed. */
int wlb_topology_names(const char *list, char ***names, int *count, struct wlb_error *error);

/* Takes all nodes from number `nodes` on out of their switches. */
void wlb_topology_file_keep(struct wlb_topology_file *file, int32_t nodes);

void wlb_topology_file_free(struct wlb_topology_file *file);

#endif
