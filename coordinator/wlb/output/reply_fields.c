#include "coordinator/wlb/output/reply_fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

const char *wlb_field_text(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : otherwise;
}

void wlb_field_run(const json_t *object, char *text, size_t size)
{
	const char *run = wlb_field_text(object, "run_id", "?");
	const char *alias = wlb_field_text(object, "alias", NULL);
	if (alias != NULL)
		snprintf(text, size, "%s (%s)", run, alias);
	else
		snprintf(text, size, "%s", run);
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

void wlb_bytes_text(double bytes, char *text, size_t size)
{
	if (bytes <= 0.0)
		snprintf(text, size, "-");
	else if (bytes >= 1e9)
		snprintf(text, size, "%.2f GB", bytes / 1e9);
	else
		snprintf(text, size, "%.1f MB", bytes / 1e6);
}

void wlb_field_bytes(const json_t *object, const char *key, char *text, size_t size)
{
	wlb_bytes_text(json_number_value(json_object_get(object, key)), text, size);
}

/* Cuts a folded list before a comma, so that each name that is left is one of the list's. */
static void cut_nodes(const char *folded, size_t count, char *text, size_t size)
{
	size_t mark = (size_t)snprintf(NULL, 0, ",...] (%zu nodes)", count), fit = 0;
	bool in_brackets = false, ends_in_brackets = false;
	for (size_t i = 0; folded[i] != '\0' && i + mark < size; i++) {
		in_brackets = folded[i] == '[' || (in_brackets && folded[i] != ']');
		if (folded[i] != ',')
			continue;
		fit = i;
		ends_in_brackets = in_brackets;
	}
	if (fit > 0)
		snprintf(text, size, "%.*s,...%s (%zu nodes)", (int)fit, folded, ends_in_brackets ? "]" : "", count);
	else
		snprintf(text, size, "%zu node%s", count, count == 1 ? "" : "s");
}

void wlb_field_nodes(const json_t *object, char *text, size_t size)
{
	const json_t *list = json_object_get(object, "nodes");
	size_t count = json_array_size(list);
	char **names = calloc(count + 1, sizeof(*names));
	for (size_t i = 0; names != NULL && i < count; i++)
		names[i] = (char *)json_string_value(json_array_get(list, i));
	char *folded = names != NULL && count > 0 ? wlb_hostlist_fold(names, (int)count, NULL) : NULL;
	if (folded != NULL && strlen(folded) >= size)
		cut_nodes(folded, count, text, size);
	else
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
