#include "worker/optimizer/learning_rate.h"

#include <math.h>

double wlb_learning_rate(const struct wlb_lr_schedule *s, int64_t step)
{
	if (step <= s->warmup_iters)
		return s->max_lr * (double)step / (double)s->warmup_iters;
	if (s->decay == WLB_LR_CONSTANT)
		return s->max_lr;
	if (step > s->decay_iters)
		return s->min_lr;
	double done = (double)(step - s->warmup_iters) / (double)(s->decay_iters - s->warmup_iters);
	double left = s->decay == WLB_LR_LINEAR ? 1.0 - done : 0.5 * (cos(M_PI * done) + 1.0);
	return s->min_lr + left * (s->max_lr - s->min_lr);
}
