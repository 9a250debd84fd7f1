#include "coordinator/wlb/run/follow/output_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "follow/lines.h"
#include "follow/stdout_line.h"
#include "follow/tail.h"

enum {
	READ_BYTES = 65536,
	BEHIND_BYTES = 16 << 20, /* what is older is passed over */
	POLL_MS = 500,           /* for one poll */
};

static const double QUIET_S = 2.0; /* then a record that waits for its step gets none */

struct wlb_output_file {
	char path[PATH_MAX];
	struct wlb_stdout *reader;
	struct wlb_tail_place place;
	struct wlb_lines lines;
	int64_t passed_bytes;
	double polled_s, read_s; /* the last poll, and the last that found something */
	struct wlb_followed record;
	char bytes[READ_BYTES];
};

/* Returns false where `fd` is no regular file, or has no name any more. */
static bool find_path(int fd, char *path, size_t size, int64_t *end)
{
	char link[64];
	struct stat of_fd, of_path;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, size - 1);
	if (length <= 0 || fstat(fd, &of_fd) != 0 || !S_ISREG(of_fd.st_mode))
		return false;
	path[length] = '\0';
	*end = of_fd.st_size;
	return stat(path, &of_path) == 0 && of_path.st_ino == of_fd.st_ino && of_path.st_dev == of_fd.st_dev;
}

int wlb_output_file_open(struct wlb_output_file **file, int fd, const char *step_pattern, struct wlb_error *error)
{
	char path[PATH_MAX];
	int64_t end;
	*file = NULL;
	if (!find_path(fd, path, sizeof(path), &end))
		return 0;
	struct wlb_output_file *opened = calloc(1, sizeof(*opened));
	if (opened == NULL)
		return wlb_fail(error, "out of memory for a reader of the output");
	snprintf(opened->path, sizeof(opened->path), "%s", path);
	opened->place.offset = end;
	wlb_lines_begin(&opened->lines, end, true);
	opened->reader = wlb_stdout_open(step_pattern, error);
	if (opened->reader == NULL) {
		free(opened);
		return -1;
	}
	*file = opened;
	return 0;
}

void wlb_output_file_close(struct wlb_output_file *file)
{
	if (file == NULL)
		return;
	wlb_stdout_close(file->reader);
	free(file);
}

int64_t wlb_output_file_passed_bytes(const struct wlb_output_file *file)
{
	return file->passed_bytes;
}

static void pass_over(struct wlb_output_file *file)
{
	struct stat about;
	if (lstat(file->path, &about) != 0 || about.st_size - file->place.offset <= BEHIND_BYTES)
		return;
	file->passed_bytes += about.st_size - BEHIND_BYTES / 2 - file->place.offset;
	file->place.offset = about.st_size - BEHIND_BYTES / 2;
	wlb_lines_begin(&file->lines, file->place.offset, true);
}

/* What was read in one poll was printed since the last one: its lines lie between the two times as its bytes do. */
static void take(struct wlb_output_file *file, struct wlb_merged_records *records, int stream, double time_s)
{
	const struct wlb_origin origin = {.source = WLB_SOURCE_STDOUT,
	                                  .stream = stream,
	                                  .generation = file->place.generation,
	                                  .at = file->record.at};
	wlb_merged_records_take(records, &origin, &file->record, time_s);
}

static void take_bytes(struct wlb_output_file *file, struct wlb_merged_records *records, int stream, size_t count,
                       double begin_s, double now_s)
{
	const char *bytes = file->bytes;
	size_t length, all = count;
	char *text;
	while ((text = wlb_lines_next(&file->lines, &bytes, &count, &length)) != NULL)
		if (wlb_stdout_read(file->reader, text, length, file->lines.line_at, &file->record))
			take(file, records, stream, begin_s + (now_s - begin_s) * (double)(all - count) / (double)all);
}

void wlb_output_file_poll(struct wlb_output_file *file, struct wlb_merged_records *records, int stream, double now_s,
                          bool is_last)
{
	double begin_s = file->polled_s > 0.0 ? file->polled_s : now_s;
	int64_t until_ms = wlb_clock_ms() + POLL_MS;
	enum wlb_tail_result result = WLB_TAIL_BYTES;
	struct wlb_error error;
	pass_over(file);
	while ((result == WLB_TAIL_BYTES || result == WLB_TAIL_ANOTHER) && wlb_clock_left_ms(until_ms) > 0) {
		size_t count;
		result = wlb_tail_read(file->path, &file->place, file->bytes, sizeof(file->bytes), &count, &error);
		if (result == WLB_TAIL_ANOTHER)
			wlb_lines_begin(&file->lines, 0, true);
		if (result != WLB_TAIL_BYTES)
			continue;
		file->read_s = now_s;
		take_bytes(file, records, stream, count, begin_s, now_s);
		begin_s = count == sizeof(file->bytes) ? begin_s : now_s;
	}
	file->polled_s = now_s;
	if ((is_last || now_s - file->read_s > QUIET_S) && wlb_stdout_flush(file->reader, &file->record))
		take(file, records, stream, now_s);
}
