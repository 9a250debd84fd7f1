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

/* Returns the object of a kernel, which another one may name; NULL if there is none. The order of the fields says
 * nothing: a database that keeps the file may change it. */
static json_t *speed_of(json_t *object, json_t *value)
{
	json_t *speed = json_is_string(value) ? json_object_get(object, json_string_value(value)) : value;
	return json_is_object(speed) ? speed : NULL;
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
		json_t *speed = speed_of(object, value);
		if (speed == NULL)
			return wlb_fail(
				error,
				"attention_kernels: %s: it must be an object, or name another kernel that is one",
				name);
		if (read_one(speed, &kernel, error) < 0)
			return wlb_fail_in(error, "attention_kernels: %s", name);
		strcpy(kernel.name, name);
		machine->kernels[machine->kernel_count++] = kernel;
	}
	return 0;
}
