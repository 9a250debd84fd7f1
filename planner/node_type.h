/* Finds the type of a node: nodes of equal types are measured and planned with as one machine. */
#ifndef PLANNER_NODE_TYPE_H
#define PLANNER_NODE_TYPE_H

#include <stddef.h>
#include <stdio.h>

/* Writes the processor of a node and how many of them it has online, from its /proc/cpuinfo (NULL allowed): "AMD EPYC
 * 7763 64-Core Processor x 128"; without a name, as on ARM, "CPU 0x41 part 0xd4f x 128", and without that either
 * WLB_NODE_TYPE_UNKNOWN and the number. A name is cut after 47 bytes, and characters other than printable ASCII become
 * spaces. */
#define WLB_NODE_TYPE_UNKNOWN "processor x "
void wlb_node_type_of_cpu(FILE *cpuinfo, int processors, char *type, size_t size);

/* Writes the type of the GPUs that the user asked Slurm for, such as "h100" of --gpus-per-node=h100:8, from the
 * environment of the job. Returns 0 where it names none, or several, of which a rank may have any. */
int wlb_gpu_type(char *type, size_t size);

/* The type of this node, by which calibrations are kept: with `gpus`, "gpu:" and the type of the GPUs, or "gpu" where
 * the job does not name it; else the processor, as above. */
void wlb_node_type(int gpus, char *type, size_t size);

/* Bytes of memory that this node has, or the control groups of this process allow. */
double wlb_node_memory_bytes(void);

/* The same, or what Slurm gave the job on this node where that is less: --mem or --mem-per-cpu, which Slurm may enforce
 * otherwise than by control groups. */
double wlb_job_memory_bytes(void);

#endif
