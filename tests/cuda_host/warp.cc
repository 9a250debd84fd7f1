/* Barriers, shuffles and votes of a warp. */
#include "tests/cuda_host/block.h"
#include "tests/cuda_host/report.h"

namespace
{
struct shuffle_lane {
	uint64_t bits;
	int source;
	uint64_t result;
};

void shuffle_all(void *const lanes[32])
{
	for (int lane = 0; lane < warpSize; lane++) {
		auto *mine = static_cast<shuffle_lane *>(lanes[lane]);
		if (mine == nullptr)
			continue;
		auto *source = static_cast<shuffle_lane *>(mine->source < warpSize ? lanes[mine->source] : nullptr);
		if (source == nullptr)
			cuda_host::report("a shuffle reads lane %d, which is not in its mask", mine->source);
		mine->result = source->bits;
	}
}

struct ballot_lane {
	int predicate;
	unsigned result;
};

void ballot_all(void *const lanes[32])
{
	unsigned votes = 0;
	for (int lane = 0; lane < warpSize; lane++)
		if (lanes[lane] != nullptr && static_cast<ballot_lane *>(lanes[lane])->predicate)
			votes |= 1u << lane;
	for (int lane = 0; lane < warpSize; lane++)
		if (lanes[lane] != nullptr)
			static_cast<ballot_lane *>(lanes[lane])->result = votes;
}

void nothing(void *const[32])
{
}
} // namespace

uint64_t cuda_host::shuffle(unsigned mask, uint64_t bits, int source)
{
	shuffle_lane mine = {bits, source, 0};
	block_warp_operation("a shuffle", mask, shuffle_all, &mine);
	return mine.result;
}

int cuda_host::lane()
{
	return (int)(block_thread() % warpSize);
}

unsigned __ballot_sync(unsigned mask, int predicate)
{
	ballot_lane mine = {predicate, 0};
	cuda_host::block_warp_operation("a vote", mask, ballot_all, &mine);
	return mine.result;
}

void __syncwarp(unsigned mask)
{
	cuda_host::block_warp_operation("__syncwarp", mask, nothing, nullptr);
}
