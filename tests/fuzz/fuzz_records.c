/* Any body of POST .../records: refused with a reason, or records that number on from first_seq. */
#include "coordinator/wlbd/api/records/record_check.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlbd_delivery delivery;
	struct wlb_error error = {0};
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body == NULL) {
		must(error.message[0] != '\0');
		return 0;
	}
	if (wlbd_delivery_check(body, &delivery, &error) == 0) {
		must(json_array_size(delivery.records) <= WLBD_RECORDS_MAX);
		for (size_t i = 0; i < json_array_size(delivery.records); i++) {
			const json_t *seq = json_object_get(json_array_get(delivery.records, i), "seq");
			must(json_integer_value(seq) == delivery.first_seq + (int64_t)i);
		}
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
