/* What the control groups (cgroups) of this process say, of version 1 and 2. */
#ifndef COMMON_CGROUP_H
#define COMMON_CGROUP_H

/* Seconds for which the CPU quotas of this process's cgroups have stopped their processes so far. */
double wlb_cgroup_throttled_s(void);

/* Bytes that the cgroups of this process may still take, with the bytes of files in the page cache, which the kernel
 * drops when memory is needed; INFINITY without a limit. */
double wlb_cgroup_free_bytes(void);

/* The least limit of memory of this process's cgroups and the cgroups above them, in bytes; INFINITY without a limit.
 */
double wlb_cgroup_limit_bytes(void);

#endif
