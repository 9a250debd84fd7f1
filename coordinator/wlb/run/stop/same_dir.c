#include "coordinator/wlb/run/stop/same_dir.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_name(const char *part, size_t length, const char *name)
{
	return length == strlen(name) && strncmp(part, name, length) == 0;
}

/* Appends a part of a path to `path`, which has no slash at its end: "" is the root. */
static bool append(char path[PATH_MAX], const char *part, size_t length)
{
	char existing[PATH_MAX];
	size_t used = strlen(path);
	if (length == 0 || is_name(part, length, "."))
		return true;
	if (is_name(part, length, "..")) {
		char *slash = strrchr(path, '/');
		path[slash != NULL ? slash - path : 0] = '\0';
		return true;
	}
	if (used + 1 + length >= PATH_MAX)
		return false;
	path[used] = '/';
	memcpy(path + used + 1, part, length);
	path[used + 1 + length] = '\0';
	if (realpath(path, existing) != NULL)
		strcpy(path, strcmp(existing, "/") == 0 ? "" : existing);
	return true;
}

/* Follows links as far as the path exists. */
static bool resolve(const char *path, char resolved[PATH_MAX])
{
	resolved[0] = '\0';
	if (path[0] != '/' && getcwd(resolved, PATH_MAX) == NULL)
		return false;
	if (strcmp(resolved, "/") == 0)
		resolved[0] = '\0';
	while (*path != '\0') {
		size_t length = strcspn(path, "/");
		if (!append(resolved, path, length))
			return false;
		path += length + (path[length] == '/');
	}
	return true;
}

bool wlb_run_is_same_dir(const char *a, const char *b)
{
	struct stat of_a, of_b;
	char resolved_a[PATH_MAX], resolved_b[PATH_MAX];
	if (strcmp(a, b) == 0)
		return true;
	if (stat(a, &of_a) == 0 && stat(b, &of_b) == 0)
		return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
	return resolve(a, resolved_a) && resolve(b, resolved_b) && strcmp(resolved_a, resolved_b) == 0;
}
