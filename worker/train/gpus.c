#include "worker/train/gpus.h"

#include <stdio.h>

#include "common/json_text.h"

/* CUDA's numbers of versions: 13010 is 13.1. */
static json_t *version_json(int version)
{
	return json_sprintf("%d.%d", version / 1000, version % 1000 / 10);
}

json_t *wlb_gpu_json(const struct wlb_gpu *gpu)
{
	return json_pack("{s:o, s:I, s:o, s:o, s:o}", "model", wlb_json_text(gpu->model), "memory_bytes",
	                 (json_int_t)gpu->memory_bytes, "driver", wlb_json_text(gpu->driver), "driver_cuda",
	                 version_json(gpu->driver_cuda), "cuda", version_json(gpu->cuda));
}

struct request {
	bool json;
};

static void print_gpu(int number, const struct wlb_gpu *gpu)
{
	printf("cuda:%d  %s  %.1f GB  %s  driver %s for CUDA %d.%d, wlb-worker of CUDA %d.%d\n", number, gpu->model,
	       1e-9 * (double)gpu->memory_bytes, gpu->address, gpu->driver[0] != '\0' ? gpu->driver : "unknown",
	       gpu->driver_cuda / 1000, gpu->driver_cuda % 1000 / 10, gpu->cuda / 1000, gpu->cuda % 1000 / 10);
}

/* Prints the GPUs, or adds them to `list` where it is not NULL. Returns -1 with the reason where one cannot be used. */
static int list_gpus(json_t *list, struct wlb_error *error)
{
	struct wlb_gpu gpu;
	int count = wlb_cuda_device_count();
	if (count == 0) /* for the reason */
		return wlb_cuda_describe(0, &gpu, error);
	for (int i = 0; i < count; i++) {
		if (wlb_cuda_describe(i, &gpu, error) < 0 || wlb_cuda_check_kernels(i, error) < 0)
			return -1;
		if (list != NULL)
			json_array_append_new(list, wlb_gpu_json(&gpu));
		else
			print_gpu(i, &gpu);
	}
	return 0;
}

static int run(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_error reason = {0};
	if (!request->json)
		return list_gpus(NULL, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	json_t *list = json_array();
	int rc = list_gpus(list, &reason);
	json_t *found = json_pack("{s:o, s:s}", "gpus", list, "reason", rc < 0 ? reason.message : "");
	rc = found != NULL ? json_dumpf(found, stdout, JSON_COMPACT) : -1;
	json_decref(found);
	if (rc != 0) {
		wlb_fail(error, "out of memory for the list of GPUs");
		return WLB_EXIT_FAILED;
	}
	putchar('\n');
	return WLB_EXIT_DONE;
}

static const struct wlb_option options[] = {
	{WLB_OPTION(FLAG, "json", offsetof(struct request, json), NULL,
                    "one JSON object; without a GPU its list is empty, and it has the reason")},
};

static const struct wlb_option_table table = {
	.command = "wlb-worker gpus",
	.about = "Lists the GPUs that this program can compute on, as they and their driver describe themselves.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_worker_gpus = {
	.name = "gpus",
	.summary = "List the GPUs that a rank on this node can have",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = run,
};
