#include "libverdict/verdicts.h"

#include <string.h>

const char *wlb_verdict_kind_name(enum wlb_verdict_kind kind)
{
	static const char *const names[] = {
		"crash",     "hang",     "hang in communication", "deadlock",     "slow compute", "slow node",
		"slow link", "slow NIC", "slow loader",           "slow storage", "bad values",   "stack outliers"};
	return kind >= WLB_VERDICT_CRASH && kind <= WLB_VERDICT_OUTLIERS ? names[kind] : "unknown";
}

int verdict_is_standstill(enum wlb_verdict_kind kind)
{
	return kind <= WLB_VERDICT_DEADLOCK || kind == WLB_VERDICT_OUTLIERS;
}

struct wlb_verdict verdict_blank(enum wlb_verdict_kind kind, enum wlb_verdict_stage stage)
{
	return (struct wlb_verdict){.kind = kind,
	                            .stage = stage,
	                            .node = -1,
	                            .group = -1,
	                            .since_step = -1,
	                            .cost_percent = verdict_is_standstill(kind) ? 100.0 : -1.0};
}

void verdict_add_rank(struct wlb_verdict *verdict, int32_t rank)
{
	if (verdict->rank_count < WLB_VERDICT_RANKS)
		verdict->ranks[verdict->rank_count] = rank;
	verdict->rank_count++;
}

/* Two verdicts are of one fault where they name the same. Its evidence, and the call in which it shows, may change. */
static int same(const struct wlb_verdict *a, const struct wlb_verdict *b)
{
	if (a->kind != b->kind || a->node != b->node)
		return 0;
	if (a->node >= 0)
		return 1;
	if (a->kind == WLB_VERDICT_SLOW_LINK && a->group != b->group)
		return 0;
	/* All ranks, or most of them: which they are may change. */
	if (a->rank_count > WLB_VERDICT_RANKS && b->rank_count > WLB_VERDICT_RANKS)
		return 1;
	return a->ranks[0] == b->ranks[0] && (a->rank_count < 2 || b->rank_count < 2 || a->ranks[1] == b->ranks[1]);
}

static int32_t find(const struct verdict_found *list, const struct wlb_verdict *verdict)
{
	for (int32_t i = 0; i < list->count; i++)
		if (same(&list->verdict[i], verdict))
			return i;
	return -1;
}

int verdict_is_open(const struct wlb_verdict_detector *detector, enum wlb_verdict_kind kind, int32_t rank)
{
	struct wlb_verdict verdict = verdict_blank(kind, WLB_VERDICT_CONFIRMED);
	verdict_add_rank(&verdict, rank);
	return find(&detector->open, &verdict) >= 0;
}

void verdict_add(struct wlb_verdict_detector *detector, const struct wlb_verdict *verdict)
{
	struct verdict_found *found = &detector->found;
	if (found->count < VERDICT_OPEN_MAX && find(found, verdict) < 0)
		found->verdict[found->count++] = *verdict;
}

/* Carries over what stays the same while a verdict is open. */
static void continue_verdict(struct wlb_verdict *now, const struct wlb_verdict *before)
{
	now->id = before->id;
	now->since_s = before->since_s;
	now->since_step = before->since_step;
	if (before->stage == WLB_VERDICT_CONFIRMED)
		now->stage = WLB_VERDICT_CONFIRMED;
}

/* Where verdicts are written. */
struct output {
	struct wlb_verdict *verdicts;
	int32_t written; /* beyond `most`: counted only */
	int32_t most;
};

static void write_found(const struct verdict_found *list, int standstill, struct output *output)
{
	for (int32_t i = 0; i < list->count; i++) {
		if (verdict_is_standstill(list->verdict[i].kind) != standstill)
			continue;
		if (output->written < output->most)
			output->verdicts[output->written] = list->verdict[i];
		output->written++;
	}
}

/* Writes the open verdicts that were not found any more, as over. A verdict for which there is no space stays in the
 * list of open verdicts, and a later judgement reports it. */
static void write_over(const struct verdict_found *found, struct verdict_found *open, struct output *output)
{
	int32_t left = 0;
	for (int32_t i = 0; i < open->count; i++) {
		if (find(found, &open->verdict[i]) >= 0)
			continue;
		if (output->written < output->most) {
			output->verdicts[output->written] = open->verdict[i];
			output->verdicts[output->written].stage = WLB_VERDICT_OVER;
		} else {
			open->verdict[left++] = open->verdict[i];
		}
		output->written++;
	}
	open->count = left;
}

/* Notes as open the verdicts that were found and, as far as there is space, the verdicts whose end is still to be
 * reported. */
static void keep_open(const struct verdict_found *found, struct verdict_found *open)
{
	int32_t space = VERDICT_OPEN_MAX - found->count, left = open->count < space ? open->count : space;
	memmove(open->verdict + found->count, open->verdict, (size_t)left * sizeof(*open->verdict));
	memcpy(open->verdict, found->verdict, (size_t)found->count * sizeof(*found->verdict));
	open->count = found->count + left;
}

int32_t verdict_settle(struct wlb_verdict_detector *detector, struct wlb_verdict *verdicts, int32_t most)
{
	struct verdict_found *found = &detector->found, *open = &detector->open;
	struct output output = {.verdicts = verdicts, .most = most};
	detector->standstill = 0;
	for (int32_t i = 0; i < found->count; i++) {
		struct wlb_verdict *verdict = &found->verdict[i];
		int32_t index = find(open, verdict);
		if (index >= 0)
			continue_verdict(verdict, &open->verdict[index]);
		else
			verdict->id = ++detector->last_id;
		detector->standstill |= verdict_is_standstill(verdict->kind) && verdict->stage == WLB_VERDICT_CONFIRMED;
	}
	if (detector->standstill)
		detector->standstill_job_s = detector->time.job_s;
	write_found(found, 1, &output);
	write_over(found, open, &output);
	write_found(found, 0, &output);
	keep_open(found, open);
	found->count = 0;
	return output.written;
}
