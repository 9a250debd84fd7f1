/* Slurm's topology, as slurmctld has it, and the order of nodes in it. */
#ifndef COORDINATOR_SLURM_TOPOLOGY_H
#define COORDINATOR_SLURM_TOPOLOGY_H

#include "coordinator/slurm/topology_text.h"
#include "libwlb/wlb.h"

/* Asks slurmctld; blocks as all of slurm_api.h. The result is empty where Slurm has no switches (TopologyPlugin is
 * neither tree nor block); free it with wlb_topology_file_free. Returns -1 with the reason, and an empty result, where
 * slurmctld does not answer or lists a node or switch twice. */
int wlb_slurm_topology(struct wlb_topology_file *topology, struct wlb_error *error);

#endif
