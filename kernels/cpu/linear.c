/* Multiplies the matrices of linear layers: divides a product into tiles, one for each thread, which OpenBLAS computes.
 */
#include "kernels/cpu/operations.h"

#include <limits.h>
#include <string.h>

/* Tiles of c begin at multiples of GRAIN, so that they have whole cache lines and whole blocks of OpenBLAS's kernels.
 */
enum { GRAIN = 64 };

/* c[m,n] = op(a)[m,k] op(b)[k,n] + added[m,n]; op is transposition where trans_* is 1, ld* the row stride of a matrix
 * as stored. added has c's stride, and may be c; NULL: none. */
struct product {
	int trans_a, trans_b;
	int64_t m, n, k;
	const real *a;
	int64_t lda;
	const real *b;
	int64_t ldb;
	real *c;
	int64_t ldc;
	const real *added;
};

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

/* BLAS refuses a stride of 0, which a matrix without columns has. */
static int stride_of(int64_t ld)
{
	return ld > 0 ? (int)ld : 1;
}

static void multiply_tile(const struct product *p, gemm_function gemm, struct wlb_range row, struct wlb_range column)
{
	if (row.begin == row.end || column.begin == column.end)
		return;
	int64_t offset = row.begin * p->ldc + column.begin;
	if (p->added != NULL && p->added != p->c)
		for (int64_t i = 0; i < row.end - row.begin; i++)
			memcpy(p->c + offset + i * p->ldc, p->added + offset + i * p->ldc,
			       (size_t)(column.end - column.begin) * sizeof(real));
	gemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans, p->trans_b ? CblasTrans : CblasNoTrans,
	     (int)(row.end - row.begin), (int)(column.end - column.begin), (int)p->k, 1,
	     p->a + (p->trans_a ? row.begin : row.begin * p->lda), stride_of(p->lda),
	     p->b + (p->trans_b ? column.begin * p->ldb : column.begin), stride_of(p->ldb), p->added != NULL,
	     p->c + offset, stride_of(p->ldc));
}

static void multiply(struct wlb_device *device, const struct product *p)
{
	if (p->m <= 0 || p->n <= 0)
		return;
	if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX || p->lda > INT_MAX || p->ldb > INT_MAX ||
	    p->ldc > INT_MAX) {
		wlb_cpu_fail(device, "product of %lld x %lld by %lld x %lld: over the 2^31 - 1 of a BLAS dimension",
		             (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
		return;
	}
	double multiplications = (double)p->m * (double)p->n * (double)p->k;
	int threads = multiplications < WLB_CPU_PARALLEL_MULTIPLICATIONS ? 1 : wlb_cpu_of(device)->threads;
	struct grid grid = choose_grid(p->m, p->n, threads);
	gemm_function gemm = GEMM(wlb_cpu_of(device)->blas);
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
	for (int tile = 0; tile < grid.rows * grid.columns; tile++)
		multiply_tile(p, gemm, wlb_cpu_part(p->m, GRAIN, tile / grid.columns, grid.rows),
		              wlb_cpu_part(p->n, GRAIN, tile % grid.columns, grid.columns));
}

void VARIANT(linear)(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                     const struct wlb_weight *w, const void *residual, int64_t n)
{
	multiply(device,
	         &(struct product){0, 1, n, w->out, w->in, x, x_stride, w->values, w->in, y, y_stride, residual});
}

void VARIANT(linear_d_x)(struct wlb_device *device, void *d_x, int64_t d_x_stride, const void *d_y, int64_t d_y_stride,
                         const struct wlb_weight *w, int add, int64_t n)
{
	multiply(device, &(struct product){0, 0, n, w->in, w->out, d_y, d_y_stride, w->values, w->in, d_x, d_x_stride,
	                                   add ? d_x : NULL});
}

void VARIANT(linear_d_w)(struct wlb_device *device, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                         int64_t x_stride, int add, int64_t n, int64_t out, int64_t in)
{
	multiply(device, &(struct product){1, 0, out, in, n, d_y, d_y_stride, x, x_stride, d_w, in, add ? d_w : NULL});
}
