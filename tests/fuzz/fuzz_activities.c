/* Any activities of a report: refused with a reason, or within all bounds and each rank once. */
#include <string.h>

#include "coordinator/wlbd/api/reports/activity_read.h"
#include "coordinator/wlbd/http/fields.h"
#include "tests/fuzz/scratch.h"

static void check_entry(const json_t *entry)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	must(wlbd_activity_read(entry, &activity, groups, NULL) == 0);
	must(activity.rank >= 0 && activity.rank <= WLBD_RANKS_MAX && activity.step >= 0);
	must(activity.for_s >= 0 && activity.for_s <= 1e7);
	must(activity.group_count >= 0 && activity.group_count <= WLBD_ACTIVITY_GROUPS_MAX);
	for (int i = 0; i < activity.group_count; i++) {
		size_t length = strnlen(groups[i].name, sizeof(groups[i].name));
		must(length > 0 && length < sizeof(groups[i].name));
		must(groups[i].ranks >= 1 && groups[i].left >= 0 && groups[i].left <= groups[i].entered);
	}
	must(activity.corruption.suspects >= 0 && activity.corruption.suspects <= WLBD_RANKS_MAX);
	must(activity.corruption.first >= 0 && activity.corruption.other >= 0 && activity.corruption.step >= 0);
	must(wlbd_activity_names[activity.kind] != NULL);
	must(wlbd_activity_process_names[activity.process] != NULL);
	if (activity.is_in_call) {
		must(activity.call.group >= 0 && activity.call.group < activity.group_count);
		must(activity.call.for_s >= 0 && activity.call.seq >= 0 && activity.call.bytes >= 0);
		must(wlbd_call_kind_names[activity.call.kind] != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	const json_t *activities = NULL;
	json_t *body = wlbd_body_parse((const char *)data, bytes, &error);
	if (body != NULL && wlbd_activities_check(body, &activities, &error) == 0) {
		for (size_t i = 0; i < json_array_size(activities); i++)
			check_entry(json_array_get(activities, i));
	} else {
		must(error.message[0] != '\0');
	}
	json_decref(body);
	return 0;
}
