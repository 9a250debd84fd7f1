/* Is this a working MPI world? Prints its size and the node of each rank from rank 0; 1 when a sum is wrong. With an
 * argument the last rank aborts all of them with code 7. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_LENGTH 64

int main(int argc, char **argv)
{
	int rank, size, sum = 0;
	char node[NODE_LENGTH] = "";
	const char *name = getenv("SLURMD_NODENAME");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(node, sizeof(node), "%s", name ? name : "?");
	char *nodes = malloc((size_t)size * NODE_LENGTH);
	if (!nodes)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Gather(node, NODE_LENGTH, MPI_CHAR, nodes, NODE_LENGTH, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ranks %d on", size);
		for (int i = 0; i < size; i++)
			printf(" %s", nodes + i * NODE_LENGTH);
		printf("\n");
	}
	free(nodes);
	if (argc > 1 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	MPI_Finalize();
	return sum == size * (size - 1) / 2 ? 0 : 1;
}
