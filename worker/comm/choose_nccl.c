#include "worker/comm/choose_nccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libwlb/hash.h"
#include "worker/comm/mpi_error.h"
#include "worker/comm/transport.h"

/* A hash of the node's name and the GPU's address: equal on two ranks that share a GPU. */
static uint64_t gpu_of(const struct wlb_device *device)
{
	char text[512] = "";
	gethostname(text, 256);
	text[255] = '\0';
	snprintf(text + strlen(text), 200, "/%s", device->hardware);
	return wlb_hash_text(WLB_HASH_OF_NOTHING, text);
}

struct place {
	uint64_t gpu;
	int rank;
};

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sets *shares to 1 where two ranks have one GPU, with the reason. */
static int find_shared(struct wlb_mpi_group *all, const struct wlb_device *device, int *shares,
                       struct wlb_error *reason, struct wlb_error *error)
{
	int rank = 0, ranks = 0;
	MPI_Comm_rank(all->comm, &rank);
	MPI_Comm_size(all->comm, &ranks);
	struct place own = {.gpu = gpu_of(device), .rank = rank};
	struct place *places = calloc((size_t)ranks, sizeof(*places));
	if (places == NULL)
		return wlb_fail(error, "out of memory for the GPUs of %d ranks", ranks);
	int rc = wlb_mpi_check(
		MPI_Allgather(&own, (int)sizeof(own), MPI_BYTE, places, (int)sizeof(own), MPI_BYTE, all->comm), error);
	qsort(places, (size_t)ranks, sizeof(*places), compare);
	*shares = 0;
	for (int i = 1; i < ranks && rc == 0 && !*shares; i++)
		if (places[i].gpu == places[i - 1].gpu) {
			*shares = 1;
			wlb_fail(reason, "ranks %d and %d share a GPU, which NCCL refuses", places[i - 1].rank,
			         places[i].rank);
		}
	free(places);
	return rc;
}

/* Tells all ranks the reason of the first rank that has one. Returns 1 where there is one, 0, or -1. */
static int share_reason(struct wlb_mpi_group *all, int has_reason, struct wlb_error *reason, struct wlb_error *error)
{
	int rank = 0, ranks = 0, first;
	MPI_Comm_rank(all->comm, &rank);
	MPI_Comm_size(all->comm, &ranks);
	first = has_reason ? rank : ranks;
	if (wlb_mpi_check(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, all->comm), error) < 0)
		return -1;
	if (first == ranks)
		return 0;
	int rc = wlb_mpi_check(MPI_Bcast(reason->message, (int)sizeof(reason->message), MPI_CHAR, first, all->comm),
	                       error);
	return rc == 0 ? 1 : -1;
}

int wlb_choose_nccl(struct wlb_mpi_group *all, struct wlb_device *device, enum wlb_transport_choice choice, char *why,
                    size_t size, struct wlb_error *error)
{
	struct wlb_error reason = {0};
	int shares = 0;
	if (choice == WLB_TRANSPORT_MPI)
		return 0;
	int unusable = device->host_memory ? wlb_fail(&reason, "the device %s is no GPU", device->name)
	                                   : wlb_nccl_usable(&reason);
	int found = share_reason(all, unusable < 0, &reason, error);
	if (found == 0 && (find_shared(all, device, &shares, &reason, error) < 0))
		return -1;
	if (found < 0 || (found == 0 && !shares))
		return found < 0 ? -1 : 1;
	if (choice == WLB_TRANSPORT_NCCL)
		return wlb_fail(error, "--transport nccl: %s; use --transport mpi", reason.message);
	wlb_text_show(why, size, reason.message);
	return 0;
}
