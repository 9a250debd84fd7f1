/*
 * Sums and maxima of bfloat16 in MPI, which has no such type: its elements travel as unsigned integers of 16 bits, and
 * operations of our own combine them. Private to worker/comm.
 */
#ifndef WORKER_COMM_MPI_BFLOAT16_H
#define WORKER_COMM_MPI_BFLOAT16_H

#include <mpi.h>

#include "worker/comm/comm.h"

/* Makes the operations. After MPI_Init; the close is before MPI_Finalize. Returns MPI_SUCCESS or MPI's error. */
int wlb_mpi_bfloat16_open(void);
void wlb_mpi_bfloat16_close(void);

/* Of MPI_UINT16_T. A sum of two is computed in float and rounded once, to the nearest, ties to even; so a sum over n
 * ranks has n - 1 roundings, in an order that MPI chooses. A maximum is exact; NaN is larger than any number. Both are
 * commutative. */
MPI_Op wlb_mpi_bfloat16_op(enum wlb_reduce op);

#endif
