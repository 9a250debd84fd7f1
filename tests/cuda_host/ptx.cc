/*
 * The instructions of kernels/cuda/ptx.cuh. An asynchronous copy leaves all ones where it will write, and arrives when
 * its thread waits for it: what is read before, or overwritten too early, is wrong in every order.
 */
#include <kernels/cuda/ptx.cuh>

#include "kernels/bfloat16.h"
#include "tests/cuda_host/block.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"

#include <algorithm>
#include <deque>
#include <sanitizer/asan_interface.h>
#include <vector>

namespace
{
const size_t COPY_BYTES = 16;

struct copy {
	void *to;
	const void *from; /* NULL: zeros */
};

typedef std::vector<copy> group;

/* The copies of one thread of the block that runs. */
struct thread_copies {
	group open;
	std::deque<group> under_way;
};

std::vector<thread_copies> copies; /* of all threads of the block */
uint64_t block_of_copies;          /* the block's number */

thread_copies &own_copies()
{
	if (block_of_copies != cuda_host::block_number() || copies.empty()) {
		block_of_copies = cuda_host::block_number();
		copies.assign(blockDim.x * blockDim.y * blockDim.z, thread_copies());
	}
	return copies[cuda_host::block_thread()];
}

bool writes_to(const group &copies_of_group, const void *to)
{
	return std::any_of(copies_of_group.begin(), copies_of_group.end(),
	                   [to](const copy &one) { return one.to == to; });
}

void check_alignment(const char *what, const void *address)
{
	if ((uintptr_t)address % COPY_BYTES != 0)
		cuda_host::report("%s at %p, which is not 16-byte aligned", what, address);
}

void check_shared(const char *what, const void *address)
{
	check_alignment(what, address);
	if (cuda_host::memory_of(address, 1) != cuda_host::memory_kind::pageable)
		cuda_host::report("%s at %p, which is not shared memory", what, address);
	if (__asan_region_is_poisoned(const_cast<void *>(address), COPY_BYTES) != nullptr)
		cuda_host::report("%s at %p, past the end of shared memory", what, address);
}

struct matrices_lane {
	const void *row;
	uint32_t *fragments;
};

uint16_t element(void *const lanes[32], int matrix, int row, int column)
{
	const auto *lane = static_cast<matrices_lane *>(lanes[8 * matrix + row]);
	return static_cast<const uint16_t *>(lane->row)[column];
}

template <bool transposed> void load_all(void *const lanes[32])
{
	for (int lane = 0; lane < warpSize; lane++)
		for (int matrix = 0; matrix < 4; matrix++) {
			const int r = lane / 4, c = lane % 4 * 2;
			const uint16_t low = transposed ? element(lanes, matrix, c, r) : element(lanes, matrix, r, c);
			const uint16_t high =
				transposed ? element(lanes, matrix, c + 1, r) : element(lanes, matrix, r, c + 1);
			static_cast<matrices_lane *>(lanes[lane])->fragments[matrix] = low | (uint32_t)high << 16;
		}
}

struct multiply_lane {
	float *d;
	const uint32_t *a;
	uint32_t b[2];
};

float bf16(uint32_t fragment, int column)
{
	return __uint_as_float(column % 2 == 0 ? fragment << 16 : fragment & 0xffff0000u);
}

/* Every product is exact in double; the sum is rounded once. A GPU rounds between. */
void multiply_all(void *const lanes[32])
{
	for (int lane = 0; lane < warpSize; lane++)
		for (int i = 0; i < 4; i++) {
			const int row = lane / 4, half = i / 2, column = lane % 4 * 2 + i % 2;
			float *d = &static_cast<multiply_lane *>(lanes[lane])->d[i];
			double sum = *d;
			for (int k = 0; k < 16; k++) {
				const int at = k % 8 / 2, part = k / 8;
				const auto *left = static_cast<multiply_lane *>(lanes[4 * row + at]);
				const auto *right = static_cast<multiply_lane *>(lanes[4 * column + at]);
				sum += (double)bf16(left->a[2 * part + half], k) * (double)bf16(right->b[part], k);
			}
			*d = (float)sum;
		}
}
} // namespace

void wlb_cp_async(void *to, const void *from, bool valid)
{
	check_shared("cp.async writes", to);
	check_alignment("cp.async reads", from);
	if (valid && cuda_host::memory_of(from, COPY_BYTES) != cuda_host::memory_kind::device)
		cuda_host::report("cp.async reads 16 bytes at %p, which are not all device memory", from);
	memset(to, 0xff, COPY_BYTES);
	thread_copies &own = own_copies();
	if (writes_to(own.open, to) ||
	    std::any_of(own.under_way.begin(), own.under_way.end(), [to](const group &g) { return writes_to(g, to); }))
		cuda_host::report("cp.async writes to %p, to which an earlier copy is under way", to);
	own.open.push_back({to, valid ? from : nullptr});
}

void wlb_cp_async_commit()
{
	thread_copies &own = own_copies();
	own.under_way.push_back(std::move(own.open));
	own.open.clear();
}

void cuda_host::cp_async_wait(int newest)
{
	std::deque<group> &under_way = own_copies().under_way;
	while (under_way.size() > (size_t)newest) {
		for (const copy &copy : under_way.front()) {
			if (copy.from == nullptr)
				memset(copy.to, 0, COPY_BYTES);
			else
				memcpy(copy.to, copy.from, COPY_BYTES);
		}
		under_way.pop_front();
	}
}

void wlb_ldmatrix_x4(uint32_t (&m)[4], const void *row)
{
	check_shared("ldmatrix reads", row);
	matrices_lane mine = {row, m};
	cuda_host::block_warp_operation("ldmatrix", 0xffffffffu, load_all<false>, &mine);
}

void wlb_ldmatrix_x4_trans(uint32_t (&m)[4], const void *row)
{
	check_shared("ldmatrix.trans reads", row);
	matrices_lane mine = {row, m};
	cuda_host::block_warp_operation("ldmatrix.trans", 0xffffffffu, load_all<true>, &mine);
}

/* To nearest, ties to even; what is not a number becomes the one that a GPU gives. */
static uint32_t to_bf16(float value)
{
	return isnan(value) ? 0x7fff : wlb_bfloat16_of_float(value);
}

uint32_t wlb_pack_bf16(float low, float high)
{
	return to_bf16(low) | to_bf16(high) << 16;
}

void wlb_mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
	multiply_lane mine = {d, a, {b0, b1}};
	cuda_host::block_warp_operation("mma.sync", 0xffffffffu, multiply_all, &mine);
}
