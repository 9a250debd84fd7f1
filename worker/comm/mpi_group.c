#include "worker/comm/mpi_group.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

#include "worker/comm/mpi_bfloat16.h"
#include "worker/comm/mpi_components.h"
#include "worker/comm/mpi_error.h"

/* Tags below are those of messages in the world's own communicator. */
enum { FIRST_TAG = 1000 };

static struct wlb_mpi_group *group_new(MPI_Comm comm, int rank, int size, struct wlb_error *error)
{
	struct wlb_mpi_group *group = calloc(1, sizeof(*group));
	if (group == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	*group = (struct wlb_mpi_group){.comm = comm, .rank = rank, .size = size, .parent = MPI_COMM_NULL};
	/* MPI returns errors; the caller adds the name of the collective. */
	if (comm != MPI_COMM_NULL)
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	return group;
}

/* Open MPI allocates a buffer in each reduce-scatter and frees it. By default malloc gives a large one back to the
 * system, and its pages are then zeroed again in every call, which takes several times as long as the messages. */
static void keep_freed_memory(void)
{
	enum { KEPT_MAX = 32 << 20 }; /* the largest M_MMAP_THRESHOLD that malloc takes */
	mallopt(M_MMAP_THRESHOLD, KEPT_MAX);
	mallopt(M_TRIM_THRESHOLD, 4 * KEPT_MAX);
}

struct wlb_mpi_group *wlb_mpi_open_world(int rank, int size, struct wlb_error *error)
{
	/* Where a host runs more ranks than it has cores, waiting ranks must yield the core to working ones; a setting
	 * of the user is kept. */
	setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	keep_freed_memory();
	int provided = MPI_THREAD_SINGLE;
	if (wlb_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), error) < 0)
		return NULL;
	wlb_mpi_keep_components();
	int mpi_rank = -1, mpi_size = -1;
	MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
	if (mpi_rank != rank || mpi_size != size) {
		wlb_fail(error,
		         "MPI says rank %d of %d, the launcher rank %d of %d: start with srun --mpi=pmix or with the "
		         "mpirun of the MPI that wlb-worker was built with",
		         mpi_rank, mpi_size, rank, size);
		return NULL;
	}
	return wlb_mpi_check(wlb_mpi_bfloat16_open(), error) == 0 ? group_new(MPI_COMM_WORLD, rank, size, error) : NULL;
}

struct wlb_mpi_group *wlb_mpi_duplicate(const struct wlb_mpi_group *world, struct wlb_error *error)
{
	MPI_Comm comm = MPI_COMM_NULL;
	if (wlb_mpi_check(MPI_Comm_dup(world->comm, &comm), error) < 0)
		return NULL;
	return group_new(comm, world->rank, world->size, error);
}

struct member {
	int key, rank;
};

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Sets *group to the group of these members, which this rank of the parent is one of. */
static int group_of(struct wlb_mpi_group *parent, const struct member *members, int size, struct wlb_mpi_group **group,
                    struct wlb_error *error)
{
	struct wlb_mpi_group *made = group_new(MPI_COMM_NULL, 0, size, error);
	if (made == NULL)
		return -1;
	made->parent = parent->comm;
	made->ranks = calloc((size_t)size, sizeof(*made->ranks));
	if (made->ranks == NULL) {
		free(made);
		return wlb_fail(error, "out of memory for a group of %d ranks", size);
	}
	for (int i = 0; i < size; i++) {
		made->ranks[i] = members[i].rank;
		if (members[i].rank == parent->rank)
			made->rank = i;
	}
	*group = made;
	return 0;
}

/* The i-th group, where colors[rank * count + i] is the color of each rank of the parent; `members` is memory. */
static int find_group(struct wlb_mpi_group *parent, const struct wlb_mpi_color *colors, int count, int i,
                      struct member *members, struct wlb_mpi_group **group, struct wlb_error *error)
{
	int size = 0, own = colors[(size_t)parent->rank * (size_t)count + (size_t)i].color;
	for (int rank = 0; rank < parent->size && own >= 0; rank++) {
		const struct wlb_mpi_color *color = &colors[(size_t)rank * (size_t)count + (size_t)i];
		if (color->color == own)
			members[size++] = (struct member){color->key, rank};
	}
	if (size < 2)
		return 0;
	qsort(members, (size_t)size, sizeof(*members), compare);
	if (group_of(parent, members, size, group, error) < 0)
		return -1;
	(*group)->tag = FIRST_TAG + parent->splits + i;
	return 0;
}

int wlb_mpi_split(struct wlb_mpi_group *parent, const struct wlb_mpi_color *own, int count,
                  struct wlb_mpi_group **groups, struct wlb_error *error)
{
	const int numbers = 2 * count;
	struct wlb_mpi_color *colors = calloc((size_t)parent->size * (size_t)count, sizeof(*colors));
	struct member *members = calloc((size_t)parent->size, sizeof(*members));
	int rc = colors != NULL && members != NULL
	                 ? wlb_mpi_connect(parent, error)
	                 : wlb_fail(error, "out of memory for the groups of %d ranks", parent->size);
	if (rc == 0)
		rc = wlb_mpi_check(MPI_Allgather(own, numbers, MPI_INT, colors, numbers, MPI_INT, parent->comm), error);
	for (int i = 0; i < count; i++) {
		groups[i] = NULL;
		if (rc == 0)
			rc = find_group(parent, colors, count, i, members, &groups[i], error);
	}
	for (int i = 0; i < count && rc < 0; i++) {
		wlb_mpi_close(groups[i], 0);
		groups[i] = NULL;
	}
	parent->splits += count;
	free(members);
	free(colors);
	return rc;
}

int wlb_mpi_connect(struct wlb_mpi_group *group, struct wlb_error *error)
{
	MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
	if (group->comm != MPI_COMM_NULL)
		return 0;
	int code = MPI_Comm_group(group->parent, &all);
	if (code == MPI_SUCCESS)
		code = MPI_Group_incl(all, group->size, group->ranks, &some);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_create_group(group->parent, some, group->tag, &group->comm);
	if (some != MPI_GROUP_NULL)
		MPI_Group_free(&some);
	if (all != MPI_GROUP_NULL)
		MPI_Group_free(&all);
	if (code == MPI_SUCCESS)
		MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN);
	return wlb_mpi_check(code, error);
}

void wlb_mpi_close(struct wlb_mpi_group *group, int is_world)
{
	if (group == NULL)
		return;
	if (is_world) {
		wlb_mpi_bfloat16_close();
		MPI_Finalize();
	} else if (group->comm != MPI_COMM_NULL) {
		MPI_Comm_free(&group->comm);
	}
	free(group->ranks);
	free(group);
}

int wlb_mpi_all_reduce_double(struct wlb_mpi_group *group, double *buffer_host, size_t count, enum wlb_reduce op,
                              struct wlb_error *error)
{
	if (count > INT_MAX)
		return wlb_fail(error, "%zu numbers of the host: MPI takes at most %d", count, INT_MAX);
	if (wlb_mpi_connect(group, error) < 0)
		return -1;
	return wlb_mpi_check(MPI_Allreduce(MPI_IN_PLACE, buffer_host, (int)count, MPI_DOUBLE,
	                                   op == WLB_MAX ? MPI_MAX : MPI_SUM, group->comm),
	                     error);
}
