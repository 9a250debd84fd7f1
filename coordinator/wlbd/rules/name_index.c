#include "coordinator/wlbd/rules/name_index.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wlbd_indexed_name *)a)->name, ((const struct wlbd_indexed_name *)b)->name);
}

int wlbd_name_index_make(struct wlbd_name_index *index, const char *const *names, int count)
{
	*index = (struct wlbd_name_index){.list = calloc((size_t)count + 1, sizeof(*index->list)), .count = count};
	if (index->list == NULL)
		return -1;
	for (int i = 0; i < count; i++)
		index->list[i] = (struct wlbd_indexed_name){names[i], i};
	qsort(index->list, (size_t)count, sizeof(*index->list), by_name);
	return 0;
}

void wlbd_name_index_free(struct wlbd_name_index *index)
{
	free(index->list);
	*index = (struct wlbd_name_index){0};
}

int wlbd_name_index_find(const struct wlbd_name_index *index, const char *name)
{
	const struct wlbd_indexed_name key = {.name = name}, *found = NULL;
	if (name != NULL && index->count > 0)
		found = bsearch(&key, index->list, (size_t)index->count, sizeof(key), by_name);
	return found != NULL ? found->index : -1;
}

const char *wlbd_name_index_repeated(const struct wlbd_name_index *index)
{
	for (int i = 1; i < index->count; i++)
		if (by_name(&index->list[i - 1], &index->list[i]) == 0)
			return index->list[i].name;
	return NULL;
}
