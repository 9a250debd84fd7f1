#include "coordinator/wlbd/liveness/past_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/wlbd.h"

/* The attempt may be gone when the answer arrives. */
struct question {
	struct wlbd *wlbd;
	char uuid[37];
};

static void on_answer(void *context, const struct wlbd_db_result *result)
{
	struct question *question = context;
	struct wlbd_attempt *attempt = wlbd_attempts_find(question->wlbd->attempts, question->uuid);
	double known_s = result->status == WLBD_DB_OK && result->value != NULL ? strtod(result->value, NULL) : 0;
	if (attempt != NULL && result->status != WLBD_DB_OK)
		attempt->is_past_asked = false;
	else if (attempt != NULL && isfinite(known_s) && known_s > 0)
		attempt->known_step_s = known_s;
	free(question);
}

/* Of the newest steps, where there are more than those of a warm-up: nine of ten, since some may have hung. */
void wlbd_past_steps_ask(struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	struct question *question = attempt->is_past_asked ? NULL : malloc(sizeof(*question));
	if (question == NULL)
		return;
	question->wlbd = attempt->wlbd;
	snprintf(question->uuid, sizeof(question->uuid), "%s", attempt->uuid);
	attempt->is_past_asked = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_db_call(attempt->wlbd->writes,
	             "select percentile_disc(0.9) within group (order by step_time_s) from (select step_time_s from "
	             "steps where attempt_id = $1 order by step desc limit 256) as newest having count(*) > 3",
	             &params, on_answer, question);
}
