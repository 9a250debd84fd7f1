#include "coordinator/wlb/trace/span_line.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static bool take_text(char *to, size_t size, const char *text)
{
	size_t bytes = text != NULL ? strlen(text) : 0;
	if (bytes == 0 || bytes >= size)
		return false;
	memcpy(to, text, bytes + 1);
	return true;
}

static bool is_plain(const char *name)
{
	for (; *name != '\0'; name++)
		if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
			return false;
	return true;
}

static bool is_within(double value, double most)
{
	return value >= 0.0 && value <= most;
}

static bool read_rank(const json_t *event, struct wlb_span_line *line)
{
	const char *name, *node;
	line->kind = WLB_SPAN_RANK;
	return json_unpack((json_t *)event, "{s:{s:s, s:s, s:i}}", "args", "name", &name, "node", &node, "ranks",
	                   &line->ranks) == 0 &&
	       take_text(line->name, sizeof(line->name), name) && take_text(line->node, sizeof(line->node), node) &&
	       line->ranks > line->rank && line->ranks <= WLB_SPAN_RANK_MOST + 1;
}

static bool read_track(const json_t *event, struct wlb_span_line *line)
{
	const char *name;
	line->kind = WLB_SPAN_TRACK;
	return json_unpack((json_t *)event, "{s:i, s:{s:s}}", "tid", &line->track, "args", "name", &name) == 0 &&
	       take_text(line->name, sizeof(line->name), name) && is_plain(line->name) &&
	       is_within(line->track, WLB_SPAN_TRACK_MOST);
}

static bool read_time(const json_t *event, struct wlb_span_line *line)
{
	json_int_t step, seq = 0, bytes = 0;
	const char *name;
	line->kind = WLB_SPAN_TIME;
	if (json_unpack((json_t *)event, "{s:i, s:s, s:F, s:F, s:{s:I, s?I, s?I}}", "tid", &line->track, "name", &name,
	                "ts", &line->at_us, "dur", &line->took_us, "args", "step", &step, "seq", &seq, "bytes",
	                &bytes) != 0)
		return false;
	line->step = step;
	line->seq = (uint64_t)seq;
	line->bytes = (uint64_t)bytes;
	return take_text(line->name, sizeof(line->name), name) && is_plain(line->name) &&
	       is_within(line->track, WLB_SPAN_TRACK_MOST) && is_within(line->at_us, WLB_SPAN_US_MOST) &&
	       is_within(line->took_us, WLB_SPAN_US_MOST) && step >= 0 && seq >= 0 && bytes >= 0;
}

int wlb_span_line_read(const char *text, size_t length, struct wlb_span_line *line, struct wlb_error *error)
{
	json_error_t why;
	const char *phase, *name;
	*line = (struct wlb_span_line){0};
	json_t *event = json_loadb(text, length, 0, &why);
	if (event == NULL)
		return wlb_fail(error, "is no JSON: %s", why.text);
	bool is_right = json_unpack(event, "{s:s, s:s, s:i}", "ph", &phase, "name", &name, "pid", &line->rank) == 0 &&
	                is_within(line->rank, WLB_SPAN_RANK_MOST);
	if (is_right && strcmp(phase, "X") == 0)
		is_right = read_time(event, line);
	else if (is_right && strcmp(phase, "M") == 0)
		is_right = strcmp(name, "process_name") == 0 ? read_rank(event, line) : read_track(event, line);
	else
		is_right = false;
	json_decref(event);
	return is_right ? 0 : wlb_fail(error, "is no event of a rank's trace file");
}
