#include <stdio.h>
#include <stdlib.h>

#include "common/seconds.h"
#include "common/show.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/file_progress.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/trainer.h"

/* Returns 1 on the first rank of a data group: the ranks of a group hold the same weights. */
static int is_writer(const struct wlb_trainer *t)
{
	return wlb_comm_rank(t->groups->data) == 0;
}

/* The data that the file functions below write. They are on the heap, since a thread that makes no progress keeps using
 * them. */
struct save {
	const struct wlb_trainer *trainer;
	struct wlb_save_lock *lock; /* on rank 0 */
	double loss;
	struct wlb_save_place place;
	struct wlb_parts parts;
	int first, count;                     /* of the parts whose data are in memory */
	struct wlb_safetensors_output *shard; /* NULL: this rank writes none now */
	char path[4096];                      /* of the checkpoint, once it is written */
	int64_t bytes;
};

/* A wlb_file_function of rank 0: makes the folder of the checkpoint. */
static int begin(void *context, struct wlb_error *error)
{
	struct save *save = context;
	save->place.is_alone = wlb_save_lock_is_held(save->lock);
	return wlb_checkpoint_begin(&save->place, save->trainer->step, error);
}

/* A wlb_file_function of the ranks that write. */
static int create_shard(void *context, struct wlb_error *error)
{
	struct save *save = context;
	const struct wlb_trainer *t = save->trainer;
	int shard = t->groups->coords.pp * t->groups->layout.tp + t->groups->coords.tp;
	return wlb_checkpoint_create_shard(&save->place, t->step, shard, save->parts.list, save->parts.count,
	                                   &save->shard, error);
}

/* A wlb_file_function of the ranks that write: appends the parts that are in memory. */
static int append_parts(void *context, struct wlb_error *error)
{
	struct save *save = context;
	return wlb_safetensors_append(save->shard, save->parts.list + save->first, save->count, error);
}

/* A wlb_file_function of the ranks that write. */
static int finish_shard(void *context, struct wlb_error *error)
{
	struct save *save = context;
	struct wlb_safetensors_output *shard = save->shard;
	save->shard = NULL;
	return wlb_safetensors_finish(shard, error);
}

/* A wlb_file_function of the ranks that have begun a shard. */
static int discard_shard(void *context, struct wlb_error *error)
{
	struct save *save = context;
	(void)error;
	wlb_safetensors_discard(save->shard);
	save->shard = NULL;
	return 0;
}

/* Copies a bucket of the masters or moments to host memory. All ranks of a data group call it; those that do not write
 * have no parts. */
static int fetch(struct wlb_trainer *t, struct save *save, enum wlb_state state, int bucket, struct wlb_error *error)
{
	const void *values = wlb_optimizer_gather(t->optimizer, state, bucket, error);
	if (values == NULL)
		return -1;
	save->first = wlb_parts_find(&save->parts, state, bucket, &save->count);
	wlb_parts_fetch(&save->parts, save->first, save->count, values);
	return t->device->ops->synchronize(t->device, error);
}

/* Collective. Writes the bucket of that number of each rank that has one. */
static int write_bucket(struct wlb_trainer *t, struct save *save, enum wlb_state state, int bucket,
                        struct wlb_error *error)
{
	save->count = 0;
	int rc = bucket < t->parameters->bucket_count ? fetch(t, save, state, bucket, error) : 0;
	rc = wlb_agree(t->world, rc, error);
	return rc == 0 ? wlb_work_with_files(&t->files, save->count > 0 ? append_parts : NULL, save, error) : rc;
}

/* Writes masters and moments, one bucket after the other, so that host memory holds one. Stages have different numbers
 * of buckets, and all ranks take part until the last. */
static int write_states(struct wlb_trainer *t, struct save *save, struct wlb_error *error)
{
	double most = t->parameters->bucket_count;
	int rc = wlb_comm_all_reduce_double(t->world, &most, 1, WLB_MAX, error) < 0 ? WLB_FAILED_HERE : 0;
	for (enum wlb_state state = 0; state < WLB_STATES; state++)
		for (int b = 0; rc == 0 && b < (int)most; b++)
			rc = write_bucket(t, save, state, b, error);
	return rc;
}

/* Collective. Writes the shards of all ranks. What a rank has begun is removed where one of them failed: an open file
 * would keep its folder from being removed on NFS. */
static int write_shards(struct wlb_trainer *t, struct save *save, struct wlb_error *error)
{
	int rc = wlb_work_with_files(&t->files, is_writer(t) ? create_shard : NULL, save, error);
	if (rc == 0)
		rc = write_states(t, save, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, is_writer(t) ? finish_shard : NULL, save, error);
	if (rc == WLB_FAILED_EVERYWHERE &&
	    wlb_work_with_files(&t->files, save->shard != NULL ? discard_shard : NULL, save, error) < 0)
		return WLB_FAILED_HERE;
	return rc;
}

/* A wlb_file_function of rank 0: writes the packer's state and the manifest, which make the shards a checkpoint. */
static int commit(void *context, struct wlb_error *error)
{
	struct save *save = context;
	const struct wlb_trainer *t = save->trainer;
	const struct wlb_train_options *o = t->options;
	const struct wlb_loaded_step *loaded = t->loaded;
	struct wlb_checkpoint_facts facts = {
		.step = t->step,
		.schedule = loaded->schedule,
		.model = t->plan->model,
		.seq_length = o->seq_length,
		.global_batch_size = o->global_batch_size,
		.seed = (uint64_t)o->seed,
		.packing = (enum wlb_strategy)o->packing,
		.train_loss = save->loss,
		.hyper = t->plan->hyper,
		.has_hyper = 1,
	};
	if (wlb_checkpoint_write_packer(&save->place, t->step, loaded->packer_state, loaded->packer_state_bytes,
	                                error) < 0)
		return -1;
	return wlb_checkpoint_commit(&save->place, &facts, t->groups->layout.tp * t->groups->layout.pp, (int)o->keep,
	                             save->path, &save->bytes, error);
}

/* Writes the checkpoint in phases. All ranks begin a phase together, or none does. */
static int write_all(struct wlb_trainer *t, struct save *save, struct wlb_error *error)
{
	int is_first = t->launch->rank == 0;
	int rc = is_writer(t) ? wlb_parts_open_owned(&save->parts, t->parameters, error) : 0;
	rc = wlb_agree(t->world, rc, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, is_first ? begin : NULL, save, error);
	if (rc == 0)
		rc = write_shards(t, save, error);
	if (rc == 0)
		rc = wlb_work_with_files(&t->files, is_first ? commit : NULL, save, error);
	return rc;
}

/* Rank 0 records and prints a written checkpoint. */
static void report_checkpoint(struct wlb_trainer *t, const struct save *save, double duration_s)
{
	wlb_record_checkpoint(t->recorder, t->step, save->path, save->bytes, duration_s);
	wlb_show_line(stdout, "step %lld | checkpoint %s | %.1f MB | %.2f s", (long long)t->step, save->path,
	              1e-6 * (double)save->bytes, duration_s);
	fflush(stdout);
}

/* Rank 0 abandons the save, after all ranks have stopped writing. */
static void abandon(const struct save *save)
{
	wlb_checkpoint_abandon(&save->place, save->trainer->step);
	wlb_file_report_end();
}

int wlb_trainer_save(struct wlb_trainer *t, double loss, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	struct save *save = calloc(1, sizeof(*save));
	t->exit_code = WLB_EXIT_FAILED;
	wlb_trainer_set_activity(t, WLB_ACTIVITY_SAVING);
	int rc = wlb_agree(t->world, save != NULL ? 0 : wlb_fail(error, "out of memory for a checkpoint"), error);
	if (rc == 0) {
		*save = (struct save){
			.trainer = t,
			.lock = &t->save_lock,
			.loss = loss,
			.place = {.dir = t->options->save, .id = t->plan->save_id},
		};
		rc = write_all(t, save, error);
	}
	if (rc == 0 && t->launch->rank == 0)
		report_checkpoint(t, save, wlb_now_s() - started_s);
	t->aside_s += wlb_now_s() - started_s;
	if (rc == WLB_FAILED_EVERYWHERE && t->launch->rank == 0 && save != NULL)
		abandon(save);
	if (rc < 0 && error->message[0] != '\0')
		wlb_fail_in(error, "checkpoint of step %lld", (long long)t->step);
	if (rc != WLB_FAILED_HERE && save != NULL) {
		wlb_parts_close(&save->parts);
		free(save);
	}
	return rc;
}
