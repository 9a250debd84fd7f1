#include "libverdict/job_time.h"

#include <math.h>

/* Reports come about each second, from many ranks. Time without any is not counted beyond this, and a clock that goes
 * back further than late reports explain was set. */
static const double silence_s = 2.5;
static const double set_back_s = 2.0;
/* A process that was last reported as traced longer ago is lost with its reporter, which would else stop the job's time
 * for ever. */
static const double heard_s = 5.0;

void verdict_time_advance(struct verdict_job_time *time, double now_s)
{
	double passed_s = now_s - time->now_s;
	if (!time->begun || passed_s < -set_back_s) {
		time->begun = 1;
		time->now_s = now_s;
		return;
	}
	if (passed_s <= 0.0)
		return;
	time->now_s = now_s;
	int suspended = time->stopped > 0 && time->stopped + time->over >= time->seen;
	int debugged = time->traced > 0 && fabs(now_s - time->traced_s) <= heard_s;
	if (suspended || debugged)
		return;
	time->silent_s += passed_s;
	if (time->silent_s <= silence_s)
		time->job_s += passed_s;
}

void verdict_time_report(struct verdict_job_time *time)
{
	time->silent_s = 0.0;
}
