#include "planner/data_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"

static const char suffix[] = ".json";
enum { LARGEST_FILE_BYTES = 1 << 20, NAMES_SIZE = 512 };

static size_t stem_of(const char *file)
{
	size_t length = strlen(file), end = strlen(suffix);
	return length > end && strcmp(file + length - end, suffix) == 0 ? length - end : 0;
}

/* `path` has space for PATH_MAX + NAME_MAX bytes. */
static void folder_path(const struct wlb_data_folder *folder, char *path)
{
	const char *named = getenv(folder->variable);
	char program[PATH_MAX];
	if (named != NULL && *named != '\0') {
		snprintf(path, PATH_MAX, "%s", named);
		return;
	}
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (slash != NULL)
		*slash = '\0';
	snprintf(path, PATH_MAX + NAME_MAX, "%s/../share/wlb/%s", program, folder->name);
}

/* Finds the file of that name in the folder, in any case of letters; the names of all others are added to `names`. */
static int find_in(const struct wlb_data_folder *folder, const char *dir, const char *name, char *path, size_t size,
                   struct wlb_error *error)
{
	char names[NAMES_SIZE] = "";
	DIR *files = opendir(dir);
	if (files == NULL)
		return wlb_fail(error, "directory of %s %s: %s; set %s to libwlb/%s of the source", folder->name, dir,
		                strerror(errno), folder->variable, folder->name);
	bool found = false;
	for (const struct dirent *entry; !found && (entry = readdir(files)) != NULL;) {
		size_t stem = stem_of(entry->d_name), used = strlen(names);
		found = stem > 0 && stem == strlen(name) && strncasecmp(entry->d_name, name, stem) == 0;
		if (found)
			snprintf(path, size, "%s/%s", dir, entry->d_name);
		else if (stem > 0)
			snprintf(names + used, NAMES_SIZE - used, " %.*s", (int)stem, entry->d_name);
	}
	closedir(files);
	return found ? 0 : wlb_fail(error, "'%.60s' is unknown: name a .json file, or one of%s", name, names);
}

int wlb_data_file_read(const struct wlb_data_folder *folder, const char *from,
                       int (*parse)(const char *text, size_t bytes, void *into, struct wlb_error *error), void *into,
                       struct wlb_error *error)
{
	char dir[PATH_MAX + NAME_MAX], path[PATH_MAX + 2 * NAME_MAX + 2], *text;
	size_t bytes;
	if (stem_of(from) == 0) {
		folder_path(folder, dir);
		if (find_in(folder, dir, from, path, sizeof(path), error) < 0)
			return -1;
		from = path;
	}
	if (wlb_file_read(from, LARGEST_FILE_BYTES, &text, &bytes, error) < 0)
		return -1;
	int rc = parse(text, bytes, into, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "%s", from) : 0;
}
