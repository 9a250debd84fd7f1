/*
 * The timed device, for tests: an operation waits for the time that it takes on a described machine instead of
 * computing. Memory, messages, schedule, packing and sharding are the real ones, so that many ranks can be timed on few
 * cores.
 *
 * wlb-worker-timed is wlb-worker with this device in place of the CPU's. Results are zeros, and losses have no meaning.
 *
 *   WLB_TIMED_MACHINE  a machine file, as of `wlb calibrate`
 *   WLB_TIMED_SCALE    every operation takes this factor longer (default 1); the factor must be so large that the time
 * of messages between the processes is negligible WLB_TIMED_SEED     above 0: the time of each kind of operation is
 * multiplied by a factor from 0.8 to 1.2 that is drawn from the seed (default 0: as in the file)
 */
#ifndef TESTS_TIMED_DEVICE_H
#define TESTS_TIMED_DEVICE_H

#include <stdint.h>

#include "kernels/ops.h"

/* Replaces the operations of an open CPU device, which afterwards is a timed one; wlb_device_close frees both. Returns
 * -1 with the reason if out of memory; the device is unchanged. */
int wlb_timed_device_replace(struct wlb_device *cpu, const struct wlb_machine *machine, double scale, uint64_t seed,
                             struct wlb_error *error);

#endif
