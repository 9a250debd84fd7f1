#include "checks/node/processor_share.h"

#include <stdlib.h>

#include "checks/node/node_load.h"
#include "checks/node/place_children.h"
#include "common/cgroup.h"
#include "common/seconds.h"

/* A cause is named from this part of the elapsed time on. */
static const double NAMED = 0.05;

struct wlb_processor_share {
	double at_s;
	double throttled_s;
	double stolen_s[]; /* of each place */
};

struct wlb_processor_share *wlb_processor_share_begin(const struct wlb_places *places, struct wlb_error *error)
{
	struct wlb_processor_share *share =
		calloc(1, sizeof(*share) + (size_t)places->count * sizeof(*share->stolen_s));
	if (share == NULL) {
		wlb_fail(error, "out of memory for %d devices", places->count);
		return NULL;
	}
	share->at_s = wlb_now_s();
	share->throttled_s = wlb_cgroup_throttled_s();
	for (int i = 0; i < places->count; i++)
		share->stolen_s[i] = wlb_stolen_s(&places->list[i].mask);
	return share;
}

void wlb_processor_share_free(struct wlb_processor_share *share)
{
	free(share);
}

static const char *cause(const struct wlb_processor_share *before, const struct wlb_check_place *place, int index)
{
	double elapsed_s = wlb_now_s() - before->at_s;
	if (wlb_cgroup_throttled_s() - before->throttled_s > NAMED * elapsed_s)
		return "the CPU quota of its cgroup has the rest";
	if (wlb_stolen_s(&place->mask) - before->stolen_s[index] > NAMED * elapsed_s * place->cpus)
		return "other virtual machines have the rest";
	return "other work has the rest";
}

void wlb_processor_share_judge(const struct wlb_processor_share *before, const struct wlb_places *places,
                               const double *shares, double least, struct wlb_check_report *report)
{
	int lowest = 0, low = 0;
	for (int i = 0; i < places->count; i++) {
		lowest = shares[i] < shares[lowest] ? i : lowest;
		low += shares[i] < least;
	}
	const struct wlb_check_place *place = &places->list[lowest];
	struct wlb_finding *finding = low == 0
	                                      ? wlb_report_add(report, "cpu time", WLB_CHECK_OK,
	                                                       "lowest %s: processor time is %.0f %% of elapsed time",
	                                                       place->name, 100.0 * shares[lowest])
	                                      : wlb_report_add(report, "cpu time", WLB_CHECK_FAILED,
	                                                       "%s: processor time is %.0f %% of elapsed time, %s%s",
	                                                       place->name, 100.0 * shares[lowest],
	                                                       cause(before, place, lowest), wlb_others_text(low).text);
	wlb_finding_limit(finding, "%.0f %%", 100.0 * least);
}
