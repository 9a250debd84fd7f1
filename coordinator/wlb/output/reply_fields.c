#include "coordinator/wlb/output/reply_fields.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/slurm/slurm_api.h"

const char *wlb_field_text(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : otherwise;
}

void wlb_field_number(const json_t *object, const char *key, char *text, size_t size)
{
	const json_t *value = json_object_get(object, key);
	if (json_is_integer(value))
		snprintf(text, size, "%lld", (long long)json_integer_value(value));
	else
		snprintf(text, size, "-");
}

void wlb_field_real(const json_t *object, const char *key, int digits, char *text, size_t size)
{
	const json_t *value = json_object_get(object, key);
	if (json_is_number(value))
		snprintf(text, size, "%.*f", digits, json_number_value(value));
	else
		snprintf(text, size, "-");
}

void wlb_field_nodes(const json_t *object, char *text, size_t size)
{
	const json_t *list = json_object_get(object, "nodes");
	size_t count = json_array_size(list);
	char **names = calloc(count + 1, sizeof(*names));
	for (size_t i = 0; names != NULL && i < count; i++)
		names[i] = (char *)json_string_value(json_array_get(list, i));
	char *folded = names != NULL && count > 0 ? wlb_hostlist_fold(names, (int)count, NULL) : NULL;
	snprintf(text, size, "%s", folded != NULL ? folded : "-");
	free(folded);
	free(names);
}

void wlb_field_layout(const json_t *object, char *text, size_t size)
{
	struct wlb_layout l;
	if (json_unpack(json_object_get(object, "layout"), "{s:i, s:i, s:i, s:i}", "tp", &l.tp, "cp", &l.cp, "pp",
	                &l.pp, "dp", &l.dp) == 0)
		wlb_layout_format(&l, text, size);
	else
		snprintf(text, size, "-");
}
