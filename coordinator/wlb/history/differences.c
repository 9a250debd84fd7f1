#include "coordinator/wlb/history/differences.h"

#include <stdbool.h>
#include <stdio.h>

#include "libwlb/wlb.h"

enum { NAME_BYTES = 256, NESTED_MAX = 8 };

/* Gives `flat` the members of `object` that are no objects, as "prefix.name". */
static int flatten(json_t *flat, const char *prefix, json_t *object, int nested)
{
	const char *name;
	json_t *value;
	int rc = 0;
	json_object_foreach(object, name, value)
	{
		char full[NAME_BYTES];
		wlb_text_format(full, sizeof(full), "%s%s%s", prefix, *prefix != '\0' ? "." : "", name);
		if (json_is_object(value) && nested < NESTED_MAX)
			rc |= flatten(flat, full, value, nested + 1);
		else if (!json_is_null(value))
			rc |= json_object_set(flat, full, value);
	}
	return rc;
}

static bool differs(const json_t *flats, const char *name)
{
	json_t *first = json_object_get(json_array_get(flats, 0), name);
	for (size_t i = 1; i < json_array_size(flats); i++) {
		json_t *value = json_object_get(json_array_get(flats, i), name);
		bool are_numbers = json_is_number(first) && json_is_number(value);
		/* 1 and 1.0 are one number, which programs write either way. */
		if (are_numbers ? json_number_value(first) != json_number_value(value)
		                : (first == NULL) != (value == NULL) || (first != NULL && !json_equal(first, value)))
			return true;
	}
	return false;
}

static int add_difference(json_t *differences, const json_t *flats, const char *name)
{
	json_t *values = json_array();
	int rc = values != NULL ? 0 : -1;
	for (size_t i = 0; rc == 0 && i < json_array_size(flats); i++) {
		json_t *value = json_object_get(json_array_get(flats, i), name);
		rc = json_array_append_new(values, value != NULL ? json_incref(value) : json_null());
	}
	json_t *entry = rc == 0 ? json_pack("{s:s, s:O}", "name", name, "values", values) : NULL;
	json_decref(values);
	return json_array_append_new(differences, entry);
}

json_t *wlb_settings_that_differ(const json_t *settings)
{
	json_t *flats = json_array(), *names = json_object(), *differences = json_array();
	const char *name;
	json_t *entry, *value;
	size_t i;
	int rc = flats != NULL && names != NULL && differences != NULL ? 0 : -1;
	json_array_foreach(settings, i, entry)
	{
		json_t *flat = json_object();
		rc |= flatten(flat, "", entry, 0);
		rc |= json_object_update_missing(names, flat);
		rc |= json_array_append_new(flats, flat);
	}
	json_object_foreach(names, name, value)
	{
		if (rc == 0 && differs(flats, name))
			rc = add_difference(differences, flats, name);
	}
	json_decref(flats);
	json_decref(names);
	if (rc == 0)
		return differences;
	json_decref(differences);
	return NULL;
}
