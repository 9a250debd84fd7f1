#include "coordinator/wlb/trace/rank_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/named_file.h"

enum {
	LINE_BYTES_MOST = 4096,
	LINES_MOST = 1 << 19, /* twice what a rank writes */
};

/* Returns 1 and the line without its end, 0 at the end of the file, or of what is whole of it, -1 with the reason. */
static int read_text(struct wlb_rank_file *file, char text[LINE_BYTES_MOST], size_t *length, struct wlb_error *error)
{
	static const char end[] = ",\n";
	if (fgets(text, LINE_BYTES_MOST, file->in) == NULL)
		return ferror(file->in) ? wlb_fail(error, "%.500s: %s", file->path, strerror(errno)) : 0;
	if (++file->number > LINES_MOST)
		return wlb_fail(error, "%.500s: has more than %d lines, which no rank writes", file->path, LINES_MOST);
	*length = strlen(text);
	if (file->number == 1 && strcmp(text, "[\n") == 0)
		return read_text(file, text, length, error);
	if (*length >= 2 && strcmp(text + *length - 2, end) == 0) {
		*length -= 2;
		return 1;
	}
	return feof(file->in) ? 0
	                      : wlb_fail(error, "%.500s, line %lld: is no line of a rank's trace file", file->path,
	                                 (long long)file->number);
}

int wlb_rank_file_next(struct wlb_rank_file *file, struct wlb_error *error)
{
	char text[LINE_BYTES_MOST];
	size_t length = 0;
	int rc = read_text(file, text, &length, error);
	if (rc != 1)
		return rc;
	if (wlb_span_line_read(text, length, &file->line, error) < 0)
		return wlb_fail_in(error, "%.500s, line %lld", file->path, (long long)file->number);
	if (file->line.rank != file->rank)
		return wlb_fail(error, "%.500s, line %lld: is of rank %d, and the file of rank %d", file->path,
		                (long long)file->number, file->line.rank, file->rank);
	if (file->line.kind == WLB_SPAN_TRACK && strcmp(file->line.name, "world") == 0)
		file->world_track = file->line.track;
	return 1;
}

int wlb_rank_file_open(struct wlb_rank_file *file, const char *folder, int rank, struct wlb_error *error)
{
	*file = (struct wlb_rank_file){.rank = rank, .world_track = -1};
	if (snprintf(file->path, sizeof(file->path), "%s/rank-%06d.json", folder, rank) >= (int)sizeof(file->path))
		return wlb_fail(error, "%.200s: the path is too long", folder);
	int fd = wlb_named_file_open(file->path, error);
	if (fd < 0)
		return -1;
	file->in = fdopen(fd, "r");
	if (file->in == NULL) {
		close(fd);
		return wlb_fail(error, "%.500s: %s", file->path, strerror(errno));
	}
	int rc = wlb_rank_file_next(file, error);
	if (rc == 1 && file->line.kind == WLB_SPAN_RANK)
		return 0;
	if (rc >= 0)
		wlb_fail(error, "%.500s: does not begin with the name of its rank: no traced step has ended yet",
		         file->path);
	wlb_rank_file_close(file);
	return -1;
}

void wlb_rank_file_close(struct wlb_rank_file *file)
{
	fclose(file->in);
}
