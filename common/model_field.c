#include "common/model_field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *wlb_config_type_name(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
		[JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",        [JSON_NULL] = "null"};
	return names[json_typeof(value)];
}

const json_t *wlb_config_field(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_null(value) ? NULL : value;
}

/* A whole number of a double, which is exact. */
static int is_whole(const json_t *value)
{
	double number = json_real_value(value);
	return json_is_real(value) && fabs(number) < 0x1p53 && number == floor(number);
}

/* Sets *value to the field. Returns 1, 0 where it is absent and may be, or -1 where it must be given. */
static int find_field(const json_t *object, const char *name, enum wlb_config_need need, const json_t **value,
                      struct wlb_error *error)
{
	*value = wlb_config_field(object, name);
	if (*value != NULL)
		return 1;
	return need == WLB_CONFIG_OPTIONAL ? 0 : wlb_fail(error, "%s is missing: it must be given", name);
}

int wlb_config_count(const json_t *object, const char *name, enum wlb_config_need need, int64_t *out,
                     struct wlb_error *error)
{
	const json_t *value;
	int found = find_field(object, name, need, &value, error);
	if (found <= 0)
		return found;
	if (!json_is_integer(value) && !is_whole(value))
		return wlb_fail(error, "%s is %s: it must be a whole number", name, wlb_config_type_name(value));
	*out = json_is_integer(value) ? json_integer_value(value) : (int64_t)json_real_value(value);
	return 0;
}

int wlb_config_number(const json_t *object, const char *name, enum wlb_config_need need, double *out,
                      struct wlb_error *error)
{
	const json_t *value;
	int found = find_field(object, name, need, &value, error);
	if (found <= 0)
		return found;
	if (!json_is_number(value))
		return wlb_fail(error, "%s is %s: it must be a number", name, wlb_config_type_name(value));
	*out = json_number_value(value);
	return 0;
}

int wlb_config_flag(const json_t *object, const char *name, int *out, struct wlb_error *error)
{
	const json_t *value = wlb_config_field(object, name);
	if (value == NULL)
		return 0;
	if (!json_is_boolean(value))
		return wlb_fail(error, "%s is %s: it must be true or false", name, wlb_config_type_name(value));
	*out = json_is_true(value);
	return 0;
}

int wlb_config_refuse(const char *name, const json_t *value, const char *rule, struct wlb_error *error)
{
	const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6);
	json_t *key = json_string(name);
	char *quoted = json_dumps(key, flags), *text = json_dumps(value, flags);
	if (quoted != NULL && text != NULL)
		wlb_fail(error, "%.*s is %.100s: %s", (int)strnlen(quoted + 1, 101) - 1, quoted + 1, text, rule);
	else
		wlb_fail(error, "out of memory for the configuration of a model");
	json_decref(key);
	free(quoted);
	free(text);
	return -1;
}
