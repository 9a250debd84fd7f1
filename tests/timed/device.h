/*
 * The timed device, for tests: an operation waits for the time that it takes on a described machine instead of
 * computing. Memory, messages, schedule, packing and sharding are the real ones, so that many ranks can be timed on few
 * cores.
 *
 * wlb-worker-timed is wlb-worker with this device in place of the CPU's. Results are zeros, and losses have no meaning.
 * Where the machine file has no blocking_messages, and with --transport nccl, operations and messages are queued, and
 * messages take the time of the file's links in place of their own: queues.h.
 * Its settings are environment variables:
 *
 *   WLB_TIMED_MACHINE  a machine file, as of `wlb calibrate`
 *   WLB_TIMED_SCALE    scale (default 1)
 *   WLB_TIMED_START    start_s (default 0)
 *   WLB_TIMED_SKIP     skipped_steps (default 0)
 *   WLB_TIMED_SEEDS    seeds, as 0,0,1 (default 0)
 *   WLB_TIMED_FACTOR   factor_file
 */
#ifndef TESTS_TIMED_DEVICE_H
#define TESTS_TIMED_DEVICE_H

#include <stdint.h>

#include "kernels/ops.h"

enum { WLB_TIMED_SEEDS = 64 };

struct wlb_timed_settings {
	struct wlb_machine machine;
	double scale;   /* every operation takes this factor longer than on the machine, > 0: so large that the time of
	                   messages between processes is negligible */
	double start_s; /* of CLOCK_MONOTONIC: no operation starts before it, but of the steps that are skipped, so that
	                   runs beside each other can begin their steps when all of them have started */
	int64_t skipped_steps; /* the first ones, whose operations and queued messages take no time */
	/* Of each step of the optimizer in turn; the last is that of all further steps. Above 0: the time of each kind
	 * of operation is multiplied by a factor from 0.8 to 1.2 that is drawn from the seed; 0: as on the machine. */
	uint64_t seeds[WLB_TIMED_SEEDS];
	int seed_count; /* 0: as one seed of 0 */
	/* A file that holds a number above 0, by which every operation takes longer. It is read when a step is updated,
	 * so that a rank is made slower and faster while it runs; 1 where there is no such file. NULL: no file. */
	const char *factor_file;
};

/* Replaces the operations of an open CPU device, which afterwards is a timed one; wlb_device_close frees both. Returns
 * -1 with the reason if out of memory; the device is unchanged. */
int wlb_timed_device_replace(struct wlb_device *cpu, const struct wlb_timed_settings *settings,
                             struct wlb_error *error);

/* Of a timed device. */
struct wlb_timed_clock *wlb_timed_clock_of(const struct wlb_device *device);
const struct wlb_timed_settings *wlb_timed_settings_of(const struct wlb_device *device);

/* Returns how much longer than on the machine operations take in the step that runs. */
double wlb_timed_scale_of(const struct wlb_device *device);

#endif
