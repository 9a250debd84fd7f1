/* Results of MPI's calls as errors. */
#ifndef WORKER_CHECK_LINKS_MPI_ERROR_H
#define WORKER_CHECK_LINKS_MPI_ERROR_H

#include "libwlb/wlb.h"

/* Returns 0 where `code` is MPI_SUCCESS, else -1 with MPI's text. */
int wlb_mpi_check(int code, struct wlb_error *error);

#endif
