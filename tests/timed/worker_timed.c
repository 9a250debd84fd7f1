/* Replaces the CPU device of wlb-worker by a timed one, with the environment variables of device.h. */
#include <stdlib.h>

#include "planner/machine.h"
#include "tests/timed/device.h"

struct wlb_device *__real_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);
struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);

static int read_settings(struct wlb_machine *machine, double *scale, uint64_t *seed, struct wlb_error *error)
{
	const char *file = getenv("WLB_TIMED_MACHINE"), *scaled = getenv("WLB_TIMED_SCALE"),
		   *seeded = getenv("WLB_TIMED_SEED");
	*scale = scaled != NULL ? strtod(scaled, NULL) : 1.0;
	*seed = seeded != NULL ? strtoull(seeded, NULL, 10) : 0;
	if (file == NULL || !(*scale > 0.0))
		return wlb_fail(error, "WLB_TIMED_MACHINE must name a machine file, WLB_TIMED_SCALE a number above 0");
	return wlb_machine_file_read(file, machine, error);
}

/* The linker's --wrap calls it in place of wlb_device_open_cpu. */
struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error)
{
	struct wlb_machine machine;
	double scale;
	uint64_t seed;
	struct wlb_device *device = NULL;
	if (read_settings(&machine, &scale, &seed, error) == 0 &&
	    (device = __real_wlb_device_open_cpu(dtype, threads, error)) != NULL &&
	    wlb_timed_device_replace(device, &machine, scale, seed, error) < 0) {
		wlb_device_close(device);
		device = NULL;
	}
	return device;
}
