/* The parts of a node that are checked by themselves: CPUs, groups of them, GPUs. */
#ifndef CHECKS_NODE_PLACE_H
#define CHECKS_NODE_PLACE_H

#include <sched.h>

#include "kernels/ops.h"

struct wlb_check_place {
	int gpu;        /* its number among those that the process sees; -1: CPUs */
	int cpus;       /* how many; 0 for a GPU */
	cpu_set_t mask; /* of them */
	char name[32];  /* "cpu 3", "cpus 0-7", "gpu 1" */
};

struct wlb_places {
	int count;
	double open_s; /* that a device may take to be opened */
	struct wlb_check_place *list;
};

/* Returns how many CPUs this process may use, by its affinity mask; -1 with the reason where the kernel does not say.
 */
int wlb_cpu_count(struct wlb_error *error);

/* Sets the places of the CPUs that this process may use, `threads` to each in their order. What is left over is
 * in none, unless there are fewer CPUs than threads. Returns -1 with the reason; wlb_places_free frees them. */
int wlb_places_of_cpus(int threads, struct wlb_places *places, struct wlb_error *error);
/* The same for GPUs 0 to count - 1, each of which may take open_s to be opened. */
int wlb_places_of_gpus(int count, double open_s, struct wlb_places *places, struct wlb_error *error);
void wlb_places_free(struct wlb_places *places);

/* Binds the calling process to the place and opens its device. Returns NULL with the reason. */
struct wlb_device *wlb_place_open(const struct wlb_check_place *place, enum wlb_dtype dtype, struct wlb_error *error);

/* Returns what the work of a child on the place returns (children.h), whose rc is -1 where it failed: 1 in place of -1
 * where the reason is that other processes use the GPU, 2 where this program has no kernels for it. */
int wlb_place_end(const struct wlb_check_place *place, int rc);

/* The element type of sums over many values, as training has it. */
enum wlb_dtype wlb_main_dtype(enum wlb_dtype compute);

#endif
