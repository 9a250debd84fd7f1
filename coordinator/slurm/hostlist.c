/* "n[1-3]" and {"n1","n2","n3"}, as Slurm reads and writes them. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

#include <stdlib.h>
#include <string.h>

/* Moves the names out of the list, which it destroys. */
static int take_names(wlb_compat_hostlist list, char ***names, int *count, struct wlb_error *error)
{
	int hosts = slurm_hostlist_count(list);
	*count = 0;
	*names = calloc((size_t)hosts + 1, sizeof(**names));
	while (*names && *count < hosts && ((*names)[*count] = slurm_hostlist_shift(list)) != NULL)
		(*count)++;
	slurm_hostlist_destroy(list);
	return *names ? 0 : wlb_fail(error, "out of memory for the names of %d nodes", hosts);
}

/* Returns NULL if out of memory. */
static wlb_compat_hostlist list_of(char *const *names, int count, struct wlb_error *error)
{
	wlb_compat_hostlist list = slurm_hostlist_create("");
	if (list == NULL)
		wlb_fail(error, "out of memory for a list of %d nodes", count);
	for (int i = 0; list != NULL && i < count; i++)
		slurm_hostlist_push_host(list, names[i]);
	return list;
}

int wlb_hostlist_expand(const char *expression, char ***names, int *count, struct wlb_error *error)
{
	*names = NULL;
	*count = 0;
	wlb_compat_hostlist list = slurm_hostlist_create(expression);
	if (list == NULL)
		return wlb_fail(error, "node list '%.200s': Slurm cannot read it; write it as in n[1-3,5]", expression);
	return take_names(list, names, count, error);
}

int wlb_hostlist_sort(char *const *names, int count, char ***sorted, int *sorted_count, struct wlb_error *error)
{
	*sorted = NULL;
	*sorted_count = 0;
	wlb_compat_hostlist list = list_of(names, count, error);
	if (list == NULL)
		return -1;
	slurm_hostlist_uniq(list);
	return take_names(list, sorted, sorted_count, error);
}

char *wlb_hostlist_fold(char *const *names, int count, struct wlb_error *error)
{
	wlb_compat_hostlist list = list_of(names, count, error);
	if (list == NULL)
		return NULL;
	char *slurms = slurm_hostlist_ranged_string_xmalloc(list);
	slurm_hostlist_destroy(list);
	char *folded = slurms ? strdup(slurms) : NULL;
	slurm_xfree((void **)&slurms);
	if (folded == NULL)
		wlb_fail(error, "out of memory for a list of %d nodes", count);
	return folded;
}

void wlb_strings_free(char **names, int count)
{
	for (int i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}
