#include "coordinator/wlbd/requests/plan_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"

/* As `wlb run` writes the nodes of a switch. */
static const char cut_mark[] = "...";
enum { CUT_BYTES = 160 };

static bool is_cut(const char *text)
{
	size_t length = strlen(text);
	return length == CUT_BYTES && strcmp(text + length - strlen(cut_mark), cut_mark) == 0;
}

/* Removes what follows the last comma, and closes the bracket that was open there. */
static void end_at_comma(char *text)
{
	char *comma = strrchr(text, ',');
	if (comma == NULL)
		comma = text;
	*comma = '\0';
	const char *open = strrchr(text, '['), *closed = strrchr(text, ']');
	if (open != NULL && (closed == NULL || closed < open))
		strcpy(comma, "]");
}

int wlbd_plan_nodes_read(const char *text, int most, int *names_left, struct wlbd_plan_nodes *nodes,
                         struct wlb_error *error)
{
	*nodes = (struct wlbd_plan_nodes){.is_cut = is_cut(text)};
	char *read = strdup(text);
	if (read == NULL)
		return wlb_fail(error, "out of memory");
	if (nodes->is_cut)
		end_at_comma(read);
	int rc = 0;
	if (*read != '\0' || !nodes->is_cut)
		rc = wlb_hostlist_expand_most(read, most < *names_left ? most : *names_left, &nodes->names,
		                              &nodes->count, error);
	*names_left -= nodes->count;
	free(read);
	return rc;
}

void wlbd_plan_nodes_free(struct wlbd_plan_nodes *nodes)
{
	wlb_strings_free(nodes->names, nodes->count);
	*nodes = (struct wlbd_plan_nodes){0};
}
