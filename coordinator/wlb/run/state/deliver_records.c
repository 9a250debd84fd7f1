#include "coordinator/wlb/run/state/deliver_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/client/deliver.h"
#include "coordinator/client/refused.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/delivery/start_self.h"
#include "coordinator/wlb/run/state/print.h"

enum {
	UNAVAILABLE_MS = 200, /* a request to a coordinator that did not answer the last one */
	BUSY_MS = 1000,       /* for a spool that another process is delivering */
};

int64_t wlb_run_deliver(struct wlb_run *run, int limit_ms, struct wlb_error *error)
{
	struct wlb_deliver_result result = {0};
	int64_t now_ms = wlb_clock_ms(), until_ms = now_ms + limit_ms;
	int64_t busy_until_ms = now_ms + (limit_ms < BUSY_MS ? limit_ms : BUSY_MS);
	if (run->connection == NULL)
		return 0;
	for (;;) {
		struct wlb_deliver_options options = {.run_id = run->id,
		                                      .timeout_ms = wlb_clock_left_ms(until_ms),
		                                      .request_ms = run->is_unavailable ? UNAVAILABLE_MS : 0};
		if (wlb_deliver_folder(&run->config, run->job.spool_dir, &options, &result, error) != 0)
			return 0;
		run->is_unavailable = result.unavailable;
		if (result.busy == 0 || result.unavailable || wlb_clock_left_ms(busy_until_ms) == 0)
			return result.left;
		wlb_clock_sleep_ms(20);
	}
}

void wlb_run_deliver_others(const struct wlb_run *run)
{
	const char *const argv[] = {"wlb", "flush", "--quiet", "--wait", "60", run->job.spool_dir, NULL};
	if (run->connection != NULL && wlb_deliver_pending(run->job.spool_dir))
		wlb_start_child(argv);
	wlb_pending_deliver();
}

static void print_notice(const struct wlb_run *run)
{
	char *notice = wlb_refused_take_notice(run->job.spool_dir);
	char *rest;
	for (char *line = notice != NULL ? strtok_r(notice, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		wlb_run_print("%s", line);
	free(notice);
}

/* It is not known here whether the job's epilog delivers the rest; the list is for the case that it does not. */
void wlb_run_deliver_last(struct wlb_run *run)
{
	struct wlb_error error = {0};
	bool left = run->connection != NULL;
	if (left && !run->is_unavailable)
		left = wlb_run_deliver(run, wlb_clock_left_ms(run->end_until_ms), &error) > 0;
	else
		left = left && wlb_deliver_pending(run->job.spool_dir);
	if (left) {
		wlb_pending_add(run->job.spool_dir);
		wlb_run_print("records wait in %s until the coordinator answers%s%s", run->job.spool_dir,
		              error.message[0] != '\0' ? ": " : "", error.message);
	}
	print_notice(run);
}
