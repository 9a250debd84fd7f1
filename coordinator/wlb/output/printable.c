#include "coordinator/wlb/output/printable.h"

#include <stdlib.h>

#include "common/control.h"

static int has_control(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (wlb_control_bytes(text + i) > 0)
			return 1;
	return 0;
}

static int replace_control(json_t *value)
{
	const char *text = json_string_value(value);
	size_t length = json_string_length(value), used = 0;
	if (!has_control(text, length))
		return 0;
	char *printable = malloc(length + 1);
	if (printable == NULL)
		return -1;
	for (size_t i = 0; i < length;) {
		size_t control = wlb_control_bytes(text + i);
		printable[used++] = control > 0 ? ' ' : text[i];
		i += control > 0 ? control : 1;
	}
	int rc = json_string_setn(value, printable, used);
	free(printable);
	return rc;
}

int wlb_make_printable(json_t *value)
{
	const char *key;
	json_t *inner;
	size_t i;
	int rc = 0;
	if (json_is_string(value))
		return replace_control(value);
	json_object_foreach(value, key, inner) rc |= wlb_make_printable(inner);
	json_array_foreach(value, i, inner) rc |= wlb_make_printable(inner);
	return rc;
}
