#include "worker/comm/nccl_library.h"

#include "kernels/library.h"

int wlb_nccl_load(struct wlb_nccl *nccl, struct wlb_error *error)
{
	const char *names[sizeof(*nccl) / sizeof(nccl->ncclGetErrorString)];
	int count = 0;
	static const struct wlb_library library = {
		.title = "NCCL",
		.file = "libnccl.so.2",
		.folder = WLB_NCCL_FOLDER,
		.install = "libnccl2 of NCCL 2.14 or later",
		.instead = "use --transport mpi",
	};
#define NAME(name) names[count++] = #name
	WLB_NCCL_FUNCTIONS(NAME);
#undef NAME
	return wlb_library_load(&library, names, count, nccl, error);
}
