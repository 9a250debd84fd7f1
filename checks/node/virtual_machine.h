/* Whether the node is a virtual machine, whose memory bandwidth other guests of its host use as well. */
#ifndef CHECKS_NODE_VIRTUAL_MACHINE_H
#define CHECKS_NODE_VIRTUAL_MACHINE_H

#include <stdbool.h>

/* Reads the flags of the first processor of `cpuinfo`, which is /proc/cpuinfo but in tests: on x86 a hypervisor sets
 * the flag of that name. Returns false on other processors, and where the file cannot be read. */
bool wlb_is_virtual_machine(const char *cpuinfo);

#endif
