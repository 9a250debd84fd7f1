/* What else uses the CPUs and the memory of a node. */
#ifndef CHECKS_NODE_NODE_LOAD_H
#define CHECKS_NODE_NODE_LOAD_H

#include <sched.h>

/* Seconds of processor time so far that a hypervisor gave to others while these CPUs had work; 0 where the kernel does
 * not count it. */
double wlb_stolen_s(const cpu_set_t *cpus);

/* Bytes of memory that this process may take without swapping: of the node, and of its cgroups. */
double wlb_free_memory_bytes(void);

#endif
