/* Replaces the CPU device of wlb-worker by a timed one, with the environment variables of device.h. */
#include <stdlib.h>

#include "planner/machine.h"
#include "tests/timed/clock.h"
#include "tests/timed/device.h"

struct wlb_device *__real_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);
struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error);

/* Reads numbers with commas between them. Returns -1 where the text is something else, or too long. */
static int read_seeds(const char *text, struct wlb_timed_settings *settings)
{
	while (*text != '\0' && settings->seed_count < WLB_TIMED_SEEDS) {
		char *end;
		settings->seeds[settings->seed_count++] = strtoull(text, &end, 10);
		if (end == text || (*end != '\0' && *end != ','))
			return -1;
		text = *end == ',' ? end + 1 : end;
	}
	return *text == '\0' ? 0 : -1;
}

static int read_settings(struct wlb_timed_settings *settings, struct wlb_error *error)
{
	const char *file = getenv("WLB_TIMED_MACHINE"), *scale = getenv("WLB_TIMED_SCALE"),
		   *seeds = getenv("WLB_TIMED_SEEDS"), *start = getenv("WLB_TIMED_START"),
		   *skip = getenv("WLB_TIMED_SKIP");
	*settings = (struct wlb_timed_settings){.scale = scale != NULL ? strtod(scale, NULL) : 1.0,
	                                        .start_s = start != NULL ? strtod(start, NULL) : 0.0,
	                                        .skipped_steps = skip != NULL ? strtoll(skip, NULL, 10) : 0,
	                                        .factor_file = getenv("WLB_TIMED_FACTOR")};
	if (file == NULL || !(settings->scale > 0.0))
		return wlb_fail(error, "WLB_TIMED_MACHINE must name a machine file, WLB_TIMED_SCALE a number above 0");
	if (seeds != NULL && read_seeds(seeds, settings) < 0)
		return wlb_fail(error,
		                "WLB_TIMED_SEEDS is '%.60s': it must be numbers, at most %d, with commas between them",
		                seeds, WLB_TIMED_SEEDS);
	return wlb_machine_file_read(file, &settings->machine, error);
}

/* The linker's --wrap calls it in place of wlb_device_open_cpu. */
struct wlb_device *__wrap_wlb_device_open_cpu(enum wlb_dtype dtype, int threads, struct wlb_error *error)
{
	struct wlb_timed_settings settings;
	struct wlb_device *device = NULL;
	if (read_settings(&settings, error) == 0 &&
	    (device = __real_wlb_device_open_cpu(dtype, threads, error)) != NULL &&
	    wlb_timed_device_replace(device, &settings, error) < 0) {
		wlb_device_close(device);
		device = NULL;
	}
	return device;
}

int __wrap_wlb_queue_depth(const struct wlb_device *device);
/* As of a GPU, where the host does not wait for operations. */
int __wrap_wlb_queue_depth(const struct wlb_device *device)
{
	return wlb_timed_clock_of(device)->is_queued;
}
