#include "coordinator/wlb/top/progress.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

/* The mean of a field over the steps that have it; NAN: none has. */
static double mean_of(const json_t *steps, const char *field)
{
	double sum = 0.0;
	size_t count = 0, i;
	const json_t *step;
	json_array_foreach(steps, i, step)
	{
		const json_t *value = json_object_get(step, field);
		sum += json_number_value(value);
		count += json_is_number(value);
	}
	return count > 0 ? sum / (double)count : NAN;
}

static void format_left(const json_t *run, const json_t *steps, char *text, size_t size)
{
	const json_t *all = json_object_get(run, "train_iters");
	json_int_t left = json_integer_value(all) - json_integer_value(json_object_get(run, "last_step"));
	double left_s = (double)left * mean_of(steps, "step_time_s");
	bool is_known = json_is_integer(all) && left >= 0 && left_s < 1e12;
	wlb_duration_format(is_known ? lround(left_s) : -1, text, size);
}

void wlb_progress_format(const json_t *run, const json_t *steps, char *text, size_t size)
{
	char step[32], all[32], loss[64], speed[32] = "-", left[32];
	double tokens_per_s = mean_of(steps, "tokens_per_s");
	wlb_field_number(run, "last_step", step, sizeof(step));
	wlb_field_number(run, "train_iters", all, sizeof(all));
	wlb_field_real(run, "last_loss", 4, loss, sizeof(loss));
	if (!isnan(tokens_per_s))
		snprintf(speed, sizeof(speed), "%.0f", tokens_per_s);
	format_left(run, steps, left, sizeof(left));
	snprintf(text, size, "step %s of %s, loss %s, %s tokens/s, %s left", step, all, loss, speed, left);
}
