#include <stdio.h>
#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/parts.h"
#include "worker/seconds.h"
#include "worker/trainer.h"

static int write_all(struct wlb_trainer *t, const struct wlb_parts *parts, double loss, char path[4096], int64_t *bytes,
                     struct wlb_error *error)
{
	const struct wlb_train_options *o = t->options;
	struct wlb_checkpoint_facts facts = {
		.step = t->step,
		.model = t->plan->model,
		.seq_length = o->seq_length,
		.global_batch_size = o->global_batch_size,
		.seed = (uint64_t)o->seed,
		.train_loss = loss,
	};
	wlb_schedule_save(t->schedule, &facts.schedule);
	if (wlb_checkpoint_begin(o->save, t->step, error) < 0 ||
	    wlb_checkpoint_write_shard(o->save, t->step, 0, parts->list, parts->count, error) < 0)
		return -1;
	return wlb_checkpoint_commit(o->save, &facts, 1, (int)o->keep, path, bytes, error);
}

/* Data-parallel ranks hold the same weights: the first writes them all. */
static int save_here(struct wlb_trainer *t, double loss, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	char path[4096];
	int64_t bytes = 0;
	struct wlb_parts parts;
	int rc = wlb_parts_open(&parts, t->parameters, t->optimizer, error);
	if (rc == 0)
		rc = wlb_parts_fetch(&parts, error);
	if (rc == 0)
		rc = write_all(t, &parts, loss, path, &bytes, error);
	wlb_parts_close(&parts);
	if (rc < 0)
		return wlb_fail_in(error, "checkpoint of step %lld", (long long)t->step);
	double duration_s = wlb_now_s() - started_s;
	wlb_record_checkpoint(t->recorder, t->step, path, bytes, duration_s);
	printf("step %lld | checkpoint %s | %.1f MB | %.2f s\n", (long long)t->step, path, 1e-6 * (double)bytes,
	       duration_s);
	fflush(stdout);
	return 0;
}

int wlb_trainer_save(struct wlb_trainer *t, double loss, struct wlb_error *error)
{
	t->exit_code = WLB_EXIT_FAILED;
	return wlb_trainer_agree(t, t->launch->rank == 0 ? save_here(t, loss, error) : 0, error);
}
