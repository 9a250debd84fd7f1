/* Runs the program of a pattern over a line. */
#include <string.h>

#include "follow/pattern.h"

enum { BOUNDS = 2 * WLB_PATTERN_GROUPS_MOST };

/* Threads that wait for the next byte, the preferred one first; their bounds of groups are by instruction. */
struct threads {
	int count;
	int at[WLB_PATTERN_PROGRAM_MOST];
};

struct run {
	const struct wlb_pattern *pattern;
	const char *line;
	int length;
	int place;                                       /* of the next byte */
	int seen_at[WLB_PATTERN_PROGRAM_MOST];           /* the last place at which a thread came here; -1: none */
	int bounds[2][WLB_PATTERN_PROGRAM_MOST][BOUNDS]; /* of the threads before and behind the byte */
	struct threads threads[2];
	/* Instructions that are still to be followed, each with a change of a bound that is undone behind it. */
	struct {
		int at, undo, value; /* undo >= 0: sets bound `undo` to the value instead */
	} stack[3 * WLB_PATTERN_PROGRAM_MOST];
};

static bool is_boundary(const struct run *run)
{
	bool before = run->place > 0 && wlb_pattern_is_word((unsigned char)run->line[run->place - 1]);
	bool behind = run->place < run->length && wlb_pattern_is_word((unsigned char)run->line[run->place]);
	return before != behind;
}

static bool holds(const struct run *run, enum wlb_pattern_op op)
{
	switch (op) {
	case WLB_PATTERN_BEGIN:
		return run->place == 0;
	case WLB_PATTERN_END:
		return run->place == run->length;
	case WLB_PATTERN_BOUNDARY:
		return is_boundary(run);
	default:
		return true;
	}
}

static int push(struct run *run, int depth, int at)
{
	run->stack[depth].at = at;
	run->stack[depth].undo = -1;
	return depth + 1;
}

static int push_undo(struct run *run, int depth, int bound, int value)
{
	run->stack[depth].undo = bound;
	run->stack[depth].value = value;
	return depth + 1;
}

/* Follows instruction `at`; returns the depth of the stack then. */
static int follow(struct run *run, struct threads *threads, int side, int at, int depth, int bounds[BOUNDS])
{
	const struct wlb_pattern_instruction *instruction = &run->pattern->program[at];
	switch (instruction->op) {
	case WLB_PATTERN_JUMP:
		return push(run, depth, instruction->first);
	case WLB_PATTERN_SPLIT:
		return push(run, push(run, depth, instruction->second), instruction->first);
	case WLB_PATTERN_SAVE:
		depth = push_undo(run, depth, instruction->first, bounds[instruction->first]);
		bounds[instruction->first] = run->place;
		return push(run, depth, at + 1);
	case WLB_PATTERN_SET:
	case WLB_PATTERN_MATCH:
		memcpy(run->bounds[side][at], bounds, BOUNDS * sizeof(*bounds));
		threads->at[threads->count++] = at;
		return depth;
	default:
		return holds(run, instruction->op) ? push(run, depth, at + 1) : depth;
	}
}

/* Adds the threads that begin at that instruction, each instruction once at each place. */
static void add(struct run *run, int side, int begin, int bounds[BOUNDS])
{
	int depth = push(run, 0, begin);
	while (depth > 0) {
		depth--;
		int at = run->stack[depth].at, undo = run->stack[depth].undo;
		if (undo >= 0) {
			bounds[undo] = run->stack[depth].value;
		} else if (run->seen_at[at] != run->place) {
			run->seen_at[at] = run->place;
			depth = follow(run, &run->threads[side], side, at, depth, bounds);
		}
	}
}

/* Takes the byte at the place. Returns whether a thread has matched before it, and writes its bounds to `match`: those
 * of a lower priority end. */
static bool step(struct run *run, int side, int match[BOUNDS])
{
	const struct threads *threads = &run->threads[side];
	int place = run->place, bounds[BOUNDS];
	run->threads[!side].count = 0;
	for (int i = 0; i < threads->count; i++) {
		int at = threads->at[i];
		const struct wlb_pattern_instruction *instruction = &run->pattern->program[at];
		if (instruction->op == WLB_PATTERN_MATCH) {
			memcpy(match, run->bounds[side][at], BOUNDS * sizeof(*match));
			return true;
		}
		if (place == run->length || !wlb_pattern_set_has(instruction->set, (unsigned char)run->line[place]))
			continue;
		memcpy(bounds, run->bounds[side][at], sizeof(bounds));
		run->place = place + 1;
		add(run, !side, at + 1, bounds);
		run->place = place;
	}
	return false;
}

bool wlb_pattern_match(const struct wlb_pattern *pattern, const char *line, size_t length,
                       struct wlb_pattern_span spans[WLB_PATTERN_GROUPS_MOST])
{
	struct run run; /* without what the threads write before they read it */
	int match[BOUNDS], none[BOUNDS], side = 0;
	bool is_found = false;
	run.pattern = pattern;
	run.line = line;
	run.length = (int)length;
	run.threads[0].count = 0;
	memset(run.seen_at, -1, sizeof(run.seen_at));
	memset(none, -1, sizeof(none));
	for (run.place = 0; run.place <= run.length; run.place++, side = !side) {
		if (!is_found) /* a match that begins later has the lowest priority */
			add(&run, side, 0, none);
		if (is_found && run.threads[side].count == 0)
			break;
		is_found |= step(&run, side, match);
	}
	for (int i = 0; is_found && i < pattern->groups; i++)
		spans[i] = (struct wlb_pattern_span){match[2 * i], match[2 * i + 1]};
	return is_found;
}
