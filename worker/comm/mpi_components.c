#include "worker/comm/mpi_components.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum { COMPONENTS_MAX = 256 }; /* with all of Debian's packages there are about 60 */

struct names {
	const char *list[COMPONENTS_MAX]; /* owned by the loader; none is unloaded meanwhile */
	int count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *names_out)
{
	(void)size;
	struct names *names = names_out;
	if (strstr(info->dlpi_name, "/mca_") != NULL && names->count < COMPONENTS_MAX)
		names->list[names->count++] = info->dlpi_name;
	return 0;
}

void wlb_mpi_keep_components(void)
{
	struct names names = {.count = 0};
	dl_iterate_phdr(collect, &names);
	/* The handle is not kept: the library stays marked as not to be unloaded. */
	for (int i = 0; i < names.count; i++)
		dlopen(names.list[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
