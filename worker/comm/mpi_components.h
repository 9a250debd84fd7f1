#ifndef WORKER_COMM_MPI_COMPONENTS_H
#define WORKER_COMM_MPI_COMPONENTS_H

/* Keeps the components that MPI has loaded so far in memory until the process ends. Open MPI unloads them in
 * MPI_Finalize while a thread of its own may still be on its way through one: about one process in ten thousand then
 * jumped to code that was gone (Open MPI 4.1.4, seen in runs of 16 ranks on 2 cores). To be called after MPI_Init. */
void wlb_mpi_keep_components(void);

#endif
