#include "worker/checkpoint/checkpoint.h"
#include "worker/parts.h"
#include "worker/trainer.h"

int wlb_trainer_resume(struct wlb_trainer *t, struct wlb_error *error)
{
	struct wlb_parts parts;
	int rc = wlb_parts_open(&parts, t->parameters, t->optimizer, error);
	if (rc == 0)
		rc = wlb_checkpoint_read(t->plan->checkpoint, parts.list, parts.count, error);
	if (rc == 0)
		rc = wlb_parts_store(&parts, error);
	wlb_parts_close(&parts);
	if (rc < 0 || wlb_schedule_restore(t->schedule, &t->plan->facts.schedule, error) < 0)
		return wlb_fail_in(error, "--load");
	t->step = t->plan->facts.step;
	return 0;
}
