#include "coordinator/wlb/run/follow/line_files.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "follow/lines.h"
#include "follow/metrics_line.h"
#include "follow/tail.h"
#include "libwlb/wlb.h"

enum {
	READ_BYTES = 65536,
	READS_MOST = 256,      /* of a file in one poll: lines may be long, and a file cut again and again */
	SCAN_MS = 500,         /* for the names of a folder with many files */
	SCAN_AGAIN_MS = 10000, /* where the folder's time has not changed: a file may be as old as the last scan */
	UNRANKED = 1 << 20,    /* the stream of lines that do not say their rank, and the node's number */
	NODES_MOST = 1 << 20,
};

struct file {
	char path[PATH_MAX];
	int node;
	struct wlb_tail_place place;
	struct wlb_lines lines;
};

struct wlb_line_files {
	char begin[PATH_MAX]; /* "": there is one file, which is known */
	struct timespec folder_changed;
	int64_t scan_ms; /* when to look at the folder's names, also where it has not changed */
	enum wlb_source source;
	int count;
	struct file *all[WLB_LINE_FILES_MOST];
	struct wlb_line_counts counts;
	struct wlb_metrics_line line;
	char bytes[READ_BYTES];
};

struct wlb_line_files *wlb_line_files_open(const char *begin, enum wlb_source source)
{
	struct wlb_line_files *files = calloc(1, sizeof(*files));
	if (files == NULL)
		return NULL;
	snprintf(files->begin, sizeof(files->begin), "%s", begin);
	files->source = source;
	return files;
}

void wlb_line_files_close(struct wlb_line_files *files)
{
	for (int i = 0; files != NULL && i < files->count; i++)
		free(files->all[i]);
	free(files);
}

static bool has_node(const struct wlb_line_files *files, int node)
{
	for (int i = 0; i < files->count; i++)
		if (files->all[i]->node == node)
			return true;
	return false;
}

/* Returns false where there is no room for one more. */
static bool add(struct wlb_line_files *files, const char *path, int node)
{
	struct file *file = files->count < WLB_LINE_FILES_MOST ? calloc(1, sizeof(*file)) : NULL;
	if (file == NULL)
		return false;
	file->node = node;
	snprintf(file->path, sizeof(file->path), "%s", path);
	wlb_lines_begin(&file->lines, 0, false);
	files->all[files->count++] = file;
	return true;
}

struct wlb_line_files *wlb_line_files_open_one(const char *path, enum wlb_source source)
{
	struct wlb_line_files *files = wlb_line_files_open("", source);
	if (files != NULL && add(files, path, 0))
		return files;
	wlb_line_files_close(files);
	return NULL;
}

/* The number of the node in a name that begins with `head`; -1: it is another file. */
static int node_of(const char *name, const char *head)
{
	size_t length = strlen(head);
	char *end;
	if (strncmp(name, head, length) != 0 || name[length] < '0' || name[length] > '9')
		return -1;
	long node = strtol(name + length, &end, 10);
	return node < NODES_MOST && strcmp(end, ".jsonl") == 0 ? (int)node : -1;
}

static bool may_have_more(struct wlb_line_files *files, const char *folder, int64_t now_ms)
{
	struct stat about = {0};
	if (stat(folder, &about) == 0 && now_ms < files->scan_ms &&
	    about.st_mtim.tv_sec == files->folder_changed.tv_sec &&
	    about.st_mtim.tv_nsec == files->folder_changed.tv_nsec)
		return false;
	files->folder_changed = about.st_mtim;
	files->scan_ms = now_ms + SCAN_AGAIN_MS;
	return true;
}

static void search(struct wlb_line_files *files)
{
	char path[PATH_MAX];
	const char *head = strrchr(files->begin, '/') + 1;
	int64_t now_ms = wlb_clock_ms(), until_ms = now_ms + SCAN_MS;
	struct dirent *entry;
	snprintf(path, sizeof(path), "%.*s", (int)(head - files->begin), files->begin);
	DIR *folder = may_have_more(files, path, now_ms) ? opendir(path) : NULL;
	if (folder == NULL)
		return;
	files->counts.files_left_out = 0;
	while (wlb_clock_left_ms(until_ms) > 0 && (entry = readdir(folder)) != NULL) {
		int node = node_of(entry->d_name, head);
		bool is_new = node >= 0 && !has_node(files, node);
		if (is_new && snprintf(path, sizeof(path), "%s%d.jsonl", files->begin, node) < (int)sizeof(path))
			files->counts.files_left_out += !add(files, path, node);
	}
	closedir(folder);
}

static void note(struct wlb_line_files *files, const struct wlb_error *error)
{
	if (files->counts.why[0] == '\0')
		wlb_text_show(files->counts.why, sizeof(files->counts.why), error->message);
}

static void take_line(struct wlb_line_files *files, struct file *file, const char *text, size_t length,
                      struct wlb_merged_records *records, double now_s)
{
	struct wlb_metrics_line *line = &files->line;
	struct wlb_error error;
	int rc = wlb_metrics_line_read(line, text, length, &error);
	if (rc < 0) {
		files->counts.bad_lines++;
		note(files, &error);
	}
	if (rc != 1)
		return;
	const struct wlb_origin origin = {.source = files->source,
	                                  .stream = line->rank >= 0 ? line->rank : UNRANKED + file->node,
	                                  .generation = file->place.generation,
	                                  .at = file->lines.line_at};
	const double *restarts =
		files->source == WLB_SOURCE_HOOK ? wlb_followed_find(&line->record, "launcher_restarts") : NULL;
	if (restarts != NULL)
		wlb_merged_records_restarted(records, *restarts, &line->record, now_s);
	else if (line->checkpoint[0] != '\0')
		wlb_merged_records_saved(records, files->source, line->checkpoint, &line->record, now_s);
	else
		wlb_merged_records_take(records, &origin, &line->record, now_s);
}

/* Returns whether there may be more. */
static bool read_file(struct wlb_line_files *files, struct file *file, struct wlb_merged_records *records, double now_s,
                      int64_t *lines_left)
{
	struct wlb_error error;
	for (int reads = 0; *lines_left > 0 && reads < READS_MOST; reads++) {
		size_t count, length;
		const char *bytes = files->bytes;
		char *text;
		enum wlb_tail_result result =
			wlb_tail_read(file->path, &file->place, files->bytes, sizeof(files->bytes), &count, &error);
		if (result == WLB_TAIL_FAILED)
			note(files, &error);
		if (result == WLB_TAIL_ANOTHER)
			wlb_lines_begin(&file->lines, 0, false);
		else if (result != WLB_TAIL_BYTES)
			return false;
		while (result == WLB_TAIL_BYTES &&
		       (text = wlb_lines_next(&file->lines, &bytes, &count, &length)) != NULL) {
			take_line(files, file, text, length, records, now_s);
			--*lines_left;
		}
	}
	return true;
}

bool wlb_line_files_poll(struct wlb_line_files *files, struct wlb_merged_records *records, double now_s,
                         int64_t lines_most)
{
	bool has_more = false;
	if (files->begin[0] != '\0')
		search(files);
	for (int i = 0; i < files->count; i++) {
		int64_t lines_left = lines_most / files->count + 1;
		has_more = read_file(files, files->all[i], records, now_s, &lines_left) || has_more;
	}
	return has_more;
}

bool wlb_line_files_have_bytes(const struct wlb_line_files *files)
{
	for (int i = 0; i < files->count; i++)
		if (files->all[i]->place.offset > 0)
			return true;
	return false;
}

struct wlb_line_counts wlb_line_files_counts(const struct wlb_line_files *files)
{
	struct wlb_line_counts counts = files->counts;
	struct stat about;
	for (int i = 0; i < files->count; i++) {
		counts.long_lines += files->all[i]->lines.skipped_lines;
		if (lstat(files->all[i]->path, &about) == 0 && S_ISREG(about.st_mode) &&
		    about.st_size > files->all[i]->place.offset)
			counts.unread_bytes += about.st_size - files->all[i]->place.offset;
	}
	return counts;
}

void wlb_line_files_remove(struct wlb_line_files *files)
{
	for (int i = 0; i < files->count; i++)
		unlink(files->all[i]->path);
}
