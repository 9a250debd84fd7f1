#include "worker/checkpoint/folder.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "worker/data/file_progress.h"
#include "worker/data/input.h"

enum { ABANDONED_S = 3600 }; /* since a partial folder got its last file; hardly a save takes as long */

static int check_length(const char *dir, int length, struct wlb_error *error)
{
	/* Space for the names of the files in it. */
	if (length >= 4096 - 64)
		return wlb_fail(error, "%.100s...: the path of the checkpoints is longer than 4,000 bytes", dir);
	return 0;
}

int wlb_folder_path(const char *dir, int64_t step, enum wlb_folder_kind kind, char path[4096], struct wlb_error *error)
{
	static const char *const formats[] = {
		[WLB_FOLDER_FINAL] = "%s/step_%08lld", [WLB_FOLDER_REPLACED] = "%s/.step_%08lld.replaced"};
	return check_length(dir, snprintf(path, 4096, formats[kind], dir, (long long)step), error);
}

int wlb_folder_partial(const struct wlb_save_place *place, int64_t step, char path[4096], struct wlb_error *error)
{
	return check_length(place->dir,
	                    snprintf(path, 4096, "%s/.step_%08lld.%s.partial", place->dir, (long long)step, place->id),
	                    error);
}

int64_t wlb_folder_step(const char *name)
{
	if (strncmp(name, "step_", 5) != 0 || strlen(name) < 13 || strlen(name) > 23 ||
	    strspn(name + 5, "0123456789") != strlen(name + 5))
		return -1;
	return strtoll(name + 5, NULL, 10);
}

static int is_final(const struct dirent *entry)
{
	return wlb_folder_step(entry->d_name) >= 0;
}

static int is_hidden(const struct dirent *entry)
{
	return strncmp(entry->d_name, ".step_", 6) == 0;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
	int64_t x = wlb_folder_step((*a)->d_name), y = wlb_folder_step((*b)->d_name);
	return x > y ? -1 : x < y;
}

void wlb_folder_list_free(struct dirent **list, int count)
{
	for (int i = 0; i < count; i++)
		free(list[i]);
	free(list);
}

int wlb_folder_steps(const char *dir, int64_t **steps, struct wlb_error *error)
{
	struct dirent **list;
	*steps = NULL;
	wlb_file_report("reading", dir);
	int count = scandir(dir, &list, is_final, newest_first);
	if (count < 0 && errno == ENOENT)
		return 0;
	if (count < 0) {
		int rc = errno == EACCES ? -1 : wlb_input_failure(errno);
		wlb_fail(error, "%s: cannot be read: %s", dir, strerror(errno));
		return rc;
	}
	*steps = calloc((size_t)count + 1, sizeof(**steps));
	for (int i = 0; *steps != NULL && i < count; i++)
		(*steps)[i] = wlb_folder_step(list[i]->d_name);
	wlb_folder_list_free(list, count);
	if (*steps != NULL)
		return count;
	wlb_fail(error, "out of memory for %d checkpoints", count);
	return WLB_UNREADABLE;
}

mode_t wlb_folder_file_mode(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_mode & 0666 : 0600;
}

int wlb_folder_check_file(const char *path, int64_t bytes, struct wlb_error *error)
{
	struct stat st;
	wlb_file_report("opening", path);
	if (stat(path, &st) < 0) {
		int rc = wlb_input_failure(errno);
		wlb_fail(error, "%s: %s", path, strerror(errno));
		return rc;
	}
	if (st.st_size != bytes)
		return wlb_fail(error, "%s: has %lld bytes: the manifest says %lld", path, (long long)st.st_size,
		                (long long)bytes);
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	wlb_file_report("removing", path);
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int wlb_folder_remove(const char *path, struct wlb_error *error)
{
	if (nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
		return wlb_fail(error, "%s: cannot be removed: %s", path, strerror(errno));
	return 0;
}

static int ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), of_end = strlen(end);
	return length >= of_end && strcmp(text + length - of_end, end) == 0;
}

int wlb_folder_may_be_written(const struct wlb_save_place *place, const char *name)
{
	char own[128], path[4096 + NAME_MAX + 1];
	struct stat st;
	snprintf(own, sizeof(own), ".%s.partial", place->id);
	if (place->is_alone || !ends_with(name, ".partial") || ends_with(name, own))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", place->dir, name);
	return stat(path, &st) < 0 || time(NULL) - st.st_mtime < ABANDONED_S;
}

int wlb_folder_list_hidden(const char *dir, struct dirent ***list, struct wlb_error *error)
{
	wlb_file_report("reading", dir);
	int count = scandir(dir, list, is_hidden, alphasort);
	return count >= 0 ? count : wlb_fail(error, "%s: cannot be read: %s", dir, strerror(errno));
}

int wlb_folder_remove_hidden(const struct wlb_save_place *place, struct wlb_error *error)
{
	struct dirent **list;
	int count = wlb_folder_list_hidden(place->dir, &list, error);
	if (count < 0)
		return -1;
	int rc = 0;
	for (int i = 0; i < count; i++) {
		char *path;
		struct wlb_error *first = rc == 0 ? error : NULL;
		if (asprintf(&path, "%s/%s", place->dir, list[i]->d_name) < 0) {
			rc = wlb_fail(first, "out of memory");
			continue;
		}
		if (!wlb_folder_may_be_written(place, list[i]->d_name) && wlb_folder_remove(path, first) < 0)
			rc = -1;
		free(path);
	}
	wlb_folder_list_free(list, count);
	return rc;
}
