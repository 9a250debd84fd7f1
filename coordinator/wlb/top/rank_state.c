#include "coordinator/wlb/top/rank_state.h"

#include <ctype.h>
#include <string.h>

/* From which time and number of steps on a rank has a level. */
static const struct {
	char mark;
	double time_s;
	double age_s; /* of the report, which is sent each second */
	int64_t steps_behind;
} levels[] = {
	[WLB_TOP_FINE] = {' ', 0, 0, 0},
	[WLB_TOP_NOTED] = {'+', 10, 5, 1},
	[WLB_TOP_LATE] = {'*', 30, 10, 2},
	[WLB_TOP_LATEST] = {'!', 120, 30, 4},
};

const char *const wlb_top_legend[] = {
	"S starting  L loading  C computing  V saving  E evaluating  D ending  R running",
	"small letter: waits in a call   T stopped  G process gone  ? not reported",
	"+ for 10 s or 1 step behind  * 30 s or 2 steps  ! 120 s or 4 steps, or T, G",
	NULL,
};

const char wlb_top_legend_named[] = "# a verdict names it";

static char letter_of(const struct wlb_top_rank *rank)
{
	static const struct {
		const char *activity;
		char letter;
	} letters[] = {{"starting", 'S'},   {"loading", 'L'}, {"computing", 'C'}, {"saving", 'V'},
	               {"evaluating", 'E'}, {"ending", 'D'},  {"running", 'R'}};
	if (!rank->is_reported)
		return '?';
	if (strcmp(rank->process, "gone") == 0)
		return 'G';
	if (strcmp(rank->process, "stopped") == 0)
		return 'T';
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (strcmp(rank->activity, letters[i].activity) == 0)
			return rank->call != NULL ? (char)tolower(letters[i].letter) : letters[i].letter;
	return '?';
}

double wlb_top_time_s(const struct wlb_top_rank *rank)
{
	return rank->call != NULL ? rank->call_for_s : rank->for_s;
}

/* The least level of a rank that a verdict names. */
static enum wlb_top_level named_level(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	if (rank->verdict < 0)
		return WLB_TOP_FINE;
	return ranks->verdicts.list[rank->verdict].is_confirmed ? WLB_TOP_LATEST : WLB_TOP_LATE;
}

/* Of a rank that was never reported nothing is known but verdicts. */
static enum wlb_top_level level_of(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	enum wlb_top_level named = named_level(ranks, rank);
	int level = WLB_TOP_LATEST;
	if (!rank->is_reported)
		return named;
	if (strcmp(rank->process, "running") != 0)
		return WLB_TOP_LATEST;
	int64_t behind = rank->step >= 0 ? ranks->last_step - rank->step : 0;
	while (level > (int)named && wlb_top_time_s(rank) < levels[level].time_s && rank->age_s < levels[level].age_s &&
	       behind < levels[level].steps_behind)
		level--;
	return (enum wlb_top_level)level;
}

struct wlb_top_state wlb_top_state_of(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *rank)
{
	enum wlb_top_level level = level_of(ranks, rank);
	char mark = rank->verdict >= 0 ? '#' : levels[level].mark;
	return (struct wlb_top_state){letter_of(rank), mark, level};
}

bool wlb_top_is_worse(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *a, const struct wlb_top_rank *b)
{
	enum wlb_top_level x = level_of(ranks, a), y = level_of(ranks, b);
	if (x != y)
		return x > y;
	if (a->is_reported != b->is_reported)
		return b->is_reported;
	if ((a->call != NULL) != (b->call != NULL))
		return a->call == NULL;
	return wlb_top_time_s(a) > wlb_top_time_s(b);
}
