/*
 * Saves a checkpoint while training goes on, as CheckFreq (Mohan et al. 2021) and torch's async_save do. The device
 * copies what each rank keeps to host memory, which the trainer has for that, while it computes the passes of the next
 * step; only the update of the weights waits for the copies. Threads do all work with files: rank 0's makes the folder,
 * each rank's writes and syncs its shard, the first rank's of each group of many ranks writes the group's index, and
 * rank 0's commits, or removes what is there where a rank has failed. What the ranks exchange after a step says how
 * many still work and how many have failed, so that all begin the next of these after the same step. One save is in
 * flight at a time; a new one waits until the one before has ended. A save that fails is no failure of the run.
 *
 * A near checkpoint (near_save.h) is saved in the same way, from the same copies, in other phases.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/seconds.h"
#include "common/show.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/shard_group.h"
#include "worker/data/file_progress.h"
#include "worker/data/file_thread.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/near_save.h"
#include "worker/train/trainer.h"

/* What is done before the ranks agree that it has been done. In the first phase the device copies, too. */
enum phase { PREPARING, WRITING, INDEXING, EXCHANGING, KEEPING, COMMITTING, ABANDONING, PHASES, ENDED = PHASES };
/* A checkpoint, or a near one. */
enum kind { FAR, NEAR, KINDS };

/* It is on the heap, since a thread that makes no progress keeps using it; it uses nothing else of the trainer but the
 * optimizer's type of masters. */
struct wlb_save {
	struct wlb_device *device;
	const struct wlb_optimizer *optimizer;
	struct wlb_parts parts;   /* of this rank, for all saves */
	struct wlb_queue *queue;  /* of the copies */
	struct wlb_event *copied; /* the end of the last of them */
	int rank, ranks, keep;
	struct wlb_save_lock *lock; /* on rank 0 */
	struct wlb_near *near;      /* NULL: there are no near checkpoints */
	bool is_first_of_node;

	bool is_in_flight;
	enum kind kind;
	bool is_last; /* of the run */
	enum phase phase;
	struct wlb_save_place place;
	struct wlb_checkpoint_facts facts;
	void *packer_state; /* on the ranks that write it */
	size_t packer_state_bytes;
	double started_s, stall_s; /* when it began, and how long no step ran then */
	double awaited_s;          /* since when no step runs until it has ended; 0: steps run */

	struct wlb_file_thread thread;
	bool is_working; /* the thread runs, or has not been joined */
	int rc;          /* of the thread, once it is joined */
	struct wlb_error error;
	char path[4096]; /* of the checkpoint, once it is committed */
	int64_t bytes;

	int64_t failed[KINDS]; /* saves since the last one that succeeded */
	int64_t left_out;      /* since the one in flight began */
};

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Makes the folder of the checkpoint. */
static int prepare(struct wlb_save *save, struct wlb_error *error)
{
	save->place.is_alone = wlb_save_lock_is_held(save->lock);
	return wlb_checkpoint_begin(&save->place, save->facts.step, error);
}

/* Writes what this rank keeps. On error there is no file, and none is open, since an open file would keep its folder
 * from being removed on NFS. */
static int write_shard(struct wlb_save *save, struct wlb_error *error)
{
	struct wlb_safetensors_output *shard;
	if (wlb_parts_join(&save->parts, save->optimizer, error) < 0 ||
	    wlb_checkpoint_create_shard(&save->place, save->facts.step, save->rank, save->parts.list, save->parts.owned,
	                                &shard, error) < 0)
		return -1;
	if (wlb_safetensors_append(shard, save->parts.list, save->parts.owned, error) < 0) {
		wlb_safetensors_discard(shard);
		return -1;
	}
	return wlb_safetensors_finish(shard, error);
}

/* Writes the index of the group whose first rank this one is. */
static int write_index(struct wlb_save *save, struct wlb_error *error)
{
	return wlb_checkpoint_write_index(&save->place, save->facts.step, save->rank / wlb_shard_group_size(),
	                                  save->ranks, error);
}

/* Writes the packer's state and the manifest, which make the shards a checkpoint. */
static int commit(struct wlb_save *save, struct wlb_error *error)
{
	if (wlb_checkpoint_write_packer(&save->place, save->facts.step, save->packer_state, save->packer_state_bytes,
	                                error) < 0)
		return -1;
	return wlb_checkpoint_commit(&save->place, &save->facts, save->ranks, save->keep, save->path, &save->bytes,
	                             error);
}

/* The next save removes what remains. */
static int abandon(struct wlb_save *save, struct wlb_error *error)
{
	(void)error;
	wlb_checkpoint_abandon(&save->place, save->facts.step);
	return 0;
}

static int prepare_near(struct wlb_save *save, struct wlb_error *error)
{
	return wlb_near_prepare(save->near, &save->facts, save->packer_state, save->packer_state_bytes, error);
}

static int write_near(struct wlb_save *save, struct wlb_error *error)
{
	if (wlb_parts_join(&save->parts, save->optimizer, error) < 0)
		return -1;
	return wlb_near_write_own(save->near, error);
}

static int write_received(struct wlb_save *save, struct wlb_error *error)
{
	return wlb_near_write_received(save->near, error);
}

static int remove_older(struct wlb_save *save, struct wlb_error *error)
{
	return wlb_near_remove_older(save->near, error);
}

static int abandon_near(struct wlb_save *save, struct wlb_error *error)
{
	return wlb_near_abandon(save->near, error);
}

/* Who has work for its thread in a phase. */
enum workers { NOBODY, ALL, FIRST, FIRST_OF_GROUP, FIRST_OF_NODE };

static const struct phase_work {
	int (*function)(struct wlb_save *, struct wlb_error *);
	enum workers workers;
	enum phase next;
} work_of[KINDS][PHASES] = {
	[FAR] = {[PREPARING] = {prepare, FIRST, WRITING},
                 [WRITING] = {write_shard, ALL, INDEXING},
                 [INDEXING] = {write_index, FIRST_OF_GROUP, COMMITTING},
                 [COMMITTING] = {commit, FIRST, ENDED},
                 [ABANDONING] = {abandon, FIRST, ENDED}},
	[NEAR] = {[PREPARING] = {prepare_near, FIRST_OF_NODE, WRITING},
                  [WRITING] = {write_near, ALL, EXCHANGING},
                  [EXCHANGING] = {NULL, NOBODY, KEEPING},
                  [KEEPING] = {write_received, ALL, COMMITTING},
                  [COMMITTING] = {remove_older, FIRST_OF_NODE, ENDED},
                  [ABANDONING] = {abandon_near, FIRST_OF_NODE, ENDED}},
};

static void work(void *argument)
{
	struct wlb_save *save = argument;
	save->rc = work_of[save->kind][save->phase].function(save, &save->error);
	wlb_file_report_end();
}

static bool is_worker(const struct wlb_save *save, enum workers workers)
{
	return workers == ALL || (workers == FIRST && save->rank == 0) ||
	       (workers == FIRST_OF_GROUP && save->rank % wlb_shard_group_size() == 0) ||
	       (workers == FIRST_OF_NODE && save->is_first_of_node);
}

/* Begins a phase. From its start on until it is joined the thread alone writes `rc`. */
static void begin_phase(struct wlb_save *save, enum phase phase)
{
	save->phase = phase;
	save->rc = phase == EXCHANGING ? wlb_near_start_exchange(save->near, &save->error) : 0;
	if (!is_worker(save, work_of[save->kind][phase].workers))
		return;
	save->is_working = wlb_file_thread_start(&save->thread, "a checkpoint", work, save, &save->error) == 0;
	if (!save->is_working)
		save->rc = -1;
}

/* Returns whether this rank's messages have ended, also where they have failed. */
static bool has_exchanged(struct wlb_save *save)
{
	int done = save->rc == 0 ? wlb_near_exchange(save->near, &save->error) : -1;
	if (done < 0)
		save->rc = -1;
	return done != 0;
}

/* Returns whether this rank's work of the phase has ended, which it waits for at most `seconds`. */
static bool has_ended(struct wlb_save *save, double seconds)
{
	if (save->phase == EXCHANGING)
		return has_exchanged(save);
	if (save->is_working && wlb_file_thread_join_within(&save->thread, seconds))
		save->is_working = false;
	return !save->is_working && save->device->ops->event_done(save->device, save->copied);
}

/* ---- the save in flight ------------------------------------------------------------------------------------------ */

/* Collective. Of the ranks that failed the first one keeps its message, and says why; later failures are not
 * reported before a save succeeds. That of the run's last save is an error of the run. */
static int report_failure(struct wlb_trainer *t, struct wlb_save *save)
{
	int is_first = save->failed[save->kind]++ == 0;
	const char *what = save->kind == NEAR ? "near checkpoint" : "checkpoint";
	char detail[128];
	if (wlb_agree(t->world, save->error.message[0] != '\0' ? -1 : 0, &save->error) == WLB_FAILED_HERE)
		return WLB_FAILED_HERE;
	if (!is_first)
		return 0;
	if (save->error.message[0] != '\0' && (save->kind == NEAR || !save->is_last))
		wlb_show_line(stderr, "wlb-worker: rank %d: the %s of step %lld is not saved, training goes on: %s",
		              save->rank, what, (long long)save->facts.step, save->error.message);
	snprintf(detail, sizeof(detail), "the %s of step %lld is not saved: the job's output says why", what,
	         (long long)save->facts.step);
	if (save->rank == 0)
		wlb_record_event(t->recorder, save->kind == NEAR ? WLB_NEAR_FAILED : "checkpoint_failed", detail);
	return 0;
}

/* How long no step has run for the save that ends now. */
static double stalled_s(const struct wlb_save *save, double now_s)
{
	return save->stall_s + (save->awaited_s > 0.0 ? now_s - save->awaited_s : 0.0);
}

/* Rank 0 records and prints a written checkpoint. */
static void report_success(struct wlb_trainer *t, struct wlb_save *save)
{
	double now_s = wlb_now_s();
	const struct wlb_saved saved = {
		.step = save->facts.step,
		.path = save->path,
		.bytes = save->bytes,
		.duration_s = now_s - save->started_s,
		.stall_s = stalled_s(save, now_s),
	};
	int64_t failed = save->failed[FAR];
	save->failed[FAR] = 0;
	if (save->rank != 0)
		return;
	wlb_record_checkpoint(t->recorder, &saved);
	wlb_show_line(stdout, "step %lld | checkpoint %s | %.1f MB | %.2f s | stalled %.3f s", (long long)saved.step,
	              saved.path, 1e-6 * (double)saved.bytes, saved.duration_s, saved.stall_s);
	fflush(stdout);
	if (failed > 1)
		wlb_show_line(stderr, "wlb-worker: %lld checkpoints were not saved before that of step %lld",
		              (long long)failed, (long long)saved.step);
}

void wlb_save_leave_out(const struct wlb_trainer *t)
{
	if (t->save->left_out++ == 0 && t->save->rank == 0)
		wlb_show_line(stderr, "wlb-worker: the checkpoint of step %lld is left out: one is still being written",
		              (long long)t->step);
}

void wlb_save_count(const struct wlb_trainer *t, double *working, double *failed)
{
	struct wlb_save *save = t->save;
	bool is_in_flight = save != NULL && save->is_in_flight;
	*working = is_in_flight && !has_ended(save, 0.0) ? 1.0 : 0.0;
	*failed = is_in_flight && !save->is_working && save->rc < 0 ? 1.0 : 0.0;
}

static void report_near(const struct wlb_trainer *t, struct wlb_save *save)
{
	double now_s = wlb_now_s();
	save->failed[NEAR] = 0;
	if (save->rank != 0)
		return;
	wlb_show_line(stdout, "step %lld | near checkpoint in %s of each node | %.2f s | stalled %.3f s",
	              (long long)save->facts.step, t->options->save_local, now_s - save->started_s,
	              stalled_s(save, now_s));
	fflush(stdout);
}

static void end(struct wlb_trainer *t, struct wlb_save *save)
{
	if (save->phase == COMMITTING && save->kind == FAR)
		report_success(t, save);
	else if (save->phase == COMMITTING)
		report_near(t, save);
	if (save->left_out > 1 && save->rank == 0)
		wlb_show_line(stderr, "wlb-worker: %lld checkpoints were left out until that of step %lld had ended",
		              (long long)save->left_out, (long long)save->facts.step);
	save->left_out = 0;
	save->is_in_flight = false;
	free(save->packer_state);
	save->packer_state = NULL;
}

int wlb_save_advance(struct wlb_trainer *t, double working, double failed, struct wlb_error *error)
{
	struct wlb_save *save = t->save;
	if (save == NULL || !save->is_in_flight || working > 0.0)
		return 0;
	if (failed > 0.0 && save->phase == EXCHANGING) {
		*error = save->error; /* a failure of MPI, as in any other call */
		return WLB_FAILED_HERE;
	}
	enum phase next = work_of[save->kind][save->phase].next;
	if (next == INDEXING && !wlb_checkpoint_has_indexes(save->ranks))
		next = COMMITTING;
	if (failed > 0.0 && save->phase != ABANDONING) {
		if (report_failure(t, save) < 0)
			return WLB_FAILED_HERE;
		begin_phase(save, ABANDONING);
	} else if (next != ENDED) {
		begin_phase(save, next);
	} else {
		end(t, save);
	}
	return 0;
}

void wlb_save_attend(const struct wlb_trainer *t, struct wlb_event *event)
{
	const struct timespec between = {.tv_nsec = 100000};
	struct wlb_save *save = t->save;
	if (save == NULL || !save->is_in_flight || save->phase != EXCHANGING)
		return;
	while (!has_exchanged(save) && !t->device->ops->event_done(t->device, event))
		nanosleep(&between, NULL);
}

int wlb_save_is_in_flight(const struct wlb_trainer *t)
{
	return t->save->is_in_flight && t->save->kind == FAR;
}

int wlb_save_is_busy(const struct wlb_trainer *t)
{
	return t->save->is_in_flight;
}

struct wlb_parts *wlb_save_parts(const struct wlb_trainer *t)
{
	return &t->save->parts;
}

void wlb_save_await_copy(const struct wlb_trainer *t)
{
	if (t->save != NULL && t->save->is_in_flight && t->save->phase == PREPARING)
		t->device->ops->queue_wait(t->device, NULL, t->save->copied);
}

/* Collective. Waits until no save is in flight. Returns 0, or WLB_FAILED_HERE where this rank's files make no progress
 * or a collective failed; the thread may still run then. */
static int finish(struct wlb_trainer *t, struct wlb_error *error)
{
	double round_s = fmin(1.0, t->files.collective_timeout_s / 4.0);
	t->save->awaited_s = wlb_now_s();
	if (t->save->is_in_flight && t->device->ops->event_wait(t->device, t->save->copied, error) < 0)
		return WLB_FAILED_HERE;
	while (t->save->is_in_flight) {
		double sums[2];
		if (!has_ended(t->save, round_s) &&
		    wlb_file_progress_check(&t->save->thread.progress, t->files.storage_timeout_s, error) < 0) {
			wlb_fail_in(error, "checkpoint of step %lld", (long long)t->save->facts.step);
			return WLB_FAILED_HERE;
		}
		wlb_save_count(t, &sums[0], &sums[1]);
		if (wlb_comm_all_reduce_double(t->world, sums, 2, WLB_SUM, error) < 0)
			return WLB_FAILED_HERE;
		if (wlb_save_advance(t, sums[0], sums[1], error) < 0)
			return WLB_FAILED_HERE;
	}
	t->save->awaited_s = 0.0;
	return 0;
}

/* ---- a new save -------------------------------------------------------------------------------------------------- */

static void set_facts(struct wlb_trainer *t, double loss)
{
	const struct wlb_train_options *o = t->options;
	t->save->place = (struct wlb_save_place){.dir = o->save, .id = t->plan->save_id, .keep_every = o->keep_every};
	t->save->facts = (struct wlb_checkpoint_facts){
		.step = t->step,
		.schedule = t->loaded->schedule,
		.model = t->plan->model,
		.seq_length = o->seq_length,
		.global_batch_size = o->global_batch_size,
		.ramp = o->ramp,
		.seed = (uint64_t)o->seed,
		.packing = t->plan->packing,
		.train_loss = loss,
		.hyper = t->plan->hyper,
		.has_hyper = 1,
		.norms = t->norms,
	};
}

static int copy_packer_state(struct wlb_save *save, const struct wlb_loaded_step *loaded, struct wlb_error *error)
{
	save->packer_state_bytes = loaded->packer_state_bytes;
	save->packer_state = malloc(loaded->packer_state_bytes + 1);
	if (save->packer_state == NULL)
		return wlb_fail(error, "out of memory for the state of the packer");
	memcpy(save->packer_state, loaded->packer_state, loaded->packer_state_bytes);
	return 0;
}

/* Starts to copy to host memory what this rank keeps. The host has read the step, so that the device has ended it
 * but for the update of the weights, which wlb_optimizer_fetch makes the queue wait for. */
static int copy(struct wlb_save *save, struct wlb_trainer *t, struct wlb_error *error)
{
	int rc = wlb_parts_fetch(&save->parts, t->optimizer, save->queue, error);
	t->device->ops->event_record(t->device, save->copied, save->queue);
	return rc;
}

/* A failure of this rank counts as one of its thread. */
static void begin(struct wlb_trainer *t, enum kind kind, double loss)
{
	struct wlb_save *save = t->save;
	set_facts(t, loss);
	save->error.message[0] = '\0';
	save->is_in_flight = true;
	save->kind = kind;
	save->near = t->near;
	save->phase = PREPARING;
	save->started_s = wlb_now_s();
	if (kind == NEAR)
		wlb_near_begin(save->near, t->step, t->plan->save_id);
	int rc = copy(save, t, &save->error);
	if (rc == 0 && (kind == NEAR ? save->is_first_of_node : save->rank == 0))
		rc = copy_packer_state(save, t->loaded, &save->error);
	if (rc == 0)
		begin_phase(save, PREPARING);
	else
		save->rc = rc;
	save->stall_s = wlb_now_s() - save->started_s;
}

int wlb_trainer_save(struct wlb_trainer *t, double loss, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	t->exit_code = WLB_EXIT_FAILED;
	t->save_asked = 0;
	t->saved_s = started_s;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_SAVING);
	int rc = finish(t, error);
	if (rc == 0)
		begin(t, FAR, loss);
	t->aside_s += wlb_now_s() - started_s;
	return rc;
}

void wlb_trainer_save_near(struct wlb_trainer *t, double loss)
{
	double started_s = wlb_now_s();
	wlb_trainer_set_activity(t, WLB_ACTIVITY_SAVING);
	begin(t, NEAR, loss);
	t->aside_s += wlb_now_s() - started_s;
}

int wlb_trainer_finish_save(struct wlb_trainer *t, struct wlb_error *error)
{
	if (t->save == NULL)
		return 0;
	double started_s = wlb_now_s();
	t->exit_code = WLB_EXIT_FAILED;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_SAVING);
	t->save->is_last = true;
	int rc = finish(t, error);
	if (rc == 0 && t->save->failed[FAR] > 0) {
		*error = t->save->error;
		if (error->message[0] != '\0')
			wlb_fail_in(error, "checkpoint of step %lld", (long long)t->save->facts.step);
		rc = WLB_FAILED_EVERYWHERE;
	}
	t->aside_s += wlb_now_s() - started_s;
	return rc;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int wlb_save_open(struct wlb_trainer *t, struct wlb_error *error)
{
	const struct wlb_ops *ops = t->device->ops;
	struct wlb_save *save = t->save = calloc(1, sizeof(*save));
	if (save == NULL)
		return wlb_fail(error, "--save: out of memory");
	save->device = t->device;
	save->optimizer = t->optimizer;
	save->lock = &t->save_lock;
	save->rank = wlb_comm_rank(t->world);
	save->ranks = wlb_comm_size(t->world);
	save->keep = (int)t->options->keep;
	save->is_first_of_node = t->launch->local_rank == 0;
	save->queue = ops->queue_new(t->device, 0, error);
	save->copied = save->queue != NULL ? ops->event_new(t->device, 0, error) : NULL;
	if (save->copied == NULL ||
	    wlb_parts_open(&save->parts, t->parameters, wlb_comm_rank(t->groups->data), WLB_STATE_MASTERS, WLB_STATES,
	                   t->options->save_local == NULL, error) < 0)
		return wlb_fail_in(error, "--save");
	/* Or the first save would wait until the system has cleared these pages. */
	memset(save->parts.host, 0, save->parts.host_bytes);
	return 0;
}

void wlb_save_close(struct wlb_trainer *t)
{
	struct wlb_save *save = t->save;
	if (save == NULL)
		return;
	wlb_parts_close(&save->parts);
	t->device->ops->event_free(t->device, save->copied);
	t->device->ops->queue_free(t->device, save->queue);
	free(save->packer_state);
	free(save);
	t->save = NULL;
}
