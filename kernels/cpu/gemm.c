/* Multiplies matrices: divides a product into tiles, one for each thread, which OpenBLAS computes. */
#include "kernels/cpu/operations.h"

#include <limits.h>

/* Tiles of c begin at multiples of GRAIN, so that they have whole cache lines and whole blocks of OpenBLAS's kernels.
 */
enum { GRAIN = 64 };

struct grid {
	int rows;
	int columns;
};

/* Chooses how c is divided among the threads: into the smallest tiles, and of equal ones into those for which a thread
 * packs the least of a and b. */
static struct grid choose_grid(int64_t m, int64_t n, int threads)
{
	struct grid best = {1, 1};
	double best_cost = 0;
	for (int rows = 1; rows <= threads; rows++) {
		int columns = threads / rows;
		double height = (double)((m + rows - 1) / rows), width = (double)((n + columns - 1) / columns);
		double cost = height * width + 16 * (height + width);
		if (rows == 1 || cost < best_cost) {
			best = (struct grid){rows, columns};
			best_cost = cost;
		}
	}
	return best;
}

void VARIANT(gemm)(struct wlb_device *device, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const void *a_in, int64_t lda, const void *b_in, int64_t ldb, double beta, void *c_out, int64_t ldc)
{
	const real *a = a_in, *b = b_in;
	real *c = c_out;
	if (m <= 0 || n <= 0)
		return;
	if (m > INT_MAX || n > INT_MAX || k > INT_MAX || lda > INT_MAX || ldb > INT_MAX || ldc > INT_MAX) {
		wlb_cpu_fail(device, "gemm: %lld x %lld x %lld is over the 2^31 - 1 of a BLAS dimension", (long long)m,
		             (long long)n, (long long)k);
		return;
	}
	double multiplications = (double)m * (double)n * (double)k;
	int threads = multiplications < WLB_CPU_PARALLEL_MULTIPLICATIONS ? 1 : wlb_cpu_of(device)->threads;
	struct grid grid = choose_grid(m, n, threads);
	int tiles = grid.rows * grid.columns;
	gemm_function multiply = GEMM(wlb_cpu_of(device)->blas);
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
	for (int tile = 0; tile < tiles; tile++) {
		struct wlb_range row = wlb_cpu_part(m, GRAIN, tile / grid.columns, grid.rows);
		struct wlb_range column = wlb_cpu_part(n, GRAIN, tile % grid.columns, grid.columns);
		if (row.begin == row.end || column.begin == column.end)
			continue;
		multiply(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans,
		         (int)(row.end - row.begin), (int)(column.end - column.begin), (int)k, (real)alpha,
		         a + (trans_a ? row.begin : row.begin * lda), (int)lda,
		         b + (trans_b ? column.begin * ldb : column.begin), (int)ldb, (real)beta,
		         c + row.begin * ldc + column.begin, (int)ldc);
	}
}
