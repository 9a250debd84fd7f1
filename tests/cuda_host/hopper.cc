/*
 * Barriers and boxes of kernels/cuda/hopper.cuh. A box leaves all ones where it will be written when its copy starts,
 * and arrives when threads wait for its barrier and no thread of the block can run: what is read before, or overwritten
 * too early, is wrong.
 */
#include <kernels/cuda/hopper.cuh>

#include "tests/cuda_host/block.h"
#include "tests/cuda_host/hopper.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"

#include <algorithm>
#include <map>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

namespace
{
const wlb_mbarrier MARK = 0x7265697272616220; /* what an initialised barrier has in shared memory */
const int PIECE_BYTES = 16, PIECE_COLUMNS = 8, ROW_BYTES = 128, BOX_ALIGNMENT = 1024;
const int NAMED_BARRIERS = 16;

class counting_barrier : public cuda_host::waiting_threads
{
      public:
	std::string describe() const override;
	bool advance() override;
	/* Of the phase that runs: pending > 0, or bytes != 0. */
	void end_phase_if_complete();

	const wlb_mbarrier *at;
	unsigned arrivals, pending; /* of a phase; that have not come */
	int64_t bytes;              /* expected, less those that have come */
	unsigned phase;
};

class named : public cuda_host::waiting_threads
{
      public:
	std::string describe() const override;

	int id, expected, arrived; /* threads */
};

struct box {
	unsigned char *to;
	cuda_host::mapped_matrix from;
	int column, row;
	counting_barrier *barrier;
};

/* Of the block that runs. */
std::map<const wlb_mbarrier *, counting_barrier> barriers;
std::vector<box> under_way;
named named_barriers[NAMED_BARRIERS];

/* "byte 1024 of shared memory" */
std::string place(const void *shared)
{
	char text[64];
	const auto offset = (size_t)((const unsigned char *)shared - wlb_dynamic_shared);
	if (offset < cuda_host::MOST_SHARED_BYTES)
		snprintf(text, sizeof(text), "byte %zu of dynamic shared memory", offset);
	else
		snprintf(text, sizeof(text), "%p", shared);
	return text;
}

void check_barrier(const wlb_mbarrier *barrier)
{
	if ((uintptr_t)barrier % sizeof(*barrier) != 0 ||
	    cuda_host::memory_of(barrier, 1) != cuda_host::memory_kind::pageable ||
	    __asan_region_is_poisoned(const_cast<wlb_mbarrier *>(barrier), sizeof(*barrier)) != nullptr)
		cuda_host::report("the mbarrier at %s is not aligned or not in shared memory", place(barrier).c_str());
}

counting_barrier &find(const wlb_mbarrier *barrier)
{
	const auto at = barriers.find(barrier);
	if (at == barriers.end())
		cuda_host::report("the mbarrier at %s was not initialised", place(barrier).c_str());
	if (*barrier != MARK)
		cuda_host::report("the mbarrier at %s was overwritten", place(barrier).c_str());
	return at->second;
}

int64_t bytes_under_way(const counting_barrier *barrier)
{
	return WLB_BOX_BYTES * std::count_if(under_way.begin(), under_way.end(),
	                                     [barrier](const box &box) { return box.barrier == barrier; });
}

void arrive(wlb_mbarrier *at, unsigned bytes)
{
	counting_barrier &barrier = find(at);
	if (barrier.pending == 0)
		cuda_host::report(
			"more than %u threads arrive in phase %u of the mbarrier at %s, which still lacks %lld bytes",
			barrier.arrivals, barrier.phase, place(at).c_str(), (long long)barrier.bytes);
	barrier.bytes += bytes;
	barrier.pending--;
	barrier.end_phase_if_complete();
}

/* Whether all elements of the box that lie in the matrix lie in device memory. */
bool is_readable(const box &box)
{
	const cuda_host::mapped_matrix &from = box.from;
	const int64_t first = std::max(box.row, 0), end = std::min(box.row + (int64_t)WLB_BOX_ROWS, from.rows);
	const int64_t left = std::max(box.column, 0),
		      right = std::min(box.column + (int64_t)WLB_BOX_COLUMNS, from.columns);
	if (first >= end || left >= right)
		return true;
	const size_t elements = (size_t)((end - 1 - first) * from.stride + right - left);
	return cuda_host::memory_of(from.elements + first * from.stride + left, elements * sizeof(uint16_t)) ==
	       cuda_host::memory_kind::device;
}

/* The matrix's columns are a multiple of 64 and the box's first is one of 8, so that no piece lies in it in part. */
void copy_box(const box &box)
{
	const cuda_host::mapped_matrix &from = box.from;
	if (!is_readable(box))
		cuda_host::report("the box at row %d, column %d of the matrix at %p is no longer all device memory",
		                  box.row, box.column, (const void *)from.elements);
	for (int r = 0; r < WLB_BOX_ROWS; r++)
		for (int p = 0; p < ROW_BYTES / PIECE_BYTES; p++) {
			const int64_t row = box.row + (int64_t)r, column = box.column + (int64_t)p * PIECE_COLUMNS;
			unsigned char *const to =
				box.to + cuda_host::swizzle((size_t)(r * ROW_BYTES + p * PIECE_BYTES));
			if (row < 0 || row >= from.rows || column < 0 || column >= from.columns)
				memset(to, 0, PIECE_BYTES);
			else
				memcpy(to, from.elements + row * from.stride + column, PIECE_BYTES);
		}
}

void check_target(const unsigned char *to)
{
	const uint32_t offset = wlb_shared_address(to);
	if (offset % BOX_ALIGNMENT != 0)
		cuda_host::report("a box is copied to %s, which is not a multiple of 1024", place(to).c_str());
	if (offset + WLB_BOX_BYTES > cuda_host::MOST_SHARED_BYTES ||
	    __asan_region_is_poisoned(const_cast<unsigned char *>(to), WLB_BOX_BYTES) != nullptr)
		cuda_host::report("a box is copied to %s, past the end of shared memory", place(to).c_str());
	for (const box &other : under_way)
		if (std::abs(other.to - to) < WLB_BOX_BYTES)
			cuda_host::report("a box is copied to %s, to which an earlier copy is under way",
			                  place(to).c_str());
}
} // namespace

std::string counting_barrier::describe() const
{
	char text[256];
	snprintf(text, sizeof(text),
	         "waits for phase %u of the mbarrier at %s, which lacks %u of %u arrivals and %lld bytes; copies of "
	         "%lld bytes "
	         "are under way",
	         phase, place(at).c_str(), pending, arrivals, (long long)bytes, (long long)bytes_under_way(this));
	return text;
}

/* Its copies arrive, once all of them are expected. */
bool counting_barrier::advance()
{
	const int64_t arriving = bytes_under_way(this);
	if (arriving == 0 || arriving > bytes)
		return false;
	for (const box &box : under_way)
		if (box.barrier == this)
			copy_box(box);
	under_way.erase(std::remove_if(under_way.begin(), under_way.end(),
	                               [this](const box &box) { return box.barrier == this; }),
	                under_way.end());
	bytes -= arriving;
	end_phase_if_complete();
	return true;
}

void counting_barrier::end_phase_if_complete()
{
	if (pending > 0 || bytes != 0)
		return;
	phase++;
	pending = arrivals;
	cuda_host::block_wake(*this);
}

std::string named::describe() const
{
	return "waits at named barrier " + std::to_string(id) + ", to which " + std::to_string(arrived) + " of " +
	       std::to_string(expected) + " threads have come";
}

uint32_t wlb_shared_address(const void *shared)
{
	const auto offset = (size_t)((const unsigned char *)shared - wlb_dynamic_shared);
	if (offset >= cuda_host::MOST_SHARED_BYTES)
		cuda_host::report("%p is not in dynamic shared memory", shared);
	return (uint32_t)offset;
}

void wlb_mbarrier_init(wlb_mbarrier *at, unsigned arrivals)
{
	check_barrier(at);
	if (arrivals == 0)
		cuda_host::report("the mbarrier at %s is to have no arrivals", place(at).c_str());
	if (barriers.count(at) != 0)
		cuda_host::report("the mbarrier at %s is initialised again", place(at).c_str());
	counting_barrier &barrier = barriers[at];
	barrier.at = at;
	barrier.arrivals = barrier.pending = arrivals;
	barrier.bytes = 0;
	barrier.phase = 0;
	*at = MARK;
}

void wlb_mbarrier_arrive(wlb_mbarrier *barrier)
{
	arrive(barrier, 0);
}

void wlb_mbarrier_arrive_expect_tx(wlb_mbarrier *barrier, unsigned bytes)
{
	arrive(barrier, bytes);
}

void wlb_mbarrier_wait(wlb_mbarrier *at, unsigned parity)
{
	counting_barrier &barrier = find(at);
	if (parity > 1)
		cuda_host::report("a wait for parity %u of the mbarrier at %s: it is 0 or 1", parity,
		                  place(at).c_str());
	if (barrier.phase % 2 == parity)
		cuda_host::block_wait(barrier);
}

void cuda_host::named_barrier(int id, int threads, bool waits)
{
	if (id < 1 || id >= NAMED_BARRIERS)
		report("named barrier %d: it is from 1 to %d", id, NAMED_BARRIERS - 1);
	named &barrier = named_barriers[id];
	if (barrier.arrived > 0 && barrier.expected != threads)
		report("named barrier %d of %d threads, to which others came with %d", id, threads, barrier.expected);
	barrier.id = id;
	barrier.expected = threads;
	barrier.arrived++;
	if (barrier.arrived == threads) {
		barrier.arrived = 0;
		block_wake(barrier);
	} else if (waits) {
		block_wait(barrier);
	}
}

void wlb_tma_load_2d(void *to, const struct wlb_tensor_map *map, int column, int row, wlb_mbarrier *barrier)
{
	const box box = {static_cast<unsigned char *>(to), cuda_host::matrix_of_map(*map), column, row, &find(barrier)};
	check_target(box.to);
	if (column % PIECE_COLUMNS != 0)
		cuda_host::report("a box is copied from column %d, which is not a multiple of 8", column);
	memset(to, 0xff, WLB_BOX_BYTES);
	under_way.push_back(box);
}

void cuda_host::hopper_end_block()
{
	if (!under_way.empty())
		report("the block has ended while %zu boxes are copied to it: the last to %s", under_way.size(),
		       place(under_way.back().to).c_str());
	barriers.clear();
	for (named &barrier : named_barriers)
		barrier.arrived = 0;
	products_end_block();
}
