#include "worker/train/near_resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/seconds.h"
#include "common/show.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/near_files.h"
#include "worker/checkpoint/shard_index.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/near_save.h"
#include "worker/train/near_search.h"
#include "worker/train/near_transfer.h"

/* It is on the heap, since a thread that makes no progress keeps using it. */
struct resume {
	struct wlb_trainer *trainer;
	struct wlb_near_search search;
	struct wlb_train_plan before; /* the plan without a near checkpoint */
	struct wlb_near_transfer *transfers;
	int tries;
	bool is_other_layout; /* of this rank's files */
	bool is_read;         /* what was found is in the memory of a save */
	bool has_removed;     /* this rank has removed a damaged file */
	double *lacks;        /* [ranks] whose node has not their shard */
	void *packer_state;
	size_t packer_state_bytes;
	struct wlb_save_place place;
	char saved[4096]; /* the checkpoint that was made of it */
	int64_t saved_bytes;
};

/* ---- the facts --------------------------------------------------------------------------------------------------- */

static void add_transfer(struct resume *r, int *count, int from, int to, const char *name)
{
	struct wlb_near_transfer *transfer = &r->transfers[(*count)++];
	*transfer = (struct wlb_near_transfer){.from = from, .to = to};
	snprintf(transfer->name, sizeof(transfer->name), "%.63s", name);
}

/* Collective. Brings the facts to each node: the manifest last, since it says that the rest is there. */
static int bring_facts(struct resume *r, struct wlb_error *error)
{
	struct wlb_near_search *s = &r->search;
	const struct wlb_launch *l = r->trainer->launch;
	int count = 0, from = wlb_launch_rank_on(l, s->facts_node, 0);
	for (int node = 0; node < l->node_count; node++) {
		if (wlb_near_search_has_facts(s, node))
			continue;
		add_transfer(r, &count, from, wlb_launch_rank_on(l, node, 0), WLB_PACKER_NAME);
		add_transfer(r, &count, from, wlb_launch_rank_on(l, node, 0), WLB_MANIFEST_NAME);
	}
	return wlb_near_transfer(r->trainer, wlb_near_messages(r->trainer->near), s->path, r->transfers, count, error);
}

/* A wlb_file_function of rank 0. */
static int take_facts(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	struct wlb_train_plan *plan = r->trainer->plan;
	const struct wlb_train_options *o = r->trainer->options;
	if (wlb_train_plan_take(o, r->search.path, plan, error) < 0)
		return -1;
	snprintf(plan->checkpoint, sizeof(plan->checkpoint), "the copies on the nodes in %.4000s", o->save_local);
	return 0;
}

static int share_plan(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	char key[48];
	snprintf(key, sizeof(key), "wlb.near.%d", r->tries++);
	return wlb_launch_share(t->launch, key, t->plan, sizeof(*t->plan), error) < 0 ? WLB_FAILED_HERE : 0;
}

/* Whether the documents may go on in another way than those of the near checkpoint, which wlb_trainer_resume does. */
static bool may_begin_phase(const struct wlb_trainer *t)
{
	return t->plan->changes[0] != '\0' || (t->options->phase_changes & WLB_PHASE_DATA) != 0;
}

/* Collective. Makes the near checkpoint that of the plan. */
static int take(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = bring_facts(r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, t->launch->rank == 0 ? take_facts : NULL, r, error);
	if (rc == 0)
		rc = share_plan(r, error);
	if (rc == 0 && !may_begin_phase(t))
		rc = wlb_agree(t->world, wlb_loader_check_state(t->loader, &t->plan->facts.schedule, error), error);
	return rc;
}

/* ---- from the folders of the nodes ------------------------------------------------------------------------------- */

/* The parts that are in a file of a rank. */
static struct wlb_tensor_part *parts_of(const struct wlb_parts *parts, enum wlb_near_kind kind, int *count)
{
	*count = kind == WLB_NEAR_SHARD ? parts->owned : parts->count - parts->owned;
	return kind == WLB_NEAR_SHARD ? parts->list : parts->list + parts->owned;
}

/* A wlb_file_function: compares what this rank keeps with the files of the rank of the same number, if they are here.
 */
static int compare(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	int rank = r->trainer->launch->rank, count;
	char file[4096];
	struct wlb_error ignored; /* the other way to go on has no need of it */
	wlb_near_file(r->search.path, WLB_NEAR_SHARD, rank, file);
	(void)error;
	r->is_other_layout = false;
	r->lacks[rank] = access(file, F_OK) != 0;
	for (int kind = 0; kind < WLB_NEAR_KINDS && r->lacks[rank] == 0.0; kind++) {
		const struct wlb_tensor_part *parts =
			parts_of(wlb_save_parts(r->trainer), (enum wlb_near_kind)kind, &count);
		wlb_near_file(r->search.path, (enum wlb_near_kind)kind, rank, file);
		if (count == 0 && kind == WLB_NEAR_COPIES)
			r->is_other_layout |= access(file, F_OK) == 0;
		else
			r->is_other_layout |= wlb_near_matches(file, parts, count, &ignored) < 0;
	}
	return 0;
}

/* Collective. Returns 1 where each rank keeps what the rank of its number kept and goes on with it, 0 where not, or a
 * failure. */
static int goes_on_same(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	if (r->search.name.shards != t->launch->size || may_begin_phase(t))
		return 0;
	memset(r->lacks, 0, (size_t)t->launch->size * sizeof(*r->lacks));
	int rc = wlb_work_with_files(&t->files, compare, r, error);
	if (rc < 0)
		return rc;
	double others = r->is_other_layout ? 1.0 : 0.0;
	if (wlb_comm_all_reduce_double(t->world, &others, 1, WLB_SUM, error) < 0 ||
	    wlb_comm_all_reduce_double(t->world, r->lacks, (size_t)t->launch->size, WLB_SUM, error) < 0)
		return WLB_FAILED_HERE;
	return others == 0.0;
}

/* Collective. Brings the files of each rank to its node. */
static int bring_shards(struct resume *r, struct wlb_error *error)
{
	struct wlb_near_search *s = &r->search;
	const struct wlb_launch *l = r->trainer->launch;
	int count = 0;
	for (int rank = 0; rank < l->size; rank++) {
		int from = wlb_launch_rank_on(l, wlb_near_search_node(s, rank), rank);
		for (int kind = WLB_NEAR_KINDS - 1; kind >= 0 && r->lacks[rank] > 0.0; kind--) {
			char file[4096];
			wlb_near_file("", (enum wlb_near_kind)kind, rank, file);
			add_transfer(r, &count, from, rank, file + 1);
		}
	}
	return wlb_near_transfer(r->trainer, wlb_near_messages(r->trainer->near), s->path, r->transfers, count, error);
}

/* So that its copy is found. Returns -1. */
static int remove_damaged(struct resume *r, const char *file)
{
	r->has_removed = unlink(file) == 0 || r->has_removed;
	return -1;
}

/* A wlb_file_function: reads all into the memory of a save, so that the weights are unchanged where it is damaged. */
static int read_files(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	for (int kind = 0; kind < WLB_NEAR_KINDS; kind++) {
		char file[4096];
		int count;
		const struct wlb_tensor_part *parts =
			parts_of(wlb_save_parts(r->trainer), (enum wlb_near_kind)kind, &count);
		wlb_near_file(r->search.path, (enum wlb_near_kind)kind, r->trainer->launch->rank, file);
		if (count > 0 && wlb_near_read_parts(file, parts, count, error) < 0)
			return remove_damaged(r, file);
	}
	free(r->packer_state);
	r->packer_state = NULL;
	return wlb_checkpoint_read_packer(r->search.path, &r->packer_state, &r->packer_state_bytes, error);
}

/* Collective. */
static int read_near(struct resume *r, struct wlb_error *error)
{
	int rc = bring_shards(r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&r->trainer->files, read_files, r, error);
	r->is_read = rc == 0;
	return rc;
}

/* Collective. Gives what was read to the trainer. */
static int apply(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = wlb_loader_restore(t->loader, &t->plan->facts.schedule, r->packer_state, r->packer_state_bytes, error);
	if (rc == 0)
		rc = wlb_parts_store(wlb_save_parts(t), t->optimizer, error);
	rc = wlb_agree(t->world, rc, error);
	if (rc == 0 && wlb_optimizer_share_weights(t->optimizer, error) < 0)
		rc = WLB_FAILED_HERE;
	t->step = t->plan->facts.step;
	t->norms = t->plan->facts.norms;
	t->checkpoint_bytes = (int)wlb_dtype_bytes(t->device->master);
	return rc;
}

/* ---- as a checkpoint --------------------------------------------------------------------------------------------- */

/* A wlb_file_function of rank 0. */
static int begin_checkpoint(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	r->place.is_alone = wlb_save_lock_is_held(&r->trainer->save_lock);
	return wlb_checkpoint_begin(&r->place, r->search.name.step, error);
}

/* A wlb_file_function: the ranks of a node share its shards. */
static int copy_shards(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	const struct wlb_launch *l = r->trainer->launch;
	int rc = 0;
	for (int shard = 0; rc == 0 && shard < r->search.name.shards; shard++) {
		char file[4096];
		if (wlb_launch_rank_on(l, wlb_near_search_node(&r->search, shard), shard) != l->rank)
			continue;
		wlb_near_file(r->search.path, WLB_NEAR_SHARD, shard, file);
		rc = wlb_near_verify(file, error) < 0
		             ? remove_damaged(r, file)
		             : wlb_checkpoint_copy_shard(&r->place, r->search.name.step, shard, file, error);
	}
	return rc;
}

/* A wlb_file_function: the ranks share the groups of shards. */
static int write_indexes(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	const struct wlb_launch *l = r->trainer->launch;
	int shards = r->search.name.shards, rc = 0;
	int groups = wlb_checkpoint_has_indexes(shards) ? wlb_shard_groups(shards) : 0;
	for (int group = l->rank; rc == 0 && group < groups; group += l->size)
		rc = wlb_checkpoint_write_index(&r->place, r->search.name.step, group, shards, error);
	return rc;
}

/* A wlb_file_function of rank 0. */
static int commit_checkpoint(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	struct wlb_trainer *t = r->trainer;
	int64_t step = r->search.name.step;
	if (wlb_checkpoint_read_packer(r->search.path, &r->packer_state, &r->packer_state_bytes, error) < 0 ||
	    wlb_checkpoint_write_packer(&r->place, step, r->packer_state, r->packer_state_bytes, error) < 0 ||
	    wlb_checkpoint_commit(&r->place, &t->plan->facts, r->search.name.shards, (int)t->options->keep, r->saved,
	                          &r->saved_bytes, error) < 0)
		return -1;
	snprintf(t->plan->checkpoint, sizeof(t->plan->checkpoint), "%s", r->saved);
	return 0;
}

/* A wlb_file_function of rank 0. */
static int abandon_checkpoint(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	(void)error;
	wlb_checkpoint_abandon(&r->place, r->search.name.step);
	return 0;
}

/* Collective. Saves the near checkpoint where all nodes see it. */
static int save_near(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	bool is_first = t->launch->rank == 0;
	double started_s = wlb_now_s();
	struct wlb_error ignored;
	r->place = (struct wlb_save_place){
		.dir = t->options->save, .id = t->plan->save_id, .keep_every = t->options->keep_every};
	int rc = wlb_work_with_files(&t->files, is_first ? begin_checkpoint : NULL, r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, copy_shards, r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, write_indexes, r, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, is_first ? commit_checkpoint : NULL, r, error);
	if (rc == WLB_FAILED_EVERYWHERE &&
	    wlb_work_with_files(&t->files, is_first ? abandon_checkpoint : NULL, r, &ignored) == WLB_FAILED_HERE)
		rc = WLB_FAILED_HERE;
	if (rc == 0)
		rc = share_plan(r, error);
	if (rc < 0 || !is_first)
		return rc;
	const struct wlb_saved saved = {.step = r->search.name.step,
	                                .path = r->saved,
	                                .bytes = r->saved_bytes,
	                                .duration_s = wlb_now_s() - started_s,
	                                .stall_s = wlb_now_s() - started_s};
	wlb_record_checkpoint(t->recorder, &saved);
	wlb_show_line(stdout, "the near checkpoint of step %lld becomes %s, since this attempt has another %s",
	              (long long)saved.step, saved.path, may_begin_phase(t) ? "phase" : "layout");
	return 0;
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

/* Collective. Tries the near checkpoint that was found. Where it cannot be used the plan is as before, and the rank
 * that knows says why. */
static int try(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	int rc = take(r, error);
	int is_same = rc == 0 ? goes_on_same(r, error) : rc;
	rc = is_same < 0 ? is_same : is_same > 0 ? read_near(r, error) : save_near(r, error);
	if (rc != WLB_FAILED_EVERYWHERE)
		return rc;
	if (error->message[0] != '\0')
		wlb_show_line(stderr, "wlb-worker: the near checkpoint of step %lld is not used%s: %s",
		              (long long)r->search.name.step, r->has_removed ? " with this file, which is removed" : "",
		              error->message);
	error->message[0] = '\0';
	*t->plan = r->before;
	return WLB_FAILED_EVERYWHERE;
}

/* Collective. Returns 1 where the checkpoint that could not be used is whole without a file that was removed; 0 where
 * not, or none was removed; or a failure. */
static int look_again(struct resume *r, struct wlb_error *error)
{
	double removed = r->has_removed ? 1.0 : 0.0;
	r->has_removed = false;
	if (wlb_comm_all_reduce_double(r->trainer->world, &removed, 1, WLB_MAX, error) < 0)
		return WLB_FAILED_HERE;
	return removed > 0.0 ? wlb_near_search_again(&r->search, error) : 0;
}

/* Collective. Returns 1 where a near checkpoint is used, 0 where none is, or a failure. */
static int search(struct resume *r, struct wlb_error *error)
{
	int64_t step = r->before.checkpoint[0] != '\0' ? r->before.facts.step : 0;
	int rc = 0, found = wlb_near_search_next(&r->search, step, error);
	while (found > 0 && (rc = try(r, error)) == WLB_FAILED_EVERYWHERE) {
		found = look_again(r, error);
		if (found == 0)
			found = wlb_near_search_next(&r->search, step, error);
	}
	return found > 0 && rc < 0 ? rc : found;
}

/* A wlb_file_function of the first rank of a node. */
static int remove_others(void *context, struct wlb_error *error)
{
	struct resume *r = context;
	return wlb_near_remove_others(r->search.folder, r->is_read ? &r->search.name : NULL, error);
}

static int resume(struct resume *r, struct wlb_error *error)
{
	struct wlb_trainer *t = r->trainer;
	const struct wlb_train_options *o = t->options;
	const char *own = wlb_train_own_dir(o);
	bool continues = own != NULL && strcmp(own, o->save) == 0;
	int rc = wlb_near_go_without(t, wlb_near_search_list(&r->search, error), error);
	if (rc < 0 || t->near == NULL)
		return rc;
	int used = continues ? search(r, error) : 0;
	if (used < 0)
		return used;
	if (used > 0)
		wlb_record_attempt(t->recorder, t->plan, o);
	rc = r->is_read ? apply(r, error) : 0;
	if (rc < 0)
		return rc;
	rc = wlb_work_with_files(&t->files, t->launch->local_rank == 0 ? remove_others : NULL, r, error);
	return wlb_near_go_without(t, rc, error);
}

static struct resume *new_resume(struct wlb_trainer *t)
{
	struct resume *r = calloc(1, sizeof(*r));
	size_t ranks = (size_t)t->launch->size, nodes = (size_t)t->launch->node_count;
	if (r == NULL)
		return NULL;
	r->trainer = t;
	r->before = *t->plan;
	r->search.trainer = t;
	r->search.folder = wlb_near_folder(t->near);
	r->lacks = calloc(ranks, sizeof(*r->lacks));
	r->transfers = calloc((ranks + nodes) * WLB_NEAR_KINDS, sizeof(*r->transfers));
	return r;
}

static void free_resume(struct resume *r)
{
	if (r == NULL)
		return;
	free(r->search.found);
	free(r->packer_state);
	free(r->transfers);
	free(r->lacks);
	free(r);
}

int wlb_near_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	t->exit_code = WLB_EXIT_FAILED;
	struct resume *r = new_resume(t);
	bool has_memory = r != NULL && r->lacks != NULL && r->transfers != NULL;
	int rc = wlb_agree(t->world, has_memory ? 0 : wlb_fail(error, "out of memory to resume"), error);
	if (rc == 0)
		rc = resume(r, error);
	if (rc < 0 && error->message[0] != '\0')
		wlb_fail_in(error, "--save-local");
	if (rc != WLB_FAILED_HERE)
		free_resume(r);
	return rc;
}
