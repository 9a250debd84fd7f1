#include <stdio.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/seconds.h"
#include "worker/train/trainer.h"

/* Of the ranks of a data group, which hold the same weights, the first writes. */
static int writes(const struct wlb_trainer *t)
{
	return wlb_comm_rank(t->groups->data) == 0;
}

/* All ranks: the folder, and the memory that the copies need. */
static int begin(struct wlb_trainer *t, struct wlb_parts *parts, struct wlb_error *error)
{
	if (writes(t) && wlb_parts_open_owned(parts, t->parameters, error) < 0)
		return -1;
	return t->launch->rank == 0 ? wlb_checkpoint_begin(t->options->save, t->step, error) : 0;
}

/* All ranks: moments are gathered one after the other, each copied before the next takes its place. */
static int fetch(struct wlb_trainer *t, struct wlb_parts *parts, struct wlb_error *error)
{
	int rc = wlb_parts_fetch(parts, WLB_PART_WEIGHT, error);
	for (int which = 0; which < 2; which++) {
		if (wlb_optimizer_gather_moments(t->optimizer, which, error) < 0)
			return -1;
		/* A rank that failed goes on gathering, for the others of its group. */
		if (rc == 0)
			rc = wlb_parts_fetch(parts, which == 0 ? WLB_PART_FIRST_MOMENT : WLB_PART_SECOND_MOMENT, error);
	}
	return rc;
}

/* All ranks. */
static int write_shards(struct wlb_trainer *t, struct wlb_parts *parts, struct wlb_error *error)
{
	if (fetch(t, parts, error) < 0)
		return -1;
	int shard = t->groups->at.pp * t->groups->layout.tp + t->groups->at.tp;
	return writes(t)
	               ? wlb_checkpoint_write_shard(t->options->save, t->step, shard, parts->list, parts->count, error)
	               : 0;
}

struct written {
	char path[4096];
	int64_t bytes;
};

/* Rank 0. */
static int commit(struct wlb_trainer *t, double loss, struct written *written, struct wlb_error *error)
{
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
		.train_loss = loss,
	};
	if (wlb_checkpoint_write_packer(o->save, t->step, loaded->packer_state, loaded->packer_state_bytes, error) < 0)
		return -1;
	return wlb_checkpoint_commit(o->save, &facts, t->groups->layout.tp * t->groups->layout.pp, (int)o->keep,
	                             written->path, &written->bytes, error);
}

/* All ranks begin a phase together, or none does. */
static int write_all(struct wlb_trainer *t, struct wlb_parts *parts, double loss, struct written *written,
                     struct wlb_error *error)
{
	if (wlb_trainer_agree(t, begin(t, parts, error), error) < 0 ||
	    wlb_trainer_agree(t, write_shards(t, parts, error), error) < 0)
		return -1;
	return wlb_trainer_agree(t, t->launch->rank == 0 ? commit(t, loss, written, error) : 0, error);
}

int wlb_trainer_save(struct wlb_trainer *t, double loss, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	struct written written = {.bytes = 0};
	struct wlb_parts parts = {0};
	t->exit_code = WLB_EXIT_FAILED;
	int rc = write_all(t, &parts, loss, &written, error);
	wlb_parts_close(&parts);
	if (rc < 0 && t->launch->rank == 0)
		wlb_checkpoint_abandon(t->options->save, t->step); /* no rank writes any more */
	if (rc < 0)
		return error->message[0] != '\0' ? wlb_fail_in(error, "checkpoint of step %lld", (long long)t->step)
		                                 : -1;
	if (t->launch->rank != 0)
		return 0;
	double duration_s = wlb_now_s() - started_s;
	wlb_record_checkpoint(t->recorder, t->step, written.path, written.bytes, duration_s);
	printf("step %lld | checkpoint %s | %.1f MB | %.2f s\n", (long long)t->step, written.path,
	       1e-6 * (double)written.bytes, duration_s);
	fflush(stdout);
	return 0;
}
