/* Maps of matrices: what the tensor memory accelerator asks of them, and where a map keeps what it describes. */
#include "kernels/cuda/tensor_map.h"

#include "tests/cuda_host/hopper.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"

#include <string.h>

namespace
{
const uint64_t MARK = 0x70616d20626c7720; /* of a map that was made here */
const int64_t ALIGNMENT = 16, ELEMENT_BYTES = 2, BOX_COLUMNS = 64;
const int64_t MOST_ROWS = (int64_t)1 << 32, MOST_STRIDE_BYTES = (int64_t)1 << 40;

const char *broken_rule(const void *matrix, int64_t rows, int64_t columns, int64_t stride)
{
	if ((uintptr_t)matrix % ALIGNMENT != 0)
		return "the matrix is not 16-byte aligned";
	if (stride * ELEMENT_BYTES % ALIGNMENT != 0 || stride * ELEMENT_BYTES >= MOST_STRIDE_BYTES)
		return "the stride is not a multiple of 16 bytes below 2^40";
	if (rows < 1 || rows > MOST_ROWS)
		return "the rows are not from 1 to 2^32";
	if (columns < 1 || columns % BOX_COLUMNS != 0 || columns > stride)
		return "the columns are not a multiple of 64 up to the stride";
	const size_t bytes = (size_t)(((rows - 1) * stride + columns) * ELEMENT_BYTES);
	if (cuda_host::memory_of(matrix, bytes) != cuda_host::memory_kind::device)
		return "the matrix is not all device memory";
	return nullptr;
}
} // namespace

int wlb_cuda_map_matrix(struct wlb_tensor_map *map, const void *matrix, int64_t rows, int64_t columns, int64_t stride,
                        struct wlb_error *error)
{
	const cuda_host::guard guard(cuda_host::lock);
	const char *const broken = broken_rule(matrix, rows, columns, stride);
	if (broken != nullptr)
		return wlb_fail(
			error,
			"cuTensorMapEncodeTiled refuses a matrix of %lld rows of %lld elements, %lld apart, at %p: %s",
			(long long)rows, (long long)columns, (long long)stride, matrix, broken);
	*map = {{MARK, (uint64_t)(uintptr_t)matrix, (uint64_t)rows, (uint64_t)columns, (uint64_t)stride}};
	return 0;
}

cuda_host::mapped_matrix cuda_host::matrix_of_map(const wlb_tensor_map &map)
{
	if (map.words[0] != MARK || (uintptr_t)&map % alignof(wlb_tensor_map) != 0)
		report("a box is copied by the map at %p, which wlb_cuda_map_matrix has not made or which is not "
		       "aligned",
		       (const void *)&map);
	return {(const uint16_t *)(uintptr_t)map.words[1], (int64_t)map.words[2], (int64_t)map.words[3],
	        (int64_t)map.words[4]};
}
