/* Any steps of a report: refused with a reason, or within all bounds and each step of a rank once. */
#include <math.h>
#include <string.h>

#include "coordinator/wlbd/api/reports/step_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

static void check_seconds(double value_s)
{
	must(value_s == -1.0 || (value_s >= 0.0 && value_s <= 1.0001e7));
}

static void check_entry(const json_t *entry)
{
	struct wlbd_rank_step step;
	must(wlbd_step_read(entry, &step, NULL) == 0);
	must(step.ended.rank >= 0 && step.ended.rank <= WLBD_RANKS_MAX && step.ended.step >= 0);
	const double lengths[] = {step.ended.seconds, step.ended.aside_s, step.ended.computed_s, step.ended.loader_s,
	                          step.ended.storage_s};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check_seconds(lengths[i]);
	must(step.ended.work == -1.0 || (step.ended.work >= 0.0 && step.ended.work <= 1e30));
	must(!step.ended.has_gradient_norm || !(step.ended.gradient_norm < 0.0));
	must(step.transfer_count >= 0 && step.transfer_count <= WLBD_ACTIVITY_GROUPS_MAX);
	for (int i = 0; i < step.transfer_count; i++) {
		const struct wlbd_rank_transfer *transfer = &step.transfers[i];
		size_t length = strnlen(transfer->group, sizeof(transfer->group));
		must(length > 0 && length < sizeof(transfer->group));
		must(transfer->transfer.calls >= 0 && transfer->transfer.bytes >= 0.0);
		check_seconds(transfer->transfer.transfer_s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	const json_t *steps = NULL;
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_steps_check(body, &steps, &error) == 0) {
		for (size_t i = 0; i < json_array_size(steps); i++)
			check_entry(json_array_get(steps, i));
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
