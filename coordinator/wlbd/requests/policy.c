#include "coordinator/wlbd/requests/policy.h"

#include <stdint.h>

#include "common/on_fault.h"
#include "coordinator/wlbd/http/fields.h"

enum { GROW_MOST_S = 7 * 24 * 3600 };

int wlbd_policy_check(const json_t *policy, struct wlb_error *error)
{
	const char *text = NULL;
	const char *on_fault = NULL;
	char items[WLB_ON_FAULT_SIZE];
	struct wlb_policy parsed;
	int64_t number;
	if (wlbd_field_text(policy, "layout", WLBD_OPTIONAL, WLBD_NAME_MOST, &text, error) != 0 ||
	    (text != NULL && wlb_policy_parse(text, &parsed, error) != 0) ||
	    wlbd_field_text(policy, "model", WLBD_OPTIONAL, WLBD_TEXT_MOST, &text, error) != 0 ||
	    wlbd_field_integer(policy, "seq_length", WLBD_OPTIONAL, 0, INT64_MAX, &number, error) != 0 ||
	    wlbd_field_integer(policy, "min_nodes", WLBD_OPTIONAL, 0, WLBD_NODES_MOST, &number, error) != 0 ||
	    wlbd_field_integer(policy, "spares", WLBD_OPTIONAL, 0, WLBD_NODES_MOST, &number, error) != 0 ||
	    wlbd_field_integer(policy, "grow_s", WLBD_OPTIONAL, 0, GROW_MOST_S, &number, error) != 0 ||
	    wlbd_field_text(policy, "on_fault", WLBD_OPTIONAL, WLB_ON_FAULT_SIZE - 1, &on_fault, error) != 0)
		return wlb_fail_in(error, "policy");
	if (on_fault != NULL && wlb_on_fault_items(on_fault, items, sizeof(items), error) != 0)
		return wlb_fail_in(error, "policy: on_fault");
	return 0;
}

char *wlbd_policy_text(const json_t *policy)
{
	static const char *const names[] = {"layout", "model", "seq_length", "min_nodes", "spares", "grow_s"};
	json_t *kept = json_object();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *value = json_object_get(policy, names[i]);
		if (value != NULL)
			json_object_set(kept, names[i], value);
	}
	const char *on_fault = json_string_value(json_object_get(policy, "on_fault"));
	char items[WLB_ON_FAULT_SIZE];
	if (on_fault != NULL && wlb_on_fault_items(on_fault, items, sizeof(items), NULL) == 0)
		json_object_set_new(kept, "on_fault", json_string(items));
	char *text = json_dumps(kept, JSON_COMPACT);
	json_decref(kept);
	return text;
}
