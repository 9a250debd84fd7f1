#include "worker/train/open_dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/data/input.h"
#include "worker/train/agree.h"

/* It is on the heap, since a thread that makes no progress keeps using it. */
struct opening {
	struct wlb_dataset_choice choice;
	struct wlb_dataset_source sources[WLB_DATASET_PARTS_MAX]; /* of the choice */
	struct wlb_dataset *dataset;
	int share, shares;
	int rc; /* of the last file function */
	struct wlb_dataset_check found;
};

/* A wlb_file_function. What is wrong in the share is judged by agree_on_first. */
static int open_and_check(void *opening, struct wlb_error *error)
{
	struct opening *o = opening;
	o->rc = wlb_dataset_open_unchecked(&o->choice, &o->dataset, error);
	if (o->rc == 0)
		wlb_dataset_check(o->dataset, o->share, o->shares, &o->found);
	return o->rc;
}

/* A wlb_file_function. */
static int choose(void *opening, struct wlb_error *error)
{
	struct opening *o = opening;
	o->rc = wlb_dataset_choose(o->dataset, &o->choice, error);
	return o->rc;
}

/* Collective. The rank that has found the first error fails with it. */
static int agree_on_first(struct wlb_comm *world, struct opening *o, struct wlb_error *error)
{
	struct wlb_dataset_check *found = &o->found;
	if (wlb_comm_all_reduce_double(world, found->has_gaps, WLB_DATASET_PARTS_MAX, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	wlb_dataset_check_ends(o->dataset, found);
	double first = -found->place;
	if (wlb_comm_all_reduce_double(world, &first, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	if (found->place < INFINITY)
		o->rc = wlb_fail(error, "%s", found->error.message);
	return wlb_agree(world, o->rc < 0 && found->place == -first ? -1 : 0, error);
}

int wlb_open_dataset(const struct wlb_launch *launch, const struct wlb_file_waiting *files,
                     const struct wlb_dataset_choice *choice, struct wlb_dataset **dataset, int *failure,
                     struct wlb_error *error)
{
	struct opening *o = calloc(1, sizeof(*o));
	int rc = wlb_agree(files->world, o != NULL ? 0 : wlb_fail(error, "out of memory to open a dataset"), error);
	*failure = WLB_UNREADABLE;
	if (rc < 0) {
		free(o);
		return rc;
	}
	*o = (struct opening){.choice = *choice, .share = launch->local_rank, .shares = launch->local_size};
	memcpy(o->sources, choice->sources, (size_t)choice->count * sizeof(*o->sources));
	o->choice.sources = o->sources;
	rc = wlb_work_with_files(files, open_and_check, o, error);
	if (rc == 0)
		rc = agree_on_first(files->world, o, error);
	if (rc == 0)
		rc = wlb_work_with_files(files, choose, o, error);
	if (rc == WLB_FAILED_HERE) /* a thread may still work with it */
		return rc;
	*failure = o->rc;
	*dataset = o->dataset;
	free(o);
	return rc;
}
