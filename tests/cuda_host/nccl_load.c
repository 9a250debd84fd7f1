/* In place of the product's function that loads NCCL: the calls of nccl.cc, which are linked. */
#include "worker/comm/nccl_library.h"

int wlb_nccl_load(struct wlb_nccl *nccl, struct wlb_error *error)
{
	(void)error;
#define LINK(name) nccl->name = name
	WLB_NCCL_FUNCTIONS(LINK);
#undef LINK
	return 0;
}
