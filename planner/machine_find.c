/* Finds the file of a kind of machine. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "planner/machine.h"

static const char suffix[] = ".json";
enum { LARGEST_FILE_BYTES = 1 << 20, NAMES_SIZE = 512 };

static size_t stem_of(const char *file)
{
	size_t length = strlen(file), end = strlen(suffix);
	return length > end && strcmp(file + length - end, suffix) == 0 ? length - end : 0;
}

/* `path` has space for PATH_MAX + NAME_MAX bytes. */
static void machines_dir(char *path)
{
	const char *named = getenv("WLB_MACHINES");
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
	snprintf(path, PATH_MAX + NAME_MAX, "%s/../share/wlb/machines", program);
}

/* Finds the file of that name in the folder, in any case of letters; the names of all others are added to `names`. */
static int find_in(const char *dir, const char *name, char *path, size_t size, char *names, struct wlb_error *error)
{
	DIR *folder = opendir(dir);
	if (folder == NULL)
		return wlb_fail(error,
		                "directory of machines %s: %s; set WLB_MACHINES to libwlb/machines of the source", dir,
		                strerror(errno));
	bool found = false;
	names[0] = '\0';
	for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
		size_t stem = stem_of(entry->d_name), used = strlen(names);
		found = stem > 0 && stem == strlen(name) && strncasecmp(entry->d_name, name, stem) == 0;
		if (found)
			snprintf(path, size, "%s/%s", dir, entry->d_name);
		else if (stem > 0)
			snprintf(names + used, NAMES_SIZE - used, " %.*s", (int)stem, entry->d_name);
	}
	closedir(folder);
	return found ? 0 : wlb_fail(error, "'%.60s' is unknown: name a .json file, or one of%s", name, names);
}

static int read_file(const char *path, struct wlb_machine *machine, struct wlb_error *error)
{
	char *text;
	size_t bytes;
	if (wlb_file_read(path, LARGEST_FILE_BYTES, &text, &bytes, error) < 0)
		return -1;
	int rc = wlb_machine_file_parse(text, bytes, machine, error);
	free(text);
	return rc < 0 ? wlb_fail_in(error, "%s", path) : 0;
}

int wlb_machine_file_read(const char *from, struct wlb_machine *machine, struct wlb_error *error)
{
	char dir[PATH_MAX + NAME_MAX], path[PATH_MAX + 2 * NAME_MAX + 2], names[NAMES_SIZE];
	int rc;
	if (stem_of(from) > 0) {
		rc = read_file(from, machine, error);
	} else {
		machines_dir(dir);
		rc = find_in(dir, from, path, sizeof(path), names, error);
		if (rc == 0)
			rc = read_file(path, machine, error);
	}
	return rc;
}
