#include "worker/comm/mpi_bfloat16.h"

#include <stdint.h>
#include <string.h>

static MPI_Op sum_op = MPI_OP_NULL, max_op = MPI_OP_NULL;

static float to_float(uint16_t value)
{
	uint32_t bits = (uint32_t)value << 16;
	float result;
	memcpy(&result, &bits, sizeof(result));
	return result;
}

/* Adds a half of the last place that stays, or just less where that place is even. A NaN stays one: it is made quiet,
 * so that cutting its payload does not leave an infinity. */
static uint16_t rounded(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
	return (uint16_t)((value != value ? quiet : nearest) >> 16);
}

static void add(void *in, void *in_out, int *count, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = in;
	uint16_t *sum = in_out;
	for (int i = 0; i < *count; i++)
		sum[i] = rounded(to_float(sum[i]) + to_float(x[i]));
}

static void take_larger(void *in, void *in_out, int *count, MPI_Datatype *type)
{
	(void)type;
	const uint16_t *x = in;
	uint16_t *largest = in_out;
	for (int i = 0; i < *count; i++) {
		float a = to_float(largest[i]), b = to_float(x[i]);
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
