#include "coordinator/wlbd/verdicts/rank_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	PERIOD_MIN_MS = 10000,
	AGE_PARTS = 100,
};

/* PostgreSQL refuses numbers that its type real does not hold. */
static const double real_min = 1e-30, real_max = 1e30;

static bool is_due(const struct wlbd_attempt *attempt, int64_t now_ms)
{
	int64_t period_ms = (now_ms - attempt->made_ms) / AGE_PARTS;
	if (period_ms < PERIOD_MIN_MS)
		period_ms = PERIOD_MIN_MS;
	return now_ms - attempt->watch.sampled_ms >= period_ms;
}

static double late_of(const struct wlbd_attempt *attempt, int rank)
{
	return wlbd_detection_late_s(attempt->watch.detection, rank);
}

static double work_of(const struct wlbd_attempt *attempt, int rank)
{
	const struct wlbd_kept_activity *kept = wlbd_activities_of(&attempt->activities, rank);
	return kept != NULL && kept->activity.work > 0.0 ? kept->activity.work : NAN;
}

/* Ranks that have communicated little are late by a time that is not known. */
static bool is_lateness_known(const struct wlbd_attempt *attempt)
{
	for (int rank = 0; rank < attempt->nodes.mapped_ranks; rank++)
		if (!isnan(late_of(attempt, rank)))
			return true;
	return false;
}

/* Returns an array of PostgreSQL, with the value of each rank, for free(); NULL: out of memory. */
static char *array_of(const struct wlbd_attempt *attempt, double (*value_of)(const struct wlbd_attempt *, int))
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	if (stream == NULL)
		return NULL;
	for (int rank = 0; rank < attempt->nodes.mapped_ranks; rank++) {
		double value = value_of(attempt, rank);
		fputs(rank > 0 ? "," : "{", stream);
		if (fabs(value) <= real_max)
			fprintf(stream, "%.4g", fabs(value) < real_min ? 0.0 : value);
		else
			fputs("NULL", stream);
	}
	fputs("}", stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}

static void on_stored(void *context, const struct wlbd_db_result *result)
{
	(void)context;
	if (result->status != WLBD_DB_OK && result->status != WLBD_DB_UNAVAILABLE)
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE, "a sample of ranks is not stored: %s",
		                 result->detail);
}

void wlbd_rank_samples_take(struct wlbd_attempt *attempt, int64_t now_ms)
{
	struct wlbd_params params = {0};
	if (!is_due(attempt, now_ms) || !wlbd_db_ready(attempt->wlbd->writes) || !is_lateness_known(attempt))
		return;
	attempt->watch.sampled_ms = now_ms;
	char *late = array_of(attempt, late_of), *work = array_of(attempt, work_of);
	if (late != NULL && work != NULL) {
		wlbd_params_add_integer(&params, attempt->attempt_pk);
		wlbd_params_add_text(&params, late);
		wlbd_params_add_text(&params, work);
		wlbd_db_execute(attempt->wlbd->writes, "select wlb_rank_sample_put($1, $2::real[], $3::real[])",
		                &params, on_stored, NULL);
	}
	free(late);
	free(work);
}
