/*
 * The variables by which PyTorch and its launchers find the other ranks: RANK and so on as torchrun sets them, and
 * PET_..., which torchrun and ft_launcher take for options that they were not given. A function of facts, no I/O.
 */
#ifndef SPANK_TASK_VARIABLES_H
#define SPANK_TASK_VARIABLES_H

#include <stdbool.h>

enum { WLB_TASK_VARIABLES_MAX = 14, WLB_TASK_VALUE_BYTES = 4096 };

/* A task of an attempt. What `wlb run` has set is "" where it has set nothing. */
struct wlb_task_facts {
	int rank, world_size;
	int local_rank, local_world_size;
	int nodes;
	const char *address, *port; /* where the ranks meet */
	const char *rendezvous;     /* its id; "": the options of a launcher stay as the user has set them */
	const char *error_files;    /* what begins the path of each task's error file */
	bool has_own_server;        /* the user has named a rendezvous server: PET_RDZV_BACKEND is etcd, say */
	const char *metrics_files;  /* what begins the path of each node's file of metrics */
	int node;                   /* its number in the step */
};

struct wlb_task_variable {
	const char *name;
	char value[WLB_TASK_VALUE_BYTES];
	bool is_kept; /* where the user has set it */
};

/* Returns how many there are. Those of launchers are there only where a node has one task, which starts the node's
 * ranks. */
int wlb_task_variables(const struct wlb_task_facts *facts, struct wlb_task_variable *variables);

#endif
