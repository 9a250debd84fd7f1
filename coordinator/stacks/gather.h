/*
 * The stacks of a rank: of all threads of its process and of those that it started.
 *
 * A thread in uninterruptible sleep (D) is not stopped: its state and the kernel's function are reported instead. A
 * thread that falls asleep so between the look and the stop is released when it wakes, or when wlb-stacks ends.
 */
#ifndef COORDINATOR_STACKS_GATHER_H
#define COORDINATOR_STACKS_GATHER_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/stacks/frame_names.h"
#include "coordinator/stacks/process_list.h"

enum { WLB_STACKS_RANKS_MAX = 64 };

/* Returns what wlb-stacks(1) describes; the caller releases it. No thread is begun after until_ms of wlb_clock_ms();
 * those left are counted in "left_out". NULL if out of memory. */
json_t *wlb_stacks_gather(const struct wlb_process_list *all, pid_t pid, struct wlb_frame_names *names,
                          int64_t until_ms);

#endif
