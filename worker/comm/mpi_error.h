/* Results of MPI's calls as errors. */
#ifndef WORKER_COMM_MPI_ERROR_H
#define WORKER_COMM_MPI_ERROR_H

#include "libwlb/wlb.h"

/* Returns 0 for MPI_SUCCESS, else -1 with MPI's text. */
int wlb_mpi_check(int code, struct wlb_error *error);

#endif
