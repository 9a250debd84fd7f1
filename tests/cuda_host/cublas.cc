/*
 * Matrix products: cuBLASLt's calls over OpenBLAS. The numbers of both factors become float32, are multiplied and added
 * in float32, and the result is rounded once.
 *
 * There is one algorithm. Its description holds a digest of all that it was chosen for, and a product of any other
 * shape, stride or type is refused with it. It uses a workspace, which it overwrites. Algorithms that split a sum are
 * allowed only where the parts stay in float32; cuBLASLt would take any that the mask allows.
 */
#include "tests/cuda_host/cublas.h"
#include "kernels/bfloat16.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"
#include "tests/cuda_host/sgemm.h"

#include <cublasLt.h>

#include <sanitizer/asan_interface.h>
#include <vector>

namespace
{
const size_t WORKSPACE_BYTES = 4096; /* of the algorithm */

/* What the opaque structures hold. */
struct layout {
	uint64_t type, rows, columns;
	int64_t stride;
};
struct operation {
	uint64_t compute_type, scale_type, transpose_a, transpose_b;
};
struct preference {
	uint64_t workspace_bytes, reductions, alignments[4];
};
struct algorithm {
	uint64_t digest, alignments[4];
};

struct matrix {
	struct layout layout;
	char *values;
};

struct product {
	struct operation operation;
	matrix a, b, c, d;
	float alpha, beta;
	void *workspace;
};

struct inside {
	inside()
	{
		depth++;
	}
	~inside()
	{
		depth--;
	}
	static thread_local int depth;
};
thread_local int inside::depth;

uint64_t choices;

template <typename opaque, typename held> void store(opaque *to, const held &from)
{
	static_assert(sizeof(held) <= sizeof(opaque), "the opaque structure is too small");
	memcpy(to, &from, sizeof(held));
}

template <typename held, typename opaque> held load(const opaque *from)
{
	held to;
	memcpy(&to, from, sizeof(to));
	return to;
}

size_t bytes_of(const layout &l)
{
	return l.type == CUDA_R_16BF ? sizeof(uint16_t) : sizeof(float);
}

/* From the first byte of a matrix to behind its last. */
size_t extent(const layout &l)
{
	return ((size_t)(l.columns - 1) * (size_t)l.stride + l.rows) * bytes_of(l);
}

bool is_matrix(const layout &l)
{
	return l.rows > 0 && l.columns > 0 && l.rows <= INT32_MAX && l.columns <= INT32_MAX &&
	       l.stride >= (int64_t)l.rows;
}

cublasStatus_t check_shapes(const operation &o, const layout &a, const layout &b, const layout &c, const layout &d)
{
	if (!is_matrix(a) || !is_matrix(b) || !is_matrix(c) || !is_matrix(d))
		return CUBLAS_STATUS_INVALID_VALUE;
	const uint64_t m = o.transpose_a ? a.columns : a.rows, k = o.transpose_a ? a.rows : a.columns;
	const uint64_t b_k = o.transpose_b ? b.columns : b.rows, n = o.transpose_b ? b.rows : b.columns;
	if (k != b_k || d.rows != m || d.columns != n || c.rows != m || c.columns != n)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (a.type != b.type || c.type != d.type || (a.type != d.type && d.type != CUDA_R_32F))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}

/* FNV-1a over all that an algorithm is chosen for. */
uint64_t digest(const operation &o, const layout &a, const layout &b, const layout &c, const layout &d)
{
	const struct {
		operation o;
		layout l[4];
	} all = {o, {a, b, c, d}};
	uint64_t words[sizeof(all) / sizeof(uint64_t)], hash = 0xcbf29ce484222325u;
	memcpy(words, &all, sizeof(all));
	for (const uint64_t word : words)
		hash = (hash ^ word) * 0x100000001b3u;
	return hash;
}

void check_range(const char *name, const matrix &m)
{
	if (cuda_host::memory_of(m.values, extent(m.layout)) != cuda_host::memory_kind::device)
		cuda_host::report("cublasLtMatmul: %s, %llu columns of %llu with stride %lld at %p, is not within an "
		                  "allocation of device memory",
		                  name, (unsigned long long)m.layout.columns, (unsigned long long)m.layout.rows,
		                  (long long)m.layout.stride, static_cast<void *>(m.values));
}

/* Whether the ranges of two matrices meet, gaps between columns included. */
bool meet(const matrix &one, const matrix &other)
{
	return one.values < other.values + extent(other.layout) && other.values < one.values + extent(one.layout);
}

bool is_same(const matrix &one, const matrix &other)
{
	return one.values == other.values && one.layout.stride == other.layout.stride;
}

void check_memory(const product &p)
{
	check_range("A", p.a);
	check_range("B", p.b);
	check_range("D", p.d);
	if (p.beta != 0)
		check_range("C", p.c);
	if (meet(p.d, p.a) || meet(p.d, p.b))
		cuda_host::report("cublasLtMatmul: D overlaps a factor");
	if (p.beta != 0 && meet(p.d, p.c) && !is_same(p.d, p.c))
		cuda_host::report("cublasLtMatmul: D overlaps C and is not C");
}

void check_column(const char *name, const void *column, size_t bytes)
{
	const void *bad = __asan_region_is_poisoned(const_cast<void *>(column), bytes);
	if (bad != nullptr)
		cuda_host::report("cublasLtMatmul: %s has %p, which may not be accessed", name, bad);
}

float number_at(const matrix &m, const char *column, size_t row)
{
	if (m.layout.type == CUDA_R_16BF)
		return wlb_float_of_bfloat16(reinterpret_cast<const uint16_t *>(column)[row]);
	return reinterpret_cast<const float *>(column)[row];
}

const char *column_of(const matrix &m, uint64_t column)
{
	return m.values + column * (uint64_t)m.layout.stride * bytes_of(m.layout);
}

std::vector<float> read(const char *name, const matrix &m)
{
	std::vector<float> numbers;
	numbers.reserve(m.layout.rows * m.layout.columns);
	for (uint64_t j = 0; j < m.layout.columns; j++) {
		const char *column = column_of(m, j);
		check_column(name, column, m.layout.rows * bytes_of(m.layout));
		for (uint64_t i = 0; i < m.layout.rows; i++)
			numbers.push_back(number_at(m, column, i));
	}
	return numbers;
}

void write(const matrix &m, const std::vector<float> &numbers)
{
	for (uint64_t j = 0; j < m.layout.columns; j++) {
		char *column = const_cast<char *>(column_of(m, j));
		check_column("D", column, m.layout.rows * bytes_of(m.layout));
		for (uint64_t i = 0; i < m.layout.rows; i++) {
			const float number = numbers[j * m.layout.rows + i];
			if (m.layout.type == CUDA_R_16BF)
				reinterpret_cast<uint16_t *>(column)[i] = wlb_bfloat16_of_float(number);
			else
				reinterpret_cast<float *>(column)[i] = number;
		}
	}
}

void run(const product &p)
{
	const inside call;
	const std::vector<float> a = read("A", p.a), b = read("B", p.b);
	const uint64_t k = p.operation.transpose_a ? p.a.layout.rows : p.a.layout.columns;
	std::vector<float> sums(p.d.layout.rows * p.d.layout.columns);
	if (p.workspace != nullptr)
		memset(p.workspace, 0xff, WORKSPACE_BYTES);
	cuda_host_sgemm(p.operation.transpose_a, p.operation.transpose_b, (int)p.d.layout.rows, (int)p.d.layout.columns,
	                (int)k, p.alpha, a.data(), b.data(), sums.data());
	if (p.beta != 0) {
		const std::vector<float> c = read("C", p.c);
		for (size_t i = 0; i < sums.size(); i++)
			sums[i] += p.beta * c[i];
	}
	write(p.d, sums);
}

bool is_aligned(const void *values, uint64_t alignment)
{
	return reinterpret_cast<uintptr_t>(values) % alignment == 0;
}

cublasStatus_t check_algorithm(const product &p, const algorithm &chosen, size_t workspace_bytes)
{
	const void *const values[] = {p.a.values, p.b.values, p.c.values, p.d.values};
	if (chosen.digest != digest(p.operation, p.a.layout, p.b.layout, p.c.layout, p.d.layout))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (workspace_bytes < WORKSPACE_BYTES ||
	    cuda_host::memory_of(p.workspace, workspace_bytes) != cuda_host::memory_kind::device)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if (!is_aligned(values[i], chosen.alignments[i]))
			return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}
} // namespace

uint64_t cuda_host::cublas_choices()
{
	return choices;
}

bool cuda_host::cublas_runs()
{
	return inside::depth > 0;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	*handle = reinterpret_cast<cublasLtHandle_t>(new char);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	delete reinterpret_cast<char *>(handle);
	return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS:
		return "CUBLAS_STATUS_SUCCESS";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "CUBLAS_STATUS_ALLOC_FAILED";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "CUBLAS_STATUS_INVALID_VALUE";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "CUBLAS_STATUS_NOT_SUPPORTED";
	}
	return "unknown status";
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t stride)
{
	if (size < sizeof(*to))
		return CUBLAS_STATUS_ALLOC_FAILED;
	store(to, layout{(uint64_t)type, rows, columns, stride});
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t size, cublasComputeType_t compute_type,
                                               cudaDataType_t scale_type)
{
	if (size < sizeof(*to))
		return CUBLAS_STATUS_ALLOC_FAILED;
	if (compute_type != CUBLAS_COMPUTE_32F || scale_type != CUDA_R_32F)
		return CUBLAS_STATUS_INVALID_VALUE;
	store(to, operation{(uint64_t)compute_type, (uint64_t)scale_type, CUBLAS_OP_N, CUBLAS_OP_N});
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
	int32_t transpose;
	if (bytes != sizeof(transpose))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&transpose, value, sizeof(transpose));
	operation o = load<operation>(to);
	(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? o.transpose_a : o.transpose_b) = (uint64_t)transpose;
	store(to, o);
	return CUBLAS_STATUS_SUCCESS;
}

/* cuBLASLt's defaults: no workspace, every way to split a sum, and addresses aligned to 256 bytes. */
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t size)
{
	if (size < sizeof(*to))
		return CUBLAS_STATUS_ALLOC_FAILED;
	store(to, preference{0, 7, {256, 256, 256, 256}});
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
	const bool is_workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
	uint64_t number = 0; /* little-endian */
	if (bytes != (is_workspace ? sizeof(uint64_t) : sizeof(uint32_t)))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&number, value, bytes);
	preference p = load<preference>(to);
	if (is_workspace)
		p.workspace_bytes = number;
	else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
		p.reductions = number;
	else
		p.alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = number;
	store(to, p);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation_of,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference_of, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *count)
{
	const cuda_host::guard guard(cuda_host::lock);
	const operation o = load<operation>(operation_of);
	const preference p = load<preference>(preference_of);
	const layout l[] = {load<layout>(a), load<layout>(b), load<layout>(c), load<layout>(d)};
	choices++;
	*count = 0;
	if (wanted < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	const cublasStatus_t status = check_shapes(o, l[0], l[1], l[2], l[3]);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (p.workspace_bytes < WORKSPACE_BYTES || (p.reductions & ~CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	algorithm chosen = {digest(o, l[0], l[1], l[2], l[3]), {}};
	memcpy(chosen.alignments, p.alignments, sizeof(chosen.alignments));
	*results = {{}, WORKSPACE_BYTES, CUBLAS_STATUS_SUCCESS, 1, {}};
	store(&results->algo, chosen);
	*count = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation_of, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *chosen, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	const inside call;
	const auto of = [](const void *values, cublasLtMatrixLayout_t layout_of) {
		return matrix{load<layout>(layout_of), static_cast<char *>(const_cast<void *>(values))};
	};
	const product p = {load<operation>(operation_of),
	                   of(a, a_layout),
	                   of(b, b_layout),
	                   of(c, c_layout),
	                   of(d, d_layout),
	                   *static_cast<const float *>(alpha),
	                   *static_cast<const float *>(beta),
	                   workspace};
	cublasStatus_t status = check_shapes(p.operation, p.a.layout, p.b.layout, p.c.layout, p.d.layout);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = check_algorithm(p, load<algorithm>(chosen), workspace_bytes);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	check_memory(p);
	return cuda_host::stream_queue(stream, [p] { run(p); }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
	                                                                       : CUBLAS_STATUS_INVALID_VALUE;
}
