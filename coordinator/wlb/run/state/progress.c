#include "coordinator/wlb/run/state/progress.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/own_file.h"

enum { READ_BYTES = 64 * 1024, READS_MAX = 64 };

/* The longest of the newest 4 to 8 saves counts, and the longest of the newest 100 to 200 steps: a file system that was
 * slow once, or a network that failed in one step, says little of later saves and steps. */
enum { SAVES_OF_BLOCK = 4, STEPS_OF_BLOCK = 100 };

/* The caller comes each second, or some seconds later where it waited for an answer. */
static const double STANDSTILL_S = 15.0;

void wlb_run_progress_reset(struct wlb_run_progress *progress)
{
	if (progress->fd >= 0)
		close(progress->fd);
	progress->fd = -1;
	progress->saved_step = -1;
	progress->line_bytes = 0;
	progress->read_ms = 0;
	progress->stood_still_s = 0.0;
}

double wlb_run_longest_s(const struct wlb_run_longest *longest)
{
	return fmax(longest->block_s, longest->before_s);
}

static void add_time(struct wlb_run_longest *longest, double value_s, int block_count)
{
	longest->block_s = fmax(longest->block_s, value_s);
	if (++longest->count >= block_count)
		*longest = (struct wlb_run_longest){.before_s = longest->block_s};
}

static double seconds(const json_t *data, const char *name)
{
	double value = json_number_value(json_object_get(data, name));
	return isfinite(value) && value > 0.0 ? value : 0.0;
}

/* The clock by which steps are timed goes on while a job is suspended. */
static double without_standstill(struct wlb_run_progress *progress, double value_s)
{
	return value_s > progress->stood_still_s ? value_s - progress->stood_still_s : value_s;
}

static void note_standstill(struct wlb_run_progress *progress, int64_t now_ms)
{
	double since_s = progress->read_ms != 0 ? (double)(now_ms - progress->read_ms) / 1e3 : 0.0;
	if (since_s > STANDSTILL_S)
		progress->stood_still_s += since_s;
	progress->read_ms = now_ms;
}

static void take_record(struct wlb_run_progress *progress, const json_t *record)
{
	const char *type = json_string_value(json_object_get(record, "type"));
	const json_t *data = json_object_get(record, "data");
	if (type == NULL)
		return;
	if (strcmp(type, "step") == 0) {
		double step_s = seconds(data, "step_time_s"), moved_s = without_standstill(progress, step_s);
		add_time(&progress->steps, moved_s, STEPS_OF_BLOCK);
		if (moved_s < step_s)
			progress->stood_still_s = 0.0;
	} else if (strcmp(type, "checkpoint") == 0) {
		add_time(&progress->saves, without_standstill(progress, seconds(data, "duration_s")), SAVES_OF_BLOCK);
		progress->saved_step = json_integer_value(json_object_get(data, "step"));
	}
}

static void take_line(struct wlb_run_progress *progress)
{
	json_t *record = NULL;
	if (progress->line_bytes < sizeof(progress->line))
		record = json_loadb(progress->line, progress->line_bytes, 0, NULL);
	if (record != NULL)
		take_record(progress, record);
	json_decref(record);
	progress->line_bytes = 0;
}

static void take_bytes(struct wlb_run_progress *progress, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n')
			take_line(progress);
		else if (progress->line_bytes < sizeof(progress->line))
			progress->line[progress->line_bytes++] = bytes[i];
	}
}

void wlb_run_progress_read(struct wlb_run_progress *progress, const char *spool_dir, const char *attempt_id,
                           int64_t now_ms)
{
	char path[PATH_MAX], bytes[READ_BYTES];
	ssize_t count = 1;
	note_standstill(progress, now_ms);
	if (progress->fd < 0) {
		snprintf(path, sizeof(path), "%s/%s.rank0.jsonl", spool_dir, attempt_id);
		progress->fd = wlb_own_file_open(path, O_RDONLY, NULL);
	}
	for (int i = 0; progress->fd >= 0 && i < READS_MAX && count > 0; i++) {
		count = read(progress->fd, bytes, sizeof(bytes));
		if (count > 0)
			take_bytes(progress, bytes, (size_t)count);
	}
}
