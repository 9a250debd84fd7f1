#include "planner/machine_attention.h"

#include <string.h>

static int read_one(json_t *value, struct wlb_attention_kernel *kernel, struct wlb_error *error)
{
	const char *source;
	int tile_tokens;
	if (json_unpack_ex(value, NULL, JSON_STRICT, "{s:F, s:F, s:i, s:F, s:s}", "efficiency", &kernel->efficiency,
	                   "backward_efficiency", &kernel->backward_efficiency, "tile_tokens", &tile_tokens,
	                   "overhead_keys", &kernel->overhead_keys, "source", &source) < 0)
		return wlb_fail(error,
		                "it must have efficiency, backward_efficiency, tile_tokens, overhead_keys and source, "
		                "and nothing else");
	kernel->tile_tokens = tile_tokens;
	return 0;
}

/* Takes the speed of the kernel that the text names. */
static int read_same(const char *name, const struct wlb_machine *machine, struct wlb_attention_kernel *kernel,
                     struct wlb_error *error)
{
	for (int32_t i = 0; i < machine->kernel_count; i++)
		if (strcmp(machine->kernels[i].name, name) == 0) {
			*kernel = machine->kernels[i];
			return 0;
		}
	return wlb_fail(error, "'%.60s' is no kernel above it", name);
}

int wlb_machine_attention_read(json_t *object, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	if (object != NULL && !json_is_object(object))
		return wlb_fail(error, "attention_kernels must be an object of kernels");
	json_object_foreach(object, name, value)
	{
		struct wlb_attention_kernel kernel = {0};
		if (*name == '\0' || strlen(name) >= sizeof(kernel.name))
			return wlb_fail(error, "attention_kernels: '%.60s' must be a name of 1 to %zu bytes", name,
			                sizeof(kernel.name) - 1);
		if (machine->kernel_count == WLB_ATTENTION_KERNELS)
			return wlb_fail(error, "attention_kernels: more than %d", WLB_ATTENTION_KERNELS);
		if ((json_is_string(value) ? read_same(json_string_value(value), machine, &kernel, error)
		                           : read_one(value, &kernel, error)) < 0)
			return wlb_fail_in(error, "attention_kernels: %s", name);
		strcpy(kernel.name, name);
		machine->kernels[machine->kernel_count++] = kernel;
	}
	return 0;
}
