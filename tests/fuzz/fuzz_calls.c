/* Any calls of a report: refused with a reason, or within all bounds and in the order of time. */
#include <string.h>

#include "coordinator/wlbd/api/reports/call_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

static void check_entry(const json_t *entry)
{
	struct wlbd_rank_call call;
	must(wlbd_call_read(entry, &call, NULL) == 0);
	must(call.rank >= 0 && call.rank <= WLBD_RANKS_MAX && call.seq >= 0 && call.bytes >= 0);
	size_t length = strnlen(call.group, sizeof(call.group));
	must(length > 0 && length < sizeof(call.group));
	must(call.entered_s >= 0.0 && call.entered_s <= call.blocked_s && call.blocked_s <= call.left_s);
	must(call.left_s <= 1.0001e9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	const json_t *calls = NULL;
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_calls_check(body, &calls, &error) == 0) {
		for (size_t i = 0; i < json_array_size(calls); i++)
			check_entry(json_array_get(calls, i));
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
