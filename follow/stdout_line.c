#include "follow/stdout_line.h"

#include <stdlib.h>
#include <string.h>

#include "follow/stdout_format.h"

enum { HELD_LINES_MOST = 16 }; /* lines after which no bar follows any more */

struct wlb_stdout {
	struct wlb_pattern
		*patterns[WLB_STDOUT_FORMATS]; /* of wlb_stdout_formats; with a user's pattern the first alone */
	struct wlb_stdout_format user;         /* without a pattern of the user's: all zero */
	struct wlb_followed held;
	int held_lines;              /* since it is held; -1: none is */
	int64_t bar_total, bar_step; /* of the bar of training; total 0: not known */
	char line[WLB_STDOUT_LINE_MOST + 1];
};

static int formats_of(const struct wlb_stdout *reader)
{
	return reader->user.pattern != NULL ? 1 : WLB_STDOUT_FORMATS;
}

static const struct wlb_stdout_format *format_of(const struct wlb_stdout *reader, int i)
{
	return reader->user.pattern != NULL ? &reader->user : &wlb_stdout_formats[i];
}

static int compile(struct wlb_stdout *reader, struct wlb_error *error)
{
	for (int i = 0; i < formats_of(reader); i++) {
		reader->patterns[i] = wlb_pattern_compile(format_of(reader, i)->pattern, error);
		if (reader->patterns[i] == NULL)
			return -1;
	}
	if (wlb_pattern_groups(reader->patterns[0]) == 1)
		return wlb_fail(error,
		                "pattern '%.200s': has no group: write (?P<step>\\d+) and (?P<loss>\\S+) where "
		                "the values are",
		                reader->user.pattern);
	return 0;
}

struct wlb_stdout *wlb_stdout_open(const char *step_pattern, struct wlb_error *error)
{
	struct wlb_stdout *reader = calloc(1, sizeof(*reader));
	if (reader == NULL) {
		wlb_fail(error, "out of memory for the reader of a trainer's output");
		return NULL;
	}
	reader->held_lines = -1;
	reader->user.pattern = step_pattern;
	if (compile(reader, error) < 0) {
		wlb_stdout_close(reader);
		return NULL;
	}
	return reader;
}

void wlb_stdout_close(struct wlb_stdout *reader)
{
	for (int i = 0; reader != NULL && i < WLB_STDOUT_FORMATS; i++)
		wlb_pattern_free(reader->patterns[i]);
	free(reader);
}

/* What the group is called; in a pattern without names its number has a meaning. */
static const char *group_name(const struct wlb_pattern *pattern, int group)
{
	static const char *const by_order[] = {"", "step", "loss", "tokens"};
	for (int i = 1; i < wlb_pattern_groups(pattern); i++)
		if (wlb_pattern_group_name(pattern, i)[0] != '\0')
			return wlb_pattern_group_name(pattern, group);
	return group < (int)(sizeof(by_order) / sizeof(by_order[0])) ? by_order[group] : "";
}

/* Adds what the groups of a match hold. Returns the total of a bar, 0 where there is none. */
static int64_t read_groups(const struct wlb_stdout *reader, int i, const struct wlb_pattern_span *spans,
                           struct wlb_followed *record)
{
	int64_t total = 0;
	for (int group = 1; group < wlb_pattern_groups(reader->patterns[i]); group++) {
		const char *name = group_name(reader->patterns[i], group), *text = reader->line + spans[group].begin;
		size_t length = (size_t)(spans[group].end - spans[group].begin);
		double value;
		if (spans[group].begin < 0 || spans[group].end < 0)
			continue;
		if (strcmp(name, "pairs") == 0 && reader->user.pattern == NULL)
			wlb_stdout_read_pairs(record, format_of(reader, i), text, length);
		else if (!wlb_stdout_number(text, length, &value))
			continue;
		else if (strcmp(name, "step") == 0)
			wlb_followed_set_step(record, WLB_FOLLOWED_STEP, value);
		else if (strcmp(name, "total") == 0 && format_of(reader, i)->role == WLB_STDOUT_BAR)
			total = value < (double)WLB_FOLLOWED_STEP_MOST ? (int64_t)value : 0;
		else if (name[0] != '\0')
			wlb_followed_add(record, name, strlen(name), value);
	}
	return total;
}

/* The format of the line, with the record, or -1. */
static int match(struct wlb_stdout *reader, size_t length, struct wlb_followed *record, int64_t *total)
{
	struct wlb_pattern_span spans[WLB_PATTERN_GROUPS_MOST];
	for (int i = 0; i < formats_of(reader); i++) {
		const char *part = format_of(reader, i)->part;
		if (part != NULL && memmem(reader->line, length, part, strlen(part)) == NULL)
			continue;
		if (wlb_pattern_match(reader->patterns[i], reader->line, length, spans)) {
			*total = read_groups(reader, i, spans, record);
			return i;
		}
	}
	return -1;
}

bool wlb_stdout_flush(struct wlb_stdout *reader, struct wlb_followed *record)
{
	if (reader->held_lines < 0)
		return false;
	*record = reader->held;
	reader->held_lines = -1;
	return true;
}

int64_t wlb_stdout_held_at(const struct wlb_stdout *reader)
{
	return reader->held_lines < 0 ? -1 : reader->held.at;
}

/* A bar of training gives the held record its step. While the loss of a step is logged, no other bar is drawn, so that
 * the one behind it is known to be of training, by its total. */
static bool take_bar(struct wlb_stdout *reader, const struct wlb_followed *bar, int64_t total,
                     struct wlb_followed *record)
{
	if (reader->held_lines >= 0 && wlb_followed_find(&reader->held, "loss") != NULL)
		reader->bar_total = total;
	if (total == 0 || total != reader->bar_total)
		return false;
	bool is_new = bar->step > reader->bar_step;
	reader->bar_step = bar->step;
	if (!wlb_stdout_flush(reader, record)) {
		*record = *bar;
		return is_new; /* the same bar is drawn again and again */
	}
	if (record->step_kind == WLB_FOLLOWED_NO_STEP)
		wlb_followed_set_step(record, WLB_FOLLOWED_STEP, (double)bar->step);
	return true;
}

static bool hold(struct wlb_stdout *reader, const struct wlb_followed *values, struct wlb_followed *record)
{
	bool is_given = wlb_stdout_flush(reader, record);
	reader->held = *values;
	reader->held_lines = 0;
	return is_given;
}

bool wlb_stdout_read(struct wlb_stdout *reader, const char *line, size_t length, int64_t at,
                     struct wlb_followed *record)
{
	struct wlb_followed found;
	int64_t total = 0;
	if (length > WLB_STDOUT_LINE_MOST)
		return false;
	length = wlb_text_without_escapes(reader->line, sizeof(reader->line), line, length);
	wlb_followed_begin(&found);
	found.at = at;
	int format = match(reader, length, &found, &total);
	enum wlb_stdout_role role = format >= 0 ? format_of(reader, format)->role : WLB_STDOUT_RECORD;
	if (role == WLB_STDOUT_BAR)
		return take_bar(reader, &found, total, record);
	if (role == WLB_STDOUT_NEEDS_BAR)
		return hold(reader, &found, record);
	if (format >= 0 && (found.count > 0 || found.step_kind != WLB_FOLLOWED_NO_STEP)) {
		*record = found;
		return true;
	}
	if (reader->held_lines >= 0 && ++reader->held_lines > HELD_LINES_MOST)
		return wlb_stdout_flush(reader, record);
	return false;
}
