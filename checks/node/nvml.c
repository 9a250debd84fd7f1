#include "checks/node/nvml.h"

#include "kernels/library.h"

int wlb_nvml_load(struct wlb_nvml *nvml, struct wlb_error *error)
{
	static const struct wlb_library library = {
		.title = "NVML",
		.file = "libnvidia-ml.so.1",
		.folder = "/usr/lib64",
		.install = "the library of NVIDIA's driver",
		.instead = "go without this check",
	};
#define NAME(result, name, arguments) #name,
	static const char *const names[] = {WLB_NVML_FUNCTIONS(NAME)};
#undef NAME
	static const char *const fabric = "nvmlDeviceGetGpuFabricInfoV";
	struct wlb_error absent;
	if (wlb_library_load(&library, names, sizeof(names) / sizeof(names[0]), nvml, error) < 0)
		return -1;
	if (wlb_library_load(&library, &fabric, 1, &nvml->nvmlDeviceGetGpuFabricInfoV, &absent) < 0)
		nvml->nvmlDeviceGetGpuFabricInfoV = NULL;
	return 0;
}
