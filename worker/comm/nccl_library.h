/*
 * The functions of NCCL that the transport uses. NCCL is loaded when a run chooses it and not linked: a build with CUDA
 * then also starts where it is not installed, on the CPU device or over MPI.
 */
#ifndef WORKER_COMM_NCCL_LIBRARY_H
#define WORKER_COMM_NCCL_LIBRARY_H

#include <nccl.h>

#include "libwlb/wlb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* do_for(name) for each function. */
#define WLB_NCCL_FUNCTIONS(do_for)                                                                                     \
	do_for(ncclGetErrorString);                                                                                    \
	do_for(ncclGetLastError);                                                                                      \
	do_for(ncclGetUniqueId);                                                                                       \
	do_for(ncclCommInitRankConfig);                                                                                \
	do_for(ncclCommGetAsyncError);                                                                                 \
	do_for(ncclCommFinalize);                                                                                      \
	do_for(ncclCommDestroy);                                                                                       \
	do_for(ncclCommAbort);                                                                                         \
	do_for(ncclAllReduce);                                                                                         \
	do_for(ncclReduceScatter);                                                                                     \
	do_for(ncclAllGather);                                                                                         \
	do_for(ncclSend);                                                                                              \
	do_for(ncclRecv)

struct wlb_nccl {
#define WLB_NCCL_MEMBER(name) __typeof__(name) *name
	WLB_NCCL_FUNCTIONS(WLB_NCCL_MEMBER);
#undef WLB_NCCL_MEMBER
};

/* Loads the library; it stays loaded. Returns 0, or -1 with the reason. */
int wlb_nccl_load(struct wlb_nccl *nccl, struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif
