#include "coordinator/wlbd/api/records/gpus_check.h"

#include "coordinator/wlbd/http/fields.h"

enum { KINDS_MAX = 16, KINDS_BYTES_MAX = 16384, KIND_TEXT_MAX = 64, NUMBER_MAX = 4095 };
#define BYTES_MAX INT64_C(1000000000000000000)

/* *gpus is reduced by those of the kind, which are no more. */
static int check_kind(const json_t *kind, int64_t *gpus, struct wlb_error *error)
{
	static const char *const texts[] = {"model", "driver", "driver_cuda", "cuda"};
	const char *text;
	int64_t count;
	if (!json_is_object(kind))
		return wlb_fail(error, "must be an object");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (wlbd_field_text(kind, texts[i], WLBD_REQUIRED, KIND_TEXT_MAX, &text, error) != 0)
			return -1;
	if (wlbd_field_integer(kind, "memory_bytes", WLBD_REQUIRED, 0, BYTES_MAX, &count, error) != 0)
		return -1;
	if (wlbd_field_integer(kind, "gpus", WLBD_REQUIRED, 1, WLBD_RANKS_MAX, &count, error) != 0)
		return -1;
	*gpus -= count;
	return *gpus >= 0 ? 0
	                  : wlb_fail(error, "field 'gpus': all kinds together must have no more than there are ranks "
	                                    "in 'devices'");
}

/* *ranks is how many there are. */
static int check_devices(const json_t *data, int64_t *ranks, struct wlb_error *error)
{
	const json_t *devices = NULL;
	if (wlbd_field_array(data, "devices", WLBD_REQUIRED, WLBD_RANKS_MAX, &devices, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *number = json_array_get(devices, i);
		json_int_t value = json_integer_value(number);
		if (!json_is_integer(number) || value < 0 || value > NUMBER_MAX)
			return wlb_fail(error, "field 'devices': number %zu must be a whole number from 0 to %d", i,
			                NUMBER_MAX);
	}
	*ranks = (int64_t)json_array_size(devices);
	return *ranks > 0 ? 0 : wlb_fail(error, "field 'devices': must have the number of each rank's GPU");
}

int wlbd_gpus_check(const json_t *data, struct wlb_error *error)
{
	const json_t *kinds = NULL;
	int64_t ranks = 0, gpus, sharing;
	if (check_devices(data, &ranks, error) != 0 ||
	    wlbd_field_array(data, "kinds", WLBD_REQUIRED, KINDS_MAX, &kinds, error) != 0 ||
	    wlbd_field_bounded(data, "kinds", KINDS_BYTES_MAX, error) != 0 ||
	    wlbd_field_integer(data, "ranks_per_gpu", WLBD_REQUIRED, 1, ranks, &sharing, error) != 0)
		return -1;
	gpus = ranks;
	for (size_t i = 0; i < json_array_size(kinds); i++)
		if (check_kind(json_array_get(kinds, i), &gpus, error) != 0)
			return wlb_fail_in(error, "kinds[%zu]", i);
	return 0;
}
