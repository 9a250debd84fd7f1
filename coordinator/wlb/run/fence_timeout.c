#include "coordinator/wlb/run/fence_timeout.h"

#include <stdio.h>
#include <string.h>

/* Whether the list has the name, of that length. */
static bool has_name(const char *list, const char *name, size_t length)
{
	for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
			return true;
	return false;
}

static void add_node(struct wlb_fence_timeout *timeout, const char *node)
{
	size_t used = strlen(timeout->nodes), length = strlen(node);
	if (has_name(timeout->nodes, node, length))
		return;
	if (used + length + 2 > sizeof(timeout->nodes))
		timeout->has_more = true;
	else
		snprintf(timeout->nodes + used, sizeof(timeout->nodes) - used, "%s%s", used > 0 ? "," : "", node);
}

bool wlb_fence_timeout_read(struct wlb_fence_timeout *timeout, const char *line)
{
	char function[64], node[256];
	const char *at = strstr(line, "mpi/pmix");
	if (at == NULL || strstr(at, ": collective timeout seq=") == NULL ||
	    sscanf(at, "mpi/pmix%*[^:]: %63[^:]: %255[^] ,[:] [", function, node) != 2)
		return false;
	timeout->known = true;
	add_node(timeout, node);
	return true;
}
