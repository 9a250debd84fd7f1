/* The type of a node: nodes of equal types are measured as one machine. */
#ifndef WORKER_CALIBRATE_NODE_TYPE_H
#define WORKER_CALIBRATE_NODE_TYPE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the processor of a node and how many of them it has online, from its /proc/cpuinfo (NULL allowed): "AMD EPYC
 * 7763 64-Core Processor x 128"; without a name "processor x 128". A name is cut after 47 bytes, and characters other
 * than printable ASCII become spaces. */
void wlb_node_type_of_cpu(FILE *cpuinfo, int processors, char *type, size_t size);

/* The same for this node. */
void wlb_node_type(char *type, size_t size);

/* Bytes of memory that this node has, or its control group allows. */
double wlb_node_memory_bytes(void);

#endif
