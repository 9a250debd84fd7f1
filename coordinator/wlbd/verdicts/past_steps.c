#include "coordinator/wlbd/verdicts/past_steps.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/wlbd.h"

static void on_answer(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(context);
	double known_s = result->status == WLBD_DB_OK && result->value != NULL ? strtod(result->value, NULL) : 0;
	if (attempt != NULL && result->status != WLBD_DB_OK)
		attempt->past_steps.is_asked = false;
	else if (attempt != NULL && isfinite(known_s) && known_s > 0)
		attempt->past_steps.length_s = known_s;
	free(context);
}

/* Of the newest steps, where there are more than those of a warm-up: nine of ten, since some may have hung. */
void wlbd_past_steps_ask(struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	struct wlbd_attempt_ref *ref = attempt->past_steps.is_asked ? NULL : malloc(sizeof(*ref));
	if (ref == NULL)
		return;
	*ref = wlbd_attempt_ref(attempt);
	attempt->past_steps.is_asked = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_db_call(attempt->wlbd->writes,
	             "select percentile_disc(0.9) within group (order by step_time_s) from (select step_time_s from "
	             "steps where attempt_id = $1 order by step desc limit 256) as newest having count(*) > 3",
	             &params, on_answer, ref);
}
