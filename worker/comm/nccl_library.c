/* Loads NCCL: from where the loader finds it, else from where it was when this was compiled. */
#include "worker/comm/nccl_library.h"

#include <dlfcn.h>

#define LIBRARY "libnccl.so.2"

static void *load(void)
{
	const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
	void *library = dlopen(LIBRARY, flags);
	return library != NULL ? library : dlopen(WLB_NCCL_FOLDER "/" LIBRARY, flags);
}

int wlb_nccl_load(struct wlb_nccl *nccl, struct wlb_error *error)
{
	void *library = load();
	if (library == NULL)
		return wlb_fail(error,
		                "cannot load NCCL: %s; install libnccl2, name its folder in LD_LIBRARY_PATH, or use "
		                "--transport mpi",
		                dlerror());
#define LOAD(name)                                                                                                     \
	if ((nccl->name = (__typeof__(nccl->name))dlsym(library, #name)) == NULL)                                      \
	return wlb_fail(error, "%s has no function %s; install NCCL 2.14 or later", LIBRARY, #name)
	WLB_NCCL_FUNCTIONS(LOAD);
#undef LOAD
	return 0;
}
