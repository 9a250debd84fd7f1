#include "coordinator/wlbd/api/records/followed_check.h"

#include <string.h>

#include "coordinator/wlbd/http/fields.h"

#define COUNT_MAX INT64_C(1000000000000) /* steps */
#define PLACE_MAX INT64_C(1000000000000000000)
#define SECONDS_MAX 1e7
#define VALUE_MAX 1e300

/* JSON has neither NaN nor infinities, and a loss may be any of them. */
static int check_value(const json_t *values, const char *name, struct wlb_error *error)
{
	static const char *const texts[] = {"nan", "inf", "-inf", NULL};
	const char *text;
	double number;
	if (name[0] == '\0' || strlen(name) > WLBD_FOLLOWED_NAME_BYTES_MAX)
		return wlb_fail(error, "the name '%.20s...' must have 1 to %d bytes", name,
		                WLBD_FOLLOWED_NAME_BYTES_MAX);
	if (json_is_string(json_object_get(values, name)))
		return wlbd_field_choice(values, name, WLBD_REQUIRED, texts, &text, error);
	return wlbd_field_number(values, name, WLBD_REQUIRED, -VALUE_MAX, VALUE_MAX, &number, error);
}

static int check_values(const json_t *data, struct wlb_error *error)
{
	const json_t *values = NULL;
	const char *name;
	json_t *value;
	if (wlbd_field_object(data, "values", WLBD_REQUIRED, &values, error) != 0)
		return -1;
	if (json_object_size(values) > WLBD_FOLLOWED_VALUES_MAX)
		return wlb_fail(error, "field 'values': %zu names; it may have %d", json_object_size(values),
		                WLBD_FOLLOWED_VALUES_MAX);
	json_object_foreach((json_t *)values, name,
	                    value) if (check_value(values, name, error) != 0) return wlb_fail_in(error, "values");
	return 0;
}

int wlbd_followed_check(const json_t *data, struct wlb_error *error)
{
	static const char *const sources[] = {"log", "tensorboard", "stdout", "hook", NULL};
	const char *text;
	int64_t number;
	double seconds;
	bool is;
	if (wlbd_field_integer(data, "step", WLBD_REQUIRED, 0, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_boolean(data, "is_of_attempt", WLBD_OPTIONAL, &is, error) != 0 ||
	    wlbd_field_boolean(data, "is_step", WLBD_OPTIONAL, &is, error) != 0 ||
	    wlbd_field_choice(data, "source", WLBD_REQUIRED, sources, &text, error) != 0 ||
	    wlbd_field_integer(data, "stream", WLBD_REQUIRED, 0, INT32_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "generation", WLBD_REQUIRED, 0, PLACE_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "at", WLBD_REQUIRED, 0, PLACE_MAX, &number, error) != 0 ||
	    wlbd_field_integer(data, "span", WLBD_OPTIONAL, 1, COUNT_MAX, &number, error) != 0 ||
	    wlbd_field_number(data, "interval_s", WLBD_OPTIONAL, 0, SECONDS_MAX, &seconds, error) != 0)
		return -1;
	return check_values(data, error);
}
