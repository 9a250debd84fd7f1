#include "worker/comm/mpi_error.h"

#include <mpi.h>

int wlb_mpi_check(int code, struct wlb_error *error)
{
	if (code == MPI_SUCCESS)
		return 0;
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;
	MPI_Error_string(code, text, &length);
	return wlb_fail(error, "%s", text);
}
