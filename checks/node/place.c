#include "checks/node/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/node/bounds.h"

static int read_mask(cpu_set_t *mask, struct wlb_error *error)
{
	if (sched_getaffinity(0, sizeof(*mask), mask) == 0)
		return 0;
	return wlb_fail(error, "CPUs that this process may use: %s; %d CPUs at most can be checked", strerror(errno),
	                CPU_SETSIZE);
}

int wlb_cpu_count(struct wlb_error *error)
{
	cpu_set_t mask;
	return read_mask(&mask, error) < 0 ? -1 : CPU_COUNT(&mask);
}

static int allocate(struct wlb_places *places, int most, struct wlb_error *error)
{
	*places = (struct wlb_places){.list = calloc((size_t)most, sizeof(*places->list))};
	return places->list != NULL ? 0 : wlb_fail(error, "out of memory for %d devices", most);
}

static void add_cpu(struct wlb_check_place *place, int cpu, int *first)
{
	if (place->cpus++ == 0)
		*first = cpu;
	CPU_SET(cpu, &place->mask);
	if (place->cpus == 1)
		snprintf(place->name, sizeof(place->name), "cpu %d", cpu);
	else
		snprintf(place->name, sizeof(place->name), "cpus %d-%d", *first, cpu);
}

int wlb_places_of_cpus(int threads, struct wlb_places *places, struct wlb_error *error)
{
	cpu_set_t mask;
	int first = 0;
	*places = (struct wlb_places){0};
	if (read_mask(&mask, error) < 0 || allocate(places, CPU_COUNT(&mask), error) < 0)
		return -1;
	places->open_s = WLB_CHECK_OPEN_CPU_S;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &mask))
			continue;
		if (places->count == 0 || places->list[places->count - 1].cpus == threads)
			places->list[places->count++].gpu = -1;
		add_cpu(&places->list[places->count - 1], cpu, &first);
	}
	if (places->count > 1 && places->list[places->count - 1].cpus < threads)
		places->count--;
	return 0;
}

int wlb_places_of_gpus(int count, double open_s, struct wlb_places *places, struct wlb_error *error)
{
	if (allocate(places, count, error) < 0)
		return -1;
	places->count = count;
	places->open_s = open_s;
	for (int gpu = 0; gpu < count; gpu++) {
		places->list[gpu].gpu = gpu;
		snprintf(places->list[gpu].name, sizeof(places->list[gpu].name), "gpu %d", gpu);
	}
	return 0;
}

void wlb_places_free(struct wlb_places *places)
{
	free(places->list);
	*places = (struct wlb_places){0};
}

enum wlb_dtype wlb_main_dtype(enum wlb_dtype compute)
{
	return compute == WLB_BFLOAT16 ? WLB_FLOAT32 : compute;
}

struct wlb_device *wlb_place_open(const struct wlb_check_place *place, enum wlb_dtype dtype, struct wlb_error *error)
{
	if (place->gpu >= 0)
		return wlb_device_open_cuda(place->gpu, dtype, wlb_main_dtype(dtype), error);
	if (sched_setaffinity(0, sizeof(place->mask), &place->mask) == 0)
		return wlb_device_open_cpu(dtype, place->cpus, error);
	wlb_fail(error, "%s: cannot be bound: %s", place->name, strerror(errno));
	return NULL;
}

int wlb_place_end(const struct wlb_check_place *place, int rc)
{
	struct wlb_error none;
	if (rc >= 0 || place->gpu < 0)
		return rc;
	if (wlb_cuda_is_in_use(place->gpu))
		return 1;
	return wlb_cuda_check_kernels(place->gpu, &none) < 0 ? 2 : rc;
}
