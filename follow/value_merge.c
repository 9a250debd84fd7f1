#include "follow/value_merge.h"

#include <stdlib.h>
#include <string.h>

/* SummaryWriter is up to 120 s behind a progress bar, which is drawn ten times a second. */
enum { SOURCES = WLB_SOURCE_HOOK + 1, SAID_STEPS = 2048 };

/* The origin of the value that is stored of a step. */
struct taken {
	bool is_taken;
	enum wlb_followed_step step_kind;
	int64_t step;
	struct wlb_origin origin;
};

struct name {
	char name[WLB_VALUE_NAME_SIZE];
	struct taken taken[WLB_MERGE_STEPS]; /* by step modulo their number */
};

/* The steps that a source has said last. */
struct said {
	int64_t count; /* of all; those that are left are at their number modulo SAID_STEPS */
	int64_t steps[SAID_STEPS];
	bool agrees; /* a better source has said one of them since: both count the same */
};

/* Where training is now. */
struct progress {
	enum wlb_followed_step step_kind;
	int64_t step;
	struct wlb_origin leader; /* the best that has said a step of this kind */
	int64_t leader_step;
	struct said said[SOURCES];
};

struct wlb_merge {
	struct wlb_merge_counts counts;
	int names;
	struct name *all[WLB_MERGE_NAMES_MOST];
	struct progress progress;
};

static int compare(int64_t first, int64_t second)
{
	return (first > second) - (first < second);
}

int wlb_origin_order(const struct wlb_origin *first, const struct wlb_origin *second)
{
	int order = compare((int64_t)first->source, (int64_t)second->source);
	if (order == 0)
		order = compare(first->stream, second->stream);
	if (order == 0)
		order = -compare(first->generation, second->generation);
	return order != 0 ? order : -compare(first->at, second->at);
}

struct wlb_merge *wlb_merge_open(void)
{
	return calloc(1, sizeof(struct wlb_merge));
}

void wlb_merge_close(struct wlb_merge *merge)
{
	for (int i = 0; merge != NULL && i < merge->names; i++)
		free(merge->all[i]);
	free(merge);
}

/* NULL where there is no room for one more. */
static struct name *find_name(struct wlb_merge *merge, const char *name)
{
	for (int i = 0; i < merge->names; i++)
		if (strcmp(merge->all[i]->name, name) == 0)
			return merge->all[i];
	struct name *added = merge->names < WLB_MERGE_NAMES_MOST ? calloc(1, sizeof(*added)) : NULL;
	if (added == NULL)
		return NULL;
	strcpy(added->name, name);
	merge->all[merge->names++] = added;
	return added;
}

/* In TensorBoard each name has steps of its own, of which some are epochs; those of these values are of training. */
static bool tells_step(const struct wlb_followed *record, enum wlb_source source)
{
	static const char *const names[] = {"loss", "lr", "grad_norm", "tokens", "tokens_per_s", "step_time_s"};
	if (record->step_kind == WLB_FOLLOWED_NO_STEP)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (wlb_followed_find(record, names[i]) != NULL)
			return true;
	return source != WLB_SOURCE_TENSORBOARD;
}

static bool has_said(const struct said *said, int64_t step)
{
	for (int64_t i = 0; i < said->count && i < SAID_STEPS; i++)
		if (said->steps[i] == step)
			return true;
	return false;
}

/* The leader has said its step: who has said it too is followed further, as far as that is ahead. */
static int64_t furthest(struct progress *progress)
{
	int64_t step = progress->leader_step;
	for (int source = (int)progress->leader.source + 1; source < SOURCES; source++) {
		struct said *said = &progress->said[source];
		said->agrees = has_said(said, progress->leader_step);
		int64_t last = said->count > 0 ? said->steps[(said->count - 1) % SAID_STEPS] : 0;
		if (said->agrees && last > step)
			step = last;
	}
	return step;
}

/* Begins again to remember what sources say: their steps are of another kind, or those before are done again. */
static void forget_steps(struct progress *progress)
{
	for (int source = 0; source < SOURCES; source++) {
		progress->said[source].count = 0;
		progress->said[source].agrees = false;
	}
}

/* Takes the step of a record as that of its source; returns whether training is now at another step than before. */
static bool take_step(struct wlb_merge *merge, const struct wlb_origin *origin, const struct wlb_followed *record)
{
	struct progress *progress = &merge->progress;
	enum wlb_followed_step kind = progress->step_kind;
	int64_t step = progress->step;
	if (!tells_step(record, origin->source) || (kind == WLB_FOLLOWED_STEP && record->step_kind != kind))
		return false;
	bool is_same_stream = kind == record->step_kind && origin->source == progress->leader.source &&
	                      origin->stream == progress->leader.stream;
	bool is_back = is_same_stream && record->step < progress->leader_step;
	merge->counts.steps_back += is_back;
	if (kind != record->step_kind || is_back)
		forget_steps(progress);
	struct said *said = &progress->said[origin->source];
	said->steps[said->count++ % SAID_STEPS] = record->step;
	if (kind != record->step_kind || wlb_origin_order(origin, &progress->leader) < 0) {
		progress->leader = *origin;
		progress->leader_step = record->step;
		progress->step = furthest(progress);
	} else if (said->agrees && record->step > step) {
		progress->step = record->step;
	}
	progress->step_kind = record->step_kind;
	return kind != progress->step_kind || step != progress->step;
}

/* Whether the value counts, as far as is remembered; remembers it then. */
static bool take_value(struct wlb_merge *merge, struct name *name, const struct wlb_origin *origin,
                       const struct wlb_merged *of)
{
	struct taken *taken = &name->taken[of->step % WLB_MERGE_STEPS];
	bool is_same_step = taken->is_taken && taken->step_kind == of->step_kind && taken->step == of->step;
	int order = is_same_step ? wlb_origin_order(origin, &taken->origin) : -1;
	if (order >= 0) {
		merge->counts.repeated += order == 0;
		merge->counts.outranked += order > 0;
		return false;
	}
	bool is_old = taken->is_taken && !is_same_step && taken->step_kind == of->step_kind && taken->step > of->step;
	if (!is_old) /* of older steps the store decides */
		*taken = (struct taken){true, of->step_kind, of->step, *origin};
	return true;
}

void wlb_merge_take(struct wlb_merge *merge, const struct wlb_origin *origin, const struct wlb_followed *record,
                    struct wlb_merged *merged)
{
	memset(merged, 0, sizeof(*merged));
	merged->is_progress = take_step(merge, origin, record);
	merged->step_kind = record->step_kind;
	merged->step = record->step;
	const struct progress *progress = &merge->progress;
	if (record->step_kind == WLB_FOLLOWED_NO_STEP ||
	    (record->step_kind == WLB_FOLLOWED_STEP_OF_ATTEMPT && progress->step_kind == WLB_FOLLOWED_STEP)) {
		merged->step_kind = progress->step_kind;
		merged->step = progress->step;
	}
	if (merged->step_kind == WLB_FOLLOWED_NO_STEP) {
		merge->counts.without_step += record->count;
		return;
	}
	for (int i = 0; i < record->count; i++) {
		struct name *name = find_name(merge, record->values[i].name);
		if (name == NULL)
			merge->counts.names_left_out++;
		else if (take_value(merge, name, origin, merged))
			merged->values[merged->count++] = i;
	}
}

struct wlb_merge_counts wlb_merge_count(const struct wlb_merge *merge)
{
	return merge->counts;
}
