#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/intact_checkpoint.h"
#include "worker/train/trainer.h"

/* The data that the file functions below use. They are on the heap, since a thread that makes no progress keeps using
 * them. */
struct resume {
	struct wlb_trainer *trainer;
	const char *folder; /* of the checkpoint, or of the published model */
	struct wlb_checkpoint_reader *reader;
	struct wlb_parts parts;
	double *sums;
	const char *damaged; /* a file of the reader's; NULL: none */
	void *packer_state;
	size_t packer_state_bytes;
	int element_bytes;
	int is_damaged; /* of the share that this rank has verified */
};

/* A wlb_file_function. */
static int open_checkpoint(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	r->reader = wlb_checkpoint_open(r->folder, error);
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
	r->element_bytes = wlb_checkpoint_element_bytes(r->folder, error);
	if (r->element_bytes < 0)
		return -1;
	return wlb_checkpoint_read_packer(r->folder, &r->packer_state, &r->packer_state_bytes, error);
}

/* Each rank reads what it keeps, from the shards of any rank; the weights in use it receives from the others too. */
static int read_state(struct resume *r, enum wlb_state state, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int member = wlb_comm_rank(t->groups->data);
	int rc = wlb_parts_open(&r->parts, t->parameters, member, state, state + 1, 0, error);
	if (rc == 0 && r->folder == t->plan->weights && t->options->init_from != NULL)
		wlb_parts_place_in_published(&r->parts);
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
	                            "%.1000s: its files differ between nodes: check that all see one "
	                            "directory",
	                            r->folder);
	return wlb_agree(t->world, rc, error);
}

/* Collective. Sets r->damaged, the same on all ranks: by the sums of what all have read each knows whether a file is
 * damaged whose index it has read. */
static int judge_sums(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	wlb_checkpoint_sums(r->reader, r->sums);
	if (wlb_comm_all_reduce_double(t->world, r->sums, wlb_checkpoint_sum_count(r->reader), WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	double damaged = wlb_checkpoint_find_damaged(r->reader, r->sums);
	if (wlb_comm_all_reduce_double(t->world, &damaged, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	r->damaged = damaged >= 0.0 ? wlb_checkpoint_file_path(r->reader, (int)damaged) : NULL;
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

/* Collective. Sets has_other_data where a new phase may have another dataset, and has it: not each rank knows the
 * digest of its tokens. */
static int compare_data(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_error ignored;
	double differs = wlb_loader_check_state(t->loader, &t->plan->facts.schedule, &ignored) < 0 ? 1.0 : 0.0;
	if (wlb_comm_all_reduce_double(t->world, &differs, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	t->has_other_data = differs > 0.0;
	return 0;
}

/* Before tensors are read, which may take long. */
static int check_loader(struct wlb_trainer *t, struct wlb_error *error)
{
	if (!t->plan->keeps_order)
		return 0;
	if ((t->options->phase_changes & WLB_PHASE_DATA) != 0)
		return compare_data(t, error);
	return judge_loader(t, wlb_loader_check_state(t->loader, &t->plan->facts.schedule, error) < 0, error);
}

/* The documents go on where they were in the checkpoint, or begin anew in a phase that orders them otherwise. A packer
 * of another batch cannot take the state of that one. */
static int restore_loader(struct wlb_trainer *t, const struct resume *r, struct wlb_error *error)
{
	const struct wlb_checkpoint_facts *facts = &t->plan->facts;
	const void *packer_state = t->plan->changes[0] == '\0' ? r->packer_state : NULL;
	int rc = !t->plan->keeps_order || t->has_other_data
	                 ? wlb_loader_begin_after(t->loader, facts->step, facts->schedule.windows, error)
	                 : wlb_loader_restore(t->loader, &facts->schedule, packer_state, r->packer_state_bytes, error);
	return judge_loader(t, rc < 0, error);
}

/* Collective. Reads the plan's checkpoint, and sets *is_damaged where its data are not those that were saved. */
static int read_plan(struct resume *r, int *is_damaged, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	*is_damaged = 0;
	int rc = wlb_work_with_files(&t->files, open_checkpoint, r, error);
	if (rc == 0)
		rc = agree_on_files(r, error);
	wlb_checkpoint_share_check *check = rc == 0 ? wlb_checkpoint_check_before_reading(r->reader) : NULL;
	if (check != NULL)
		rc = wlb_trainer_verify(t, check, is_damaged, error);
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
	t->norms = t->plan->facts.norms;
	t->checkpoint_bytes = r->element_bytes;
	return 0;
}

/* A wlb_file_function: compares a share of a checkpoint with its checksums. The sums of what is read do not tell
 * whether weights are as they were saved, since they are of moments too. */
static int verify_share(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	const struct wlb_launch *launch = r->trainer->launch;
	int rc = wlb_checkpoint_verify(r->folder, launch->rank, launch->size, error);
	r->is_damaged = rc > 0;
	return rc > 0 ? -1 : rc;
}

/* Collective. Another try would find the same damage. */
static int verify(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = wlb_work_with_files(&t->files, verify_share, r, error);
	double damaged = r->is_damaged;
	if (rc != WLB_FAILED_EVERYWHERE)
		return rc;
	if (wlb_comm_all_reduce_double(t->world, &damaged, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	t->exit_code = damaged > 0.0 ? WLB_EXIT_INPUT : WLB_EXIT_FAILED;
	return rc;
}

/* Collective. The masters alone: the moments are zero from the start. */
static int read_weights(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = t->options->finetune ? verify(r, error) : 0;
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, open_checkpoint, r, error);
	if (rc == 0)
		rc = agree_on_files(r, error);
	if (rc == 0)
		rc = read_state(r, WLB_STATE_MASTERS, error);
	if (rc != WLB_FAILED_HERE)
		close_checkpoint(r);
	return rc;
}

/* Collective. Runs `read` with the folder that the option names. */
static int read_folder(struct wlb_trainer *t, const char *option, const char *folder,
                       int (*read)(struct resume *, struct wlb_error *), struct wlb_error *error)
{
	struct resume *r = calloc(1, sizeof(*r));
	int rc = wlb_agree(t->world, r != NULL ? 0 : wlb_fail(error, "out of memory for %s", option), error);
	if (rc == 0) {
		r->trainer = t;
		r->folder = folder;
		rc = read(r, error);
	}
	if (rc < 0 && error->message[0] != '\0')
		wlb_fail_in(error, "%s", option);
	if (rc != WLB_FAILED_HERE && r != NULL) {
		free(r->packer_state);
		free(r);
	}
	return rc;
}

int wlb_trainer_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	return read_folder(t, t->options->finetune ? "--save" : "--load", t->plan->checkpoint, resume, error);
}

int wlb_trainer_read_weights(struct wlb_trainer *t, struct wlb_error *error)
{
	return read_folder(t, t->options->finetune ? "--load" : "--init-from", t->plan->weights, read_weights, error);
}
