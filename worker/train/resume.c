#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/intact_checkpoint.h"
#include "worker/train/trainer.h"

/* The data that the file functions below read. They are on the heap, since a thread that makes no progress keeps using
 * them. */
struct resume {
	const char *checkpoint;
	struct wlb_parts parts;
	void *packer_state;
	size_t packer_state_bytes;
	int element_bytes;
};

/* A wlb_file_function. */
static int read_parts(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	return wlb_checkpoint_read(r->checkpoint, r->parts.list, r->parts.count, error);
}

/* A wlb_file_function. */
static int read_packer(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	r->element_bytes = wlb_checkpoint_element_bytes(r->checkpoint, error);
	if (r->element_bytes < 0)
		return -1;
	return wlb_checkpoint_read_packer(r->checkpoint, &r->packer_state, &r->packer_state_bytes, error);
}

/* Each rank reads what it keeps, from the shards of any rank; the weights in use it receives from the others too. */
static int read_state(struct wlb_trainer *t, struct resume *r, enum wlb_state state, struct wlb_error *error)
{
	int member = wlb_comm_rank(t->groups->data);
	int rc = wlb_agree(t->world, wlb_parts_open_kept(&r->parts, t->parameters, member, state, error), error);
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

static int read_tensors(struct wlb_trainer *t, struct resume *r, struct wlb_error *error)
{
	int rc = 0;
	for (enum wlb_state state = 0; rc == 0 && state < WLB_STATES; state++)
		rc = read_state(t, r, state, error);
	return rc;
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

int wlb_trainer_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	struct resume *r = calloc(1, sizeof(*r));
	int rc = wlb_agree(t->world, r != NULL ? 0 : wlb_fail(error, "out of memory to resume"), error);
	if (r != NULL)
		r->checkpoint = t->plan->checkpoint;
	if (rc == 0)
		rc = check_loader(t, error);
	if (rc == 0)
		rc = wlb_trainer_find_intact(t, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, read_packer, r, error);
	if (rc == 0)
		rc = restore_loader(t, r, error);
	if (rc == 0)
		rc = read_tensors(t, r, error);
	if (rc == 0) {
		t->step = t->plan->facts.step;
		t->checkpoint_bytes = r->element_bytes;
	} else if (error->message[0] != '\0')
		wlb_fail_in(error, "--load");
	if (rc != WLB_FAILED_HERE && r != NULL) {
		free(r->packer_state);
		free(r);
	}
	return rc;
}
