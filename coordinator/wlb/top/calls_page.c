#include "coordinator/wlb/top/calls_page.h"

#include <stdio.h>
#include <string.h>

#include "common/output/bytes_text.h"
#include "coordinator/wlb/output/rank_text.h"
#include "coordinator/wlb/output/seconds_text.h"
#include "coordinator/wlb/top/calls.h"
#include "coordinator/wlb/top/rank_state.h"

enum { CALL_LINES = 2 };

static void put_ranges(struct wlb_top_frame *frame, const int *ranks, int count, int columns)
{
	char text[512];
	wlb_ranks_format(ranks, count, columns, text, sizeof(text));
	wlb_top_put(frame, WLB_TOP_PLAIN, "%s", text);
}

static void put_call(struct wlb_top_frame *frame, const struct wlb_top_rank *caller,
                     const struct wlb_top_members *members)
{
	char time[32], bytes[32];
	wlb_bytes_format(caller->call_bytes, bytes, sizeof(bytes));
	wlb_seconds_format(caller->call_for_s, time, sizeof(time));
	wlb_top_put(frame, WLB_TOP_PLAIN,
	            "%s %s %lld, %s, for %s: %d of %d ranks have entered: ", caller->call_group->name, caller->call,
	            (long long)caller->call_seq, bytes, time, members->inside_count, caller->call_group->ranks);
	put_ranges(frame, members->inside, members->inside_count, frame->columns - frame->column);
	wlb_top_end_line(frame);
}

static const struct wlb_top_rank *worst_of(const struct wlb_top_ranks *ranks, const int *list, int count)
{
	const struct wlb_top_rank *worst = &ranks->list[list[0]];
	for (int i = 1; i < count; i++)
		if (wlb_top_is_worse(ranks, &ranks->list[list[i]], worst))
			worst = &ranks->list[list[i]];
	return worst;
}

static void put_outside(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks,
                        const struct wlb_top_members *members)
{
	char time[32], first[512] = "", unknown[64] = "";
	if (members->outside_count == 0 && members->unknown_count == 0)
		return;
	if (members->unknown_count > 0)
		snprintf(unknown, sizeof(unknown), "  %d not reported since it began", members->unknown_count);
	if (members->outside_count > 0) {
		const struct wlb_top_rank *rank = worst_of(ranks, members->outside, members->outside_count);
		wlb_seconds_format(rank->for_s, time, sizeof(time));
		snprintf(first, sizeof(first), "; %d on %s: %s for %s", rank->rank, wlb_top_rank_node(ranks, rank),
		         rank->activity, time);
		wlb_top_put(frame, WLB_TOP_RED, "   not entered: ");
		int columns_left = frame->columns - frame->column - (int)strlen(first) - (int)strlen(unknown);
		put_ranges(frame, members->outside, members->outside_count, columns_left > 16 ? columns_left : 16);
	}
	wlb_top_put(frame, WLB_TOP_PLAIN, "%s%s", first, unknown);
	wlb_top_end_line(frame);
}

int wlb_top_calls_put(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks)
{
	const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX];
	struct wlb_top_members members;
	int count = wlb_top_calls_find(ranks, callers), rc = count < 0 ? -1 : 0;
	if (count > 0) {
		wlb_top_put(frame, WLB_TOP_STRONG, "Collectives in progress");
		wlb_top_end_line(frame);
	}
	/* The last line of a live page says how it ends. */
	for (int i = 0; i < count && rc == 0 && wlb_top_lines_left(frame) > CALL_LINES; i++) {
		rc = wlb_top_members_find(ranks, callers[i], &members);
		if (rc == 0) {
			put_call(frame, callers[i], &members);
			put_outside(frame, ranks, &members);
		}
		wlb_top_members_free(&members);
	}
	return rc;
}
