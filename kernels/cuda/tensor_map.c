/* Encodes maps by the driver's function, which is asked for by name so that nothing links against the driver. */
#include "kernels/cuda/tensor_map.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>

_Static_assert(sizeof(CUtensorMap) == sizeof(struct wlb_tensor_map), "a map is CUDA's");

enum { BOX_ROWS = 64, BOX_COLUMNS = 64, ELEMENT_BYTES = 2, VERSION_WITH_MAPS = 12000 };

typedef CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                              const cuuint64_t *sizes, const cuuint64_t *strides_bytes, const cuuint32_t *box,
                              const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                              CUtensorMapFloatOOBfill fill);

static encode_tiled *encode;

static void find_encode(void)
{
	void *function = NULL;
	enum cudaDriverEntryPointQueryResult result;
	if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, VERSION_WITH_MAPS, cudaEnableDefault,
	                                     &result) == cudaSuccess &&
	    result == cudaDriverEntryPointSuccess)
		memcpy(&encode, &function, sizeof(encode));
}

int wlb_cuda_map_matrix(struct wlb_tensor_map *map, const void *matrix, int64_t rows, int64_t columns, int64_t stride,
                        struct wlb_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_encode);
	if (encode == NULL)
		return wlb_fail(error,
		                "the driver has no cuTensorMapEncodeTiled: install a driver for CUDA 12.0 or later");
	const cuuint64_t sizes[] = {(cuuint64_t)columns, (cuuint64_t)rows};
	const cuuint64_t strides_bytes[] = {(cuuint64_t)stride * ELEMENT_BYTES};
	const cuuint32_t box[] = {BOX_COLUMNS, BOX_ROWS}, element_strides[] = {1, 1};
	CUtensorMap made;
	const CUresult status = encode(&made, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)matrix, sizes, strides_bytes,
	                               box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
	                               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (status != CUDA_SUCCESS)
		return wlb_fail(
			error,
			"cuTensorMapEncodeTiled refuses a matrix of %lld rows of %lld elements, %lld apart, at %p: "
			"error %d",
			(long long)rows, (long long)columns, (long long)stride, matrix, (int)status);
	memcpy(map, &made, sizeof(made));
	return 0;
}
