/*
 * Messages between the processes of MPI_COMM_WORLD, under which NCCL's calls are built. A message never blocks its
 * sender; messages of one sender arrive in order. All have one tag of MPI_COMM_WORLD that nobody else uses, since a
 * communicator of their own would have to be opened by all processes at once, and some may never open one of NCCL's.
 */
#ifndef CUDA_HOST_NCCL_MESSAGES_H
#define CUDA_HOST_NCCL_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <vector>

namespace cuda_host
{
struct message {
	uint64_t communicator;
	uint64_t kind, from, sequence; /* the receiver's to interpret */
	uint64_t call[5];
	uint64_t bytes;
	int sender; /* its process: rank of MPI_COMM_WORLD, set on arrival */
	std::vector<char> data;
};

/* Initialises MPI if the program has not; it is then finalised at exit, unless messages_keep_mpi() was called. */
void messages_start();
void messages_keep_mpi();

/* How many processes there are, and which this is. */
int messages_processes();
int messages_process();

/* Sends header and data. Only the first `bytes` of what `data` points to are sent; message.data is not used. */
void messages_send(int process, const message &header, const void *data);

/* Hands over every message that has arrived. */
void messages_receive(const std::function<void(message &&)> &take);

/* Whether MPI has taken every message that was sent. */
bool messages_are_sent();
} // namespace cuda_host

#endif
