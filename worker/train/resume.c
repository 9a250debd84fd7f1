#include <stdlib.h>

#include "worker/checkpoint/checkpoint.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/trainer.h"

/* Each rank reads what it holds, whoever wrote it. */
static int read_kind(struct wlb_trainer *t, enum wlb_part_kind kind, struct wlb_error *error)
{
	struct wlb_parts parts;
	int rc = wlb_parts_open_held(&parts, t->parameters, kind, error);
	if (rc == 0)
		rc = wlb_checkpoint_read(t->plan->checkpoint, parts.list, parts.count, error);
	if (rc == 0)
		rc = wlb_parts_store(&parts, error);
	wlb_parts_close(&parts);
	return rc;
}

static int read_tensors(struct wlb_trainer *t, struct wlb_error *error)
{
	if (read_kind(t, WLB_PART_WEIGHT, error) < 0)
		return -1;
	for (int which = 0; which < 2; which++) {
		if (read_kind(t, which == 0 ? WLB_PART_FIRST_MOMENT : WLB_PART_SECOND_MOMENT, error) < 0)
			return -1;
		wlb_optimizer_take_moments(t->optimizer, which);
	}
	return 0;
}

static int restore_loader(struct wlb_trainer *t, struct wlb_error *error)
{
	void *state;
	size_t bytes;
	if (wlb_checkpoint_read_packer(t->plan->checkpoint, &state, &bytes, error) < 0)
		return -1;
	int rc = wlb_loader_restore(t->loader, &t->plan->facts.schedule, state, bytes, error);
	free(state);
	return rc < 0 ? wlb_fail_in(error, "%.1000s", t->plan->checkpoint) : 0;
}

int wlb_trainer_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	if (restore_loader(t, error) < 0 || read_tensors(t, error) < 0)
		return wlb_fail_in(error, "--load");
	t->step = t->plan->facts.step;
	return 0;
}
