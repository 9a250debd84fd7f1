#ifndef WORKER_COMM_MPI_COMPONENTS_H
#define WORKER_COMM_MPI_COMPONENTS_H

/* Keeps the components that MPI has loaded so far in memory until the process ends. Open MPI unloads them in
 * MPI_Finalize while one of its own threads may still run their code: about one process in ten thousand then jumped to
 * unmapped code (Open MPI 4.1.4, seen in runs of 16 ranks on 2 cores). Call it after MPI_Init. */
void wlb_mpi_keep_components(void);

#endif
