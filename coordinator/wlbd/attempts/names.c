#include "coordinator/wlbd/attempts/names.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

enum { ALLOCATION_BYTES = 16 }; /* that malloc adds to a text */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes `list`, which is sorted and loses its duplicates. */
static void take(struct wlbd_names *names, char **list, int count)
{
	int kept = 0;
	if (count > 0)
		qsort(list, (size_t)count, sizeof(*list), by_text);
	for (int i = 0; i < count; i++) {
		if (kept > 0 && strcmp(list[kept - 1], list[i]) == 0)
			free(list[i]);
		else
			list[kept++] = list[i];
	}
	/* Of the names of many ranks few are left. */
	char **shorter = realloc(list, ((size_t)kept + 1) * sizeof(*list));
	wlbd_names_free(names);
	names->list = shorter != NULL ? shorter : list;
	names->count = kept;
}

int wlbd_names_from_json(struct wlbd_names *names, const json_t *array)
{
	size_t count = json_array_size(array);
	char **list = calloc(count + 1, sizeof(*list));
	if (list == NULL)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(array, i));
		list[i] = text != NULL ? strdup(text) : NULL;
		if (list[i] == NULL) {
			wlb_strings_free(list, (int)i);
			return -1;
		}
	}
	take(names, list, (int)count);
	return 0;
}

int wlbd_names_from_hostlist(struct wlbd_names *names, const char *expression)
{
	char **list;
	int count;
	if (wlb_hostlist_expand(expression, &list, &count, NULL) != 0)
		return -1;
	take(names, list, count);
	return 0;
}

int wlbd_names_copy(struct wlbd_names *names, const struct wlbd_names *from)
{
	char **list = calloc((size_t)from->count + 1, sizeof(*list));
	for (int i = 0; list != NULL && i < from->count; i++) {
		list[i] = strdup(from->list[i]);
		if (list[i] == NULL) {
			wlb_strings_free(list, i);
			list = NULL;
		}
	}
	if (list == NULL)
		return -1;
	take(names, list, from->count);
	return 0;
}

void wlbd_names_remove(struct wlbd_names *names, int index)
{
	free(names->list[index]);
	names->count--;
	memmove(&names->list[index], &names->list[index + 1], sizeof(*names->list) * (size_t)(names->count - index));
}

void wlbd_names_free(struct wlbd_names *names)
{
	wlb_strings_free(names->list, names->count);
	*names = (struct wlbd_names){0};
}

size_t wlbd_names_bytes(const struct wlbd_names *names)
{
	size_t bytes = 0;
	for (int i = 0; i < names->count; i++)
		bytes += sizeof(*names->list) + strlen(names->list[i]) + 1 + ALLOCATION_BYTES;
	return bytes;
}

int wlbd_names_find(const struct wlbd_names *names, const char *name)
{
	char **found = NULL;
	if (names->count > 0)
		found = bsearch(&name, names->list, (size_t)names->count, sizeof(*names->list), by_text);
	return found != NULL ? (int)(found - names->list) : -1;
}
