#include "coordinator/wlbd/api/reports/entry_values.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int wlbd_value_refuse(const char *what, const json_t *value, const char *rule, struct wlb_error *error)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	wlb_fail(error, "%s: %.80s must be %s", what, text != NULL ? text : "the value", rule);
	free(text);
	return -1;
}

int wlbd_value_integer(const char *what, const json_t *value, int64_t min, int64_t max, int64_t *number,
                       struct wlb_error *error)
{
	char rule[96];
	*number = json_integer_value(value);
	if (json_is_integer(value) && *number >= min && *number <= max)
		return 0;
	snprintf(rule, sizeof(rule), "a whole number from %lld to %lld", (long long)min, (long long)max);
	return wlbd_value_refuse(what, value, rule, error);
}

static bool is_plain(const char *name)
{
	for (; *name != '\0'; name++)
		if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
			return false;
	return true;
}

int wlbd_value_name(const char *what, const json_t *value, char *name, size_t size, struct wlb_error *error)
{
	char rule[96];
	size_t length = json_string_length(value);
	if (length >= 1 && length < size && is_plain(json_string_value(value)) &&
	    strlen(json_string_value(value)) == length) {
		memcpy(name, json_string_value(value), length + 1);
		return 0;
	}
	snprintf(rule, sizeof(rule), "1 to %zu printable characters of ASCII without '\"' and '\\'", size - 1);
	return wlbd_value_refuse(what, value, rule, error);
}
