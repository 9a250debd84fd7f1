/*
 * A communicator: its ranks, what has arrived for it, and its calls in their order.
 */
#ifndef CUDA_HOST_NCCL_COMMUNICATOR_H
#define CUDA_HOST_NCCL_COMMUNICATOR_H

#include "tests/cuda_host/nccl_call.h"
#include "tests/cuda_host/nccl_messages.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cuda_host
{
class nccl_group;

/* message.kind: a rank has opened the communicator; what it gives to a collective; what it sends; its receive runs. */
enum class nccl_kind : uint64_t { open, collective, send, received };

/* What other ranks have sent for one communicator, perhaps before this process has opened it. */
struct nccl_inbox {
	std::map<uint64_t, int> processes;                            /* of the ranks that have opened it */
	std::map<std::pair<uint64_t, uint64_t>, message> collectives; /* by number and rank */
	std::map<uint64_t, std::deque<message>> sends;                /* by rank */
	std::map<uint64_t, uint64_t> received; /* by rank: how many of this rank's sends its receives have met */
};

/* The inbox of a communicator, after all that has arrived was put into the inboxes. */
nccl_inbox &nccl_inbox_of(uint64_t communicator);
void nccl_inbox_drop(uint64_t communicator);
} // namespace cuda_host

struct ncclComm {
	uint64_t id;
	int rank, ranks;
	bool is_blocking;
	bool is_told;      /* the other processes know that this rank opens it */
	bool is_open;      /* all ranks have opened it */
	bool is_finalized; /* or is being */
	bool is_aborted;
	std::vector<int> processes; /* of its ranks, where it is open */
	std::string last_error;
	/* Of a communicator that does not block: calls that have not reached their stream yet, and how often the state
	 * is to be asked for until they have. */
	std::vector<std::pair<std::shared_ptr<cuda_host::nccl_group>, cudaStream_t>> unqueued;
	int polls;
	/* Groups of calls that have not ended: the first of them runs, whichever stream it is on. */
	std::deque<cuda_host::nccl_group *> order;
	uint64_t collectives;                    /* how many were called */
	std::map<int, uint64_t> sends, receives; /* by rank: how many were called */
};

#endif
