#include "coordinator/wlb/top/page.h"

#include <math.h>
#include <stdio.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/seconds_text.h"
#include "coordinator/wlb/top/calls_page.h"
#include "coordinator/wlb/top/grid.h"
#include "coordinator/wlb/top/progress.h"
#include "coordinator/wlb/top/rank_state.h"
#include "coordinator/wlb/top/verdicts_page.h"

enum {
	WORST_SHOWN = 3,
	LATEST_SHOWN = 2,
	BELOW_GRID_LINES = 10, /* that ranks and calls below the grid take on a terminal of 24 lines */
};

static const double latest_least_s = 1e-3;

static void put_line(struct wlb_top_frame *frame, enum wlb_top_style style, const char *text)
{
	wlb_top_put(frame, style, "%s", text);
	wlb_top_end_line(frame);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void put_reports(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks)
{
	double newest_s = INFINITY, oldest_s = 0.0;
	for (int i = 0; i < ranks->count; i++) {
		const struct wlb_top_rank *rank = &ranks->list[i];
		if (!rank->is_reported)
			continue;
		oldest_s = rank->age_s > oldest_s ? rank->age_s : oldest_s;
		newest_s = rank->age_s < newest_s ? rank->age_s : newest_s;
	}
	if (ranks->reported == 0)
		wlb_top_put(frame, WLB_TOP_PLAIN, "no report has said what its ranks do");
	else
		wlb_top_put(frame, WLB_TOP_PLAIN, "%d of %d ranks reported, %.1f to %.1f s ago", ranks->reported,
		            ranks->count, newest_s, oldest_s);
	if (ranks->omitted > 0)
		wlb_top_put(frame, WLB_TOP_PLAIN, "; %d more are not listed", ranks->omitted);
	wlb_top_end_line(frame);
}

static void put_run(struct wlb_top_frame *frame, const struct wlb_top_view *view)
{
	char name[80], attempt[32], layout[64], nodes[512], progress[256];
	const char *reason = wlb_field_text(view->run, "reason", "");
	wlb_field_run(view->run, name, sizeof(name));
	wlb_field_number(view->run, "attempt", attempt, sizeof(attempt));
	wlb_field_layout(view->run, layout, sizeof(layout));
	wlb_field_nodes(view->run, nodes, sizeof(nodes));
	wlb_progress_format(view->run, view->steps, progress, sizeof(progress));
	wlb_top_put(frame, WLB_TOP_STRONG, "Run %s: %s", name, wlb_field_text(view->run, "state", "?"));
	wlb_top_put(frame, WLB_TOP_PLAIN, ", attempt %s, %s, on %s", attempt, layout, nodes);
	wlb_top_end_line(frame);
	if (*reason != '\0')
		put_line(frame, WLB_TOP_PLAIN, reason);
	put_line(frame, WLB_TOP_PLAIN, progress);
	put_reports(frame, &view->ranks);
}

/* ---- the ranks --------------------------------------------------------------------------------------------------- */

/* Whether a rank enters calls later than others by a millisecond and more. */
static bool has_late(const struct wlb_top_ranks *ranks)
{
	for (int i = 0; i < ranks->count; i++)
		if (ranks->list[i].late_s >= latest_least_s)
			return true;
	return false;
}

static int put_grid(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks, enum wlb_top_by by)
{
	struct wlb_top_sections sections;
	int rc = wlb_top_sections_make(ranks, by, &sections);
	if (by != WLB_TOP_BY_NODE && !ranks->has_layout)
		put_line(frame, WLB_TOP_PLAIN, "the layout is not known yet; ranks are shown by node");
	for (int i = 0; wlb_top_legend[i] != NULL; i++)
		put_line(frame, WLB_TOP_FAINT, wlb_top_legend[i]);
	if (ranks->verdicts.count > 0)
		put_line(frame, WLB_TOP_FAINT, wlb_top_legend_named);
	int lines_max = wlb_top_lines_left(frame);
	if (frame->rows > 0)
		lines_max -= BELOW_GRID_LINES + wlb_top_verdicts_lines(&ranks->verdicts) + has_late(ranks);
	if (rc == 0)
		wlb_top_grid_draw(frame, ranks, &sections, lines_max);
	wlb_top_sections_free(&sections);
	return rc;
}

static void put_rank(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	char time[32];
	struct wlb_top_state state = wlb_top_state_of(ranks, rank);
	wlb_top_put(frame, wlb_top_style_of(ranks, rank), "%c%c", state.letter, state.mark);
	wlb_top_put(frame, WLB_TOP_PLAIN, " rank %d on %s: ", rank->rank, wlb_top_rank_node(ranks, rank));
	if (!rank->is_reported) {
		put_line(frame, WLB_TOP_PLAIN, "not reported");
		return;
	}
	if (rank->step < 0) {
		wlb_top_put(frame, WLB_TOP_PLAIN, "its process is %s", rank->process);
		wlb_top_end_line(frame);
		return;
	}
	if (rank->call != NULL) {
		wlb_seconds_format(rank->call_for_s, time, sizeof(time));
		wlb_top_put(frame, WLB_TOP_PLAIN, "in %s of %s for %s; ", rank->call, rank->call_group->name, time);
	}
	wlb_seconds_format(rank->for_s, time, sizeof(time));
	wlb_top_put(frame, WLB_TOP_PLAIN, "%s for %s, step %lld", rank->activity, time, (long long)rank->step);
	if (rank->step < ranks->last_step)
		wlb_top_put(frame, WLB_TOP_PLAIN, " (%lld behind)", (long long)(ranks->last_step - rank->step));
	wlb_top_end_line(frame);
}

/* Inserts the rank among the worst, the worst first. Returns how many there are. */
static int insert_worst(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank,
                        const struct wlb_top_rank *worst[WORST_SHOWN], int count)
{
	int at = count;
	while (at > 0 && wlb_top_is_worse(ranks, rank, worst[at - 1]))
		at--;
	if (at == WORST_SHOWN)
		return count;
	count = count < WORST_SHOWN ? count + 1 : WORST_SHOWN;
	for (int i = count - 1; i > at; i--)
		worst[i] = worst[i - 1];
	worst[at] = rank;
	return count;
}

static void put_worst(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks)
{
	const struct wlb_top_rank *worst[WORST_SHOWN];
	int count = 0;
	for (int i = 0; i < ranks->count; i++)
		if (wlb_top_state_of(ranks, &ranks->list[i]).level >= WLB_TOP_LATE)
			count = insert_worst(ranks, &ranks->list[i], worst, count);
	if (count == 0)
		return;
	put_line(frame, WLB_TOP_STRONG, "Ranks that need attention");
	for (int i = 0; i < count; i++)
		put_rank(frame, ranks, worst[i]);
}

/* The ranks that enter calls latest, where they are late by a millisecond or more. */
static void put_latest(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks)
{
	const struct wlb_top_rank *latest[LATEST_SHOWN] = {NULL};
	for (int i = 0; i < ranks->count; i++) {
		const struct wlb_top_rank *rank = &ranks->list[i];
		for (int k = 0; k < LATEST_SHOWN && rank != NULL && rank->late_s >= latest_least_s; k++)
			if (latest[k] == NULL || rank->late_s > latest[k]->late_s) {
				const struct wlb_top_rank *before = latest[k];
				latest[k] = rank;
				rank = before;
			}
	}
	if (!has_late(ranks))
		return;
	wlb_top_put(frame, WLB_TOP_STRONG, "Last to enter collectives:");
	for (int k = 0; k < LATEST_SHOWN && latest[k] != NULL; k++)
		wlb_top_put(frame, WLB_TOP_PLAIN, "%s rank %d on %s by %.0f ms", k > 0 ? "," : "", latest[k]->rank,
		            wlb_top_rank_node(ranks, latest[k]), 1e3 * latest[k]->late_s);
	wlb_top_end_line(frame);
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

int wlb_top_page_draw(struct wlb_top_frame *frame, const struct wlb_top_view *view, enum wlb_top_by by,
                      const char *note)
{
	put_run(frame, view);
	if (*note != '\0')
		put_line(frame, WLB_TOP_RED, note);
	int rc = put_grid(frame, &view->ranks, by);
	if (rc == 0) {
		wlb_top_verdicts_put(frame, &view->ranks.verdicts, wlb_field_text(view->run, "run_id", "RUN"));
		put_worst(frame, &view->ranks);
		put_latest(frame, &view->ranks);
		rc = wlb_top_calls_put(frame, &view->ranks);
	}
	if (frame->is_live)
		put_line(frame, WLB_TOP_FAINT, "q: quit");
	wlb_top_end_page(frame);
	return rc;
}
