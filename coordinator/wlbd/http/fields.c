#include "coordinator/wlbd/http/fields.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/body_size.h"

/* jansson's own limit is 2,048, at which a function that recurses through the result may exhaust its stack. */
enum { DEPTH_MAX = 32 };

json_t *wlbd_body_parse(const char *text, size_t length, struct wlb_error *error)
{
	json_error_t place;
	if (wlbd_body_size(text, length).depth > DEPTH_MAX) {
		wlb_fail(error, "body: nested deeper than %d; no request needs that", DEPTH_MAX);
		return NULL;
	}
	json_t *body = json_loadb(text, length, JSON_REJECT_DUPLICATES, &place);
	if (body == NULL) {
		wlb_fail(error, "body, line %d, column %d: %s; it must be a JSON object", place.line, place.column,
		         place.text);
		return NULL;
	}
	if (!json_is_object(body)) {
		json_decref(body);
		wlb_fail(error, "body: must be a JSON object, such as {\"run_id\":\"12\"}");
		return NULL;
	}
	return body;
}

/* Returns NULL where the field is absent or null. */
static const json_t *find(const json_t *object, const char *name)
{
	const json_t *field = json_object_get(object, name);
	return json_is_null(field) ? NULL : field;
}

/* For a field that is not as it must be: returns 0 where it is absent and optional; else -1 with "field 'x': <value>
 * must be <rule>", the value cut to 80 characters. */
__attribute__((format(printf, 5, 6))) static int refuse(const char *name, const json_t *field, enum wlbd_need need,
                                                        struct wlb_error *error, const char *format, ...)
{
	char rule[256];
	va_list arguments;
	if (field == NULL)
		return need == WLBD_OPTIONAL ? 0 : wlb_fail(error, "field '%s': is missing", name);
	va_start(arguments, format);
	vsnprintf(rule, sizeof(rule), format, arguments);
	va_end(arguments);
	/* ASCII, so that it can be cut anywhere. */
	char *text = json_dumps(field, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	wlb_fail(error, "field '%s': %.80s must be %s", name, text != NULL ? text : "the value", rule);
	free(text);
	return -1;
}

int wlbd_field_text(const json_t *object, const char *name, enum wlbd_need need, size_t max, const char **value,
                    struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (!json_is_string(field) || json_string_length(field) > max)
		return refuse(name, field, need, error, "a string of at most %zu bytes", max);
	*value = json_string_value(field);
	return 0;
}

int wlbd_field_integer(const json_t *object, const char *name, enum wlbd_need need, int64_t min, int64_t max,
                       int64_t *value, struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (!json_is_integer(field) || json_integer_value(field) < min || json_integer_value(field) > max)
		return refuse(name, field, need, error, "a whole number from %lld to %lld", (long long)min,
		              (long long)max);
	*value = json_integer_value(field);
	return 0;
}

int wlbd_field_number(const json_t *object, const char *name, enum wlbd_need need, double min, double max,
                      double *value, struct wlb_error *error)
{
	const json_t *field = find(object, name);
	double number = json_number_value(field);
	if (!json_is_number(field) || !(number >= min && number <= max))
		return refuse(name, field, need, error, "a number from %g to %g", min, max);
	*value = number;
	return 0;
}

/* PostgreSQL prints a number of jsonb without an exponent: 1e300 has 301 digits there, and a reader of JSON takes it
 * for an integer out of range. */
static bool numbers_fit(const json_t *value)
{
	static const double max = 1e18;
	const char *key;
	json_t *entry;
	size_t i;
	if (json_is_number(value))
		return fabs(json_number_value(value)) <= max;
	json_array_foreach((json_t *)value, i, entry)
	{
		if (!numbers_fit(entry))
			return false;
	}
	json_object_foreach((json_t *)value, key, entry)
	{
		if (!numbers_fit(entry))
			return false;
	}
	return true;
}

int wlbd_field_bounded(const json_t *object, const char *name, size_t max_bytes, struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (field == NULL)
		return 0;
	if (json_dumpb(field, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT) > max_bytes || !numbers_fit(field))
		return refuse(name, field, WLBD_OPTIONAL, error,
		              "at most %zu bytes of JSON, with numbers from -1e18 to 1e18", max_bytes);
	return 0;
}

int wlbd_field_boolean(const json_t *object, const char *name, enum wlbd_need need, bool *value,
                       struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (!json_is_boolean(field))
		return refuse(name, field, need, error, "true or false");
	*value = json_is_true(field);
	return 0;
}

int wlbd_field_object(const json_t *object, const char *name, enum wlbd_need need, const json_t **value,
                      struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (!json_is_object(field))
		return refuse(name, field, need, error, "an object");
	*value = field;
	return 0;
}

int wlbd_field_array(const json_t *object, const char *name, enum wlbd_need need, size_t max, const json_t **value,
                     struct wlb_error *error)
{
	const json_t *field = find(object, name);
	if (!json_is_array(field) || json_array_size(field) > max)
		return refuse(name, field, need, error, "an array of at most %zu entries", max);
	*value = field;
	return 0;
}

int wlbd_field_names(const json_t *object, const char *name, enum wlbd_need need, size_t max, const json_t **value,
                     struct wlb_error *error)
{
	const json_t *field = NULL;
	if (wlbd_field_array(object, name, need, max, &field, error) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(field); i++) {
		const json_t *entry = json_array_get(field, i);
		if (!json_is_string(entry) || json_string_length(entry) < 1 ||
		    json_string_length(entry) > WLBD_NAME_MAX)
			return refuse(name, entry, WLBD_REQUIRED, error, "a name of 1 to %d bytes", WLBD_NAME_MAX);
	}
	if (field != NULL)
		*value = field;
	return 0;
}

static bool is_uuid(const char *text)
{
	if (strlen(text) != 36)
		return false;
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

int wlbd_field_uuid(const json_t *object, const char *name, const char **value, struct wlb_error *error)
{
	const char *text = NULL;
	if (wlbd_field_text(object, name, WLBD_REQUIRED, WLBD_NAME_MAX, &text, error) != 0)
		return -1;
	if (!is_uuid(text))
		return refuse(name, find(object, name), WLBD_REQUIRED, error,
		              "a UUID, such as 6f1c0a52-7f0e-4f0e-8f3e-0c9d7c1f2a3b");
	*value = text;
	return 0;
}

int wlbd_field_choice(const json_t *object, const char *name, enum wlbd_need need, const char *const *choices,
                      const char **value, struct wlb_error *error)
{
	const char *text = NULL;
	char rule[256] = "one of";
	if (wlbd_field_text(object, name, need, WLBD_NAME_MAX, &text, error) != 0)
		return -1;
	if (text == NULL)
		return 0;
	for (int i = 0; choices[i] != NULL; i++) {
		if (strcmp(text, choices[i]) == 0) {
			*value = text;
			return 0;
		}
	}
	for (int i = 0; choices[i] != NULL; i++) {
		size_t length = strlen(rule);
		snprintf(rule + length, sizeof(rule) - length, "%s %s", i > 0 ? "," : "", choices[i]);
	}
	return refuse(name, find(object, name), need, error, "%s", rule);
}
