/*
 * One call that moves data, and what it computes.
 */
#ifndef CUDA_HOST_NCCL_CALL_H
#define CUDA_HOST_NCCL_CALL_H

#include <nccl.h>

#include <stdint.h>

#include <string>
#include <vector>

namespace cuda_host
{
enum class nccl_function { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

struct nccl_call {
	nccl_function function;
	const void *from;
	void *to;
	uint64_t count; /* of the argument: of the part for reduce_scatter and all_gather */
	ncclDataType_t type;
	ncclRedOp_t op;
	int peer; /* the other rank, or the root; 0 where there is none */
};

size_t nccl_type_bytes(ncclDataType_t type); /* 0: not one of NCCL's */

/* Bytes that the call reads and writes on this rank. */
size_t nccl_from_bytes(const nccl_call &call, int rank, int ranks);
size_t nccl_to_bytes(const nccl_call &call, int rank, int ranks);

/* Bytes of a collective that `rank` sends to each other rank: of reduce_scatter, the part of that rank. */
size_t nccl_sent_bytes(const nccl_call &call, int rank);

/* "ncclSend of 8 ncclFloat32 to rank 1" */
std::string nccl_describe(const nccl_call &call);

/* Whether sums and the like of the type can be computed. */
bool nccl_can_reduce(ncclDataType_t type, ncclRedOp_t op);

/* Writes to `to` what a collective gives on this rank; from[i] is what rank i sends to this
 * rank. */
void nccl_combine(const nccl_call &call, int rank, const std::vector<const char *> &from, char *to);
} // namespace cuda_host

#endif
