/*
 * The calls of one ncclGroupStart .. ncclGroupEnd on one communicator, or one call outside a group: one operation of a
 * stream.
 */
#ifndef CUDA_HOST_NCCL_GROUP_H
#define CUDA_HOST_NCCL_GROUP_H

#include "tests/cuda_host/nccl_communicator.h"
#include "tests/cuda_host/runtime.h"

namespace cuda_host
{
/* A send of more bytes ends only when the receive of the other rank runs. */
const size_t NCCL_EAGER_BYTES = 1024;

class nccl_group : public remote_work
{
      public:
	explicit nccl_group(std::shared_ptr<ncclComm> communicator);
	nccl_group(const nccl_group &) = delete;
	~nccl_group() override;
	void add(const nccl_call &call);
	bool ready() override;
	void run() override;
	std::string describe() const override;

      private:
	struct step {
		nccl_call call;
		uint64_t sequence; /* among the communicator's collectives, or its sends to or receives from the peer */
		std::vector<char> from; /* what the call read when it began */
	};
	void leave();
	void begin(step &step);
	bool can_end(const step &step) const;
	void end(step &step);
	void end_collective(step &step);
	void end_receive(step &step);
	message header(const step &step, nccl_kind kind, size_t bytes) const;
	std::string waits_for(const step &step) const;

	const std::shared_ptr<ncclComm> communicator;
	std::vector<step> steps;
	bool has_begun = false;
};
} // namespace cuda_host

#endif
