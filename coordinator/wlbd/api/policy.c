#include "coordinator/wlbd/api/policy.h"

#include <stdint.h>

#include "common/job_options.h"
#include "coordinator/wlbd/http/fields.h"

static int check_option(const json_t *policy, const struct wlb_job_option *option, struct wlb_error *error)
{
	char text[WLBD_TEXT_MAX + 1];
	const char *value = NULL;
	int64_t number;
	if (option->kind == WLB_JOB_NUMBER)
		return wlbd_field_integer(policy, option->key, WLBD_OPTIONAL, 0, option->max, &number, error);
	if (wlbd_field_text(policy, option->key, WLBD_OPTIONAL, WLBD_TEXT_MAX, &value, error) != 0)
		return -1;
	if (value != NULL && wlb_job_option_text(option, value, text, sizeof(text), error) != 0)
		return wlb_fail_in(error, "%s", option->key);
	return 0;
}

int wlbd_policy_check(const json_t *policy, struct wlb_error *error)
{
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++)
		if (check_option(policy, &wlb_job_options[i], error) != 0)
			return wlb_fail_in(error, "policy");
	return 0;
}

char *wlbd_policy_text(const json_t *policy)
{
	json_t *kept = json_object();
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++) {
		char text[WLBD_TEXT_MAX + 1];
		const struct wlb_job_option *option = &wlb_job_options[i];
		json_t *value = json_object_get(policy, option->key);
		if (json_is_integer(value))
			json_object_set(kept, option->key, value);
		else if (json_is_string(value) &&
		         wlb_job_option_text(option, json_string_value(value), text, sizeof(text), NULL) == 0)
			json_object_set_new(kept, option->key, json_string(text));
	}
	char *text = json_dumps(kept, JSON_COMPACT);
	json_decref(kept);
	return text;
}
