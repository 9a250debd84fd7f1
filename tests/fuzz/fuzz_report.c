/* What `wlb report` makes of a reply of the coordinator, in which plan, steps and names are as users recorded them. */
#include <stddef.h>
#include <stdint.h>

#include "coordinator/wlb/report/advice.h"
#include "coordinator/wlb/report/curve.h"
#include "coordinator/wlb/report/part_means.h"
#include "coordinator/wlb/report/pipeline.h"
#include "coordinator/wlb/report/rank_cells.h"
#include "coordinator/wlb/report/settings.h"
#include "tests/fuzz/scratch.h"

static json_t *read_parts(const json_t *reply)
{
	int64_t first = json_integer_value(json_object_get(reply, "first_step")) % 1000000000001;
	int64_t last = json_integer_value(json_object_get(reply, "last_step")) % 1000000000001;
	struct wlb_report_curve *curve = wlb_report_curve_new(first, last, 20);
	struct wlb_part_means *means = wlb_part_means_new(first, last);
	const json_t *step;
	size_t i;
	json_array_foreach(json_object_get(reply, "steps"), i, step)
	{
		wlb_report_curve_add(curve, step);
		wlb_part_means_add(means, step);
	}
	json_decref(wlb_report_curve_json(curve, json_number_value(json_object_get(reply, "tokens"))));
	json_t *parts = wlb_part_means_json(means);
	wlb_report_curve_free(curve);
	wlb_part_means_free(means);
	return parts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *reply = json_loadb((const char *)data, size, 0, NULL);
	json_t *parts = reply != NULL ? read_parts(reply) : NULL;
	if (reply != NULL) {
		must(parts != NULL);
		json_decref(wlb_report_pipeline(reply, parts));
		json_decref(wlb_rank_cells(reply));
		json_decref(wlb_report_settings(reply));
		json_decref(wlb_report_advice(reply));
	}
	json_decref(parts);
	json_decref(reply);
	return 0;
}
