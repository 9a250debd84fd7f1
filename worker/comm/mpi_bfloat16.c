#include "worker/comm/mpi_bfloat16.h"

#include "kernels/bfloat16.h"

static MPI_Op sum_op = MPI_OP_NULL, max_op = MPI_OP_NULL;

static void add(void *in, void *in_out, int *count, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = in;
	uint16_t *sum = in_out;
	for (int i = 0; i < *count; i++)
		sum[i] = wlb_bfloat16_of_float(wlb_float_of_bfloat16(sum[i]) + wlb_float_of_bfloat16(x[i]));
}

static void take_larger(void *in, void *in_out, int *count, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = in;
	uint16_t *largest = in_out;
	for (int i = 0; i < *count; i++) {
		float a = wlb_float_of_bfloat16(largest[i]), b = wlb_float_of_bfloat16(x[i]);
		if (b > a || b != b)
			largest[i] = x[i];
	}
}

int wlb_mpi_bfloat16_open(void)
{
	int code = MPI_Op_create(add, 1, &sum_op);
	return code == MPI_SUCCESS ? MPI_Op_create(take_larger, 1, &max_op) : code;
}

void wlb_mpi_bfloat16_close(void)
{
	MPI_Op_free(&sum_op);
	MPI_Op_free(&max_op);
}

MPI_Op wlb_mpi_bfloat16_op(enum wlb_reduce op)
{
	return op == WLB_MAX ? max_op : sum_op;
}
