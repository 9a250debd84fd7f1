/* "n[1-3]" and {"n1","n2","n3"}, as Slurm reads and writes them. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

#include <stdlib.h>
#include <string.h>

int wlb_hostlist_expand(const char *expression, char ***names, int *count, struct wlb_error *error)
{
	*names = NULL;
	*count = 0;
	wlb_compat_hostlist list = slurm_hostlist_create(expression);
	if (list == NULL)
		return wlb_fail(error, "node list '%.200s': Slurm cannot read it; write it as in n[1-3,5]", expression);
	int hosts = slurm_hostlist_count(list);
	*names = calloc((size_t)hosts + 1, sizeof(**names));
	while (*names && *count < hosts && ((*names)[*count] = slurm_hostlist_shift(list)) != NULL)
		(*count)++;
	slurm_hostlist_destroy(list);
	return *names ? 0 : wlb_fail(error, "out of memory for the names of %d nodes", hosts);
}

char *wlb_hostlist_fold(char *const *names, int count, struct wlb_error *error)
{
	wlb_compat_hostlist list = slurm_hostlist_create("");
	if (list == NULL) {
		wlb_fail(error, "out of memory for a list of %d nodes", count);
		return NULL;
	}
	for (int i = 0; i < count; i++)
		slurm_hostlist_push_host(list, names[i]);
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
