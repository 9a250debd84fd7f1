#include "coordinator/wlb/top/verdicts_page.h"

#include <string.h>

#include "common/output/wrap.h"
#include "coordinator/wlb/output/fault_text.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/seconds_text.h"

enum { SHOWN = 3, LINES_OF_ONE = 2, INDENT = 3 };

int wlb_top_verdicts_lines(const struct wlb_top_verdicts *verdicts)
{
	if (verdicts->count == 0)
		return 0;
	return 1 + (verdicts->count > SHOWN ? LINES_OF_ONE * SHOWN + 1 : LINES_OF_ONE * verdicts->count);
}

static void put_evidence(struct wlb_top_frame *frame, const char *evidence)
{
	static const char cut[] = "...";
	int width = frame->columns - INDENT, shorter = width - (int)strlen(cut);
	wlb_top_put(frame, WLB_TOP_PLAIN, "%*s", INDENT, "");
	if (wlb_text_width(evidence) > width && shorter > 0) {
		wlb_top_put_padded(frame, WLB_TOP_PLAIN, evidence, shorter);
		wlb_top_put(frame, WLB_TOP_PLAIN, "%s", cut);
	} else {
		wlb_top_put(frame, WLB_TOP_PLAIN, "%s", evidence);
	}
	wlb_top_end_line(frame);
}

static void put_verdict(struct wlb_top_frame *frame, const struct wlb_top_verdict *verdict)
{
	char kind[64], where[128], since[32], cost[352];
	wlb_fault_kind(verdict->entry, kind, sizeof(kind));
	wlb_fault_where(verdict->entry, where, sizeof(where));
	wlb_seconds_format(verdict->since_s, since, sizeof(since));
	wlb_field_real(verdict->entry, "cost_percent", 0, cost, sizeof(cost));
	wlb_top_put(frame, verdict->is_confirmed ? WLB_TOP_RED : WLB_TOP_MAGENTA, "# %s", kind);
	wlb_top_put(frame, WLB_TOP_PLAIN, " %s: %s, for %s", verdict->is_confirmed ? "confirmed" : "suspected", where,
	            since);
	if (strcmp(cost, "-") != 0)
		wlb_top_put(frame, WLB_TOP_PLAIN, ", costs %s %%", cost);
	wlb_top_put(frame, WLB_TOP_PLAIN, "; action: %s", wlb_field_text(verdict->entry, "action", "-"));
	wlb_top_end_line(frame);
	put_evidence(frame, wlb_field_text(verdict->entry, "evidence", ""));
}

void wlb_top_verdicts_put(struct wlb_top_frame *frame, const struct wlb_top_verdicts *verdicts, const char *run)
{
	if (verdicts->count == 0)
		return;
	wlb_top_put(frame, WLB_TOP_STRONG, "Verdicts");
	wlb_top_end_line(frame);
	for (int i = 0; i < verdicts->count && i < SHOWN; i++)
		put_verdict(frame, &verdicts->list[i]);
	if (verdicts->count > SHOWN) {
		wlb_top_put(frame, WLB_TOP_PLAIN, "%d more: wlb faults %s", verdicts->count - SHOWN, run);
		wlb_top_end_line(frame);
	}
}
