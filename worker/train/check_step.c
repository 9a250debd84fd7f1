#include "common/seconds.h"
#include "worker/train/trainer.h"

int wlb_trainer_check_is_due(const struct wlb_trainer *t)
{
	return t->sdc_check != NULL && t->step % t->options->sdc_check_interval == 0;
}

int wlb_trainer_check(struct wlb_trainer *t, struct wlb_error *error)
{
	double started_s = wlb_now_s();
	int rc = wlb_sdc_check_run(t->sdc_check, t->step, t->loaded->check, error);
	t->aside_s += wlb_now_s() - started_s;
	return rc < 0 ? WLB_FAILED_HERE : 0;
}
