/* Slurm's switches and the nodes under them, read from topology.conf or from what slurmctld lists; no I/O. */
#ifndef COORDINATOR_SLURM_TOPOLOGY_TEXT_H
#define COORDINATOR_SLURM_TOPOLOGY_TEXT_H

#include "libwlb/wlb.h"

/* Nodes are numbered in the order in which the lines name them. Starts zeroed; free it in any case. */
struct wlb_topology_file {
	struct wlb_topology topology; /* points into the arrays below */
	struct wlb_switch *switches;
	char **names; /* of the switches, as topology has them */
	char **nodes; /* names */
	int32_t node_count;
};

/* Parses the text of a topology.conf, which is changed: lines "SwitchName=s1 Nodes=n[1-16]" and "SwitchName=s0
 * Switches=s[1-4]". LinkSpeed is ignored, keys may be of any case, '#' begins a comment, a backslash at the end of a
 * line continues it. Each switch and each node must appear once, and each switch that is named must have a line.
 * Returns -1 with the line, the value and the rule. */
int wlb_topology_file_parse(char *text, struct wlb_topology_file *file, struct wlb_error *error);

/* Parses what slurmctld lists, as `scontrol show topology` prints it: a line that has switches also lists all nodes
 * below these switches, which are ignored. Blocks of topology/block ("BlockName=b1 BlockIndex=0 Nodes=n[1-18]") are
 * switches. */
int wlb_topology_listing_parse(char *text, struct wlb_topology_file *file, struct wlb_error *error);

/* Expands "n[1-3,5]" into names, which the caller frees with wlb_strings_free(); brackets must be closed. */
int wlb_topology_names(const char *list, char ***names, int *count, struct wlb_error *error);

/* Keeps the first `nodes` nodes and removes the others from their switches. */
void wlb_topology_file_keep_first(struct wlb_topology_file *file, int32_t nodes);

void wlb_topology_file_free(struct wlb_topology_file *file);

#endif
