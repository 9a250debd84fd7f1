#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/intact_checkpoint.h"
#include "worker/train/trainer.h"

/* The data that the file functions below use. They are on the heap, since a thread that makes no progress keeps using
 * them. */
struct resume {
	struct wlb_trainer *trainer;
	struct wlb_checkpoint_reader *reader;
	struct wlb_parts parts;
	double *sums;
	const char *damaged; /* a file of the reader's; NULL: none */
	void *packer_state;
	size_t packer_state_bytes;
	int element_bytes;
};

/* A wlb_file_function. */
static int open_checkpoint(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	r->reader = wlb_checkpoint_open(r->trainer->plan->checkpoint, error);
	if (r->reader == NULL)
		return -1;
	r->sums = calloc(wlb_checkpoint_sum_count(r->reader) + 1, sizeof(*r->sums));
	return r->sums != NULL ? 0 : wlb_fail(error, "out of memory for the sums of a checkpoint");
}

static void close_checkpoint(struct resume *r)
{
	wlb_checkpoint_close(r->reader);
	free(r->sums);
	r->reader = NULL;
	r->sums = NULL;
	r->damaged = NULL;
}

/* A wlb_file_function. */
static int read_parts(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	return wlb_checkpoint_read_parts(r->reader, r->parts.list, r->parts.count, error);
}

/* A wlb_file_function. */
static int read_packer(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	const char *checkpoint = r->trainer->plan->checkpoint;
	r->element_bytes = wlb_checkpoint_element_bytes(checkpoint, error);
	if (r->element_bytes < 0)
		return -1;
	return wlb_checkpoint_read_packer(checkpoint, &r->packer_state, &r->packer_state_bytes, error);
}

/* Each rank reads what it keeps, from the shards of any rank; the weights in use it receives from the others too. */
static int read_state(struct resume *r, enum wlb_state state, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int member = wlb_comm_rank(t->groups->data);
	int rc = wlb_parts_open(&r->parts, t->parameters, member, state, state + 1, 0, error);
	rc = wlb_agree(t->world, rc, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, read_parts, r, error);
	if (rc == 0)
		rc = wlb_agree(t->world, wlb_parts_store(&r->parts, t->optimizer, error), error);
	if (rc == 0 && state == WLB_STATE_MASTERS && wlb_optimizer_share_weights(t->optimizer, error) < 0)
		rc = WLB_FAILED_HERE;
	if (rc != WLB_FAILED_HERE)
		wlb_parts_close(&r->parts);
	return rc;
}

/* Collective. The ranks add their sums, so all must have read a manifest with as many files. */
static int agree_on_files(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	double count = (double)wlb_checkpoint_sum_count(r->reader), bounds[2] = {count, -count};
	if (wlb_comm_all_reduce_double(t->world, bounds, 2, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	int rc = bounds[0] == count && bounds[1] == -count
	                 ? 0
	                 : wlb_fail(error,
	                            "%.1000s: its manifest differs between nodes: check that all see one "
	                            "directory",
	                            t->plan->checkpoint);
	return wlb_agree(t->world, rc, error);
}

/* Collective. Sets r->damaged: by the sums of what all ranks have read each of them knows the same. */
static int judge_sums(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	wlb_checkpoint_sums(r->reader, r->sums);
	if (wlb_comm_all_reduce_double(t->world, r->sums, wlb_checkpoint_sum_count(r->reader), WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	r->damaged = wlb_checkpoint_find_damaged(r->reader, r->sums);
	return 0;
}

/* Reads masters and moments, and judges them. */
static int read_tensors(struct resume *r, struct wlb_error *error)
{
	int rc = 0;
	for (enum wlb_state state = 0; rc == 0 && state < WLB_STATES; state++)
		rc = read_state(r, state, error);
	return rc == 0 ? judge_sums(r, error) : rc;
}

/* Collective. Ends the attempt where the loader of a rank does not take the checkpoint's state: each later try would
 * refuse another dataset than the checkpoint's, too. */
static int judge_loader(struct wlb_trainer *t, int failed, struct wlb_error *error)
{
	if (failed)
		wlb_fail_in(error, "%.1000s", t->plan->checkpoint);
	int rc = wlb_agree(t->world, failed ? -1 : 0, error);
	return rc == WLB_FAILED_EVERYWHERE ? wlb_trainer_judge_failure(t, failed, error) : rc;
}

/* Before tensors are read, which may take long. */
static int check_loader(struct wlb_trainer *t, struct wlb_error *error)
{
	return judge_loader(t, wlb_loader_check_state(t->loader, &t->plan->facts.schedule, error) < 0, error);
}

static int restore_loader(struct wlb_trainer *t, const struct resume *r, struct wlb_error *error)
{
	int failed = wlb_loader_restore(t->loader, &t->plan->facts.schedule, r->packer_state, r->packer_state_bytes,
	                                error) < 0;
	return judge_loader(t, failed, error);
}

/* Collective. Reads the plan's checkpoint, and sets *is_damaged where its data are not those that were saved. */
static int read_plan(struct resume *r, int *is_damaged, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	*is_damaged = 0;
	int rc = wlb_work_with_files(&t->files, open_checkpoint, r, error);
	if (rc == 0)
		rc = agree_on_files(r, error);
	if (rc == 0 && !wlb_checkpoint_has_checksums(r->reader))
		rc = wlb_trainer_verify(t, is_damaged, error);
	if (rc == 0 && !*is_damaged)
		rc = read_tensors(r, error);
	*is_damaged |= r->damaged != NULL;
	return rc;
}

/* Collective. Reads the newest checkpoint whose data are those that were saved. */
static int read_intact(struct resume *r, struct wlb_error *error)
{
	int rc = 0;
	for (int is_damaged = 1; rc == 0 && is_damaged;) {
		rc = read_plan(r, &is_damaged, error);
		if (rc == 0 && is_damaged)
			rc = wlb_trainer_take_older(r->trainer, r->damaged, error);
		if (rc != WLB_FAILED_HERE)
			close_checkpoint(r);
	}
	return rc;
}

static int resume(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = check_loader(t, error);
	if (rc == 0)
		rc = read_intact(r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, read_packer, r, error);
	if (rc == 0)
		rc = restore_loader(t, r, error);
	if (rc < 0)
		return rc;
	t->step = t->plan->facts.step;
	t->checkpoint_bytes = r->element_bytes;
	return 0;
}

int wlb_trainer_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	struct resume *r = calloc(1, sizeof(*r));
	int rc = wlb_agree(t->world, r != NULL ? 0 : wlb_fail(error, "out of memory to resume"), error);
	if (r != NULL)
		r->trainer = t;
	if (rc == 0)
		rc = resume(r, error);
	if (rc < 0 && error->message[0] != '\0')
		wlb_fail_in(error, "--load");
	if (rc != WLB_FAILED_HERE && r != NULL) {
		free(r->packer_state);
		free(r);
	}
	return rc;
}
