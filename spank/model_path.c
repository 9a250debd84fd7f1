#include "spank/model_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with_path(const char *path, const char *end)
{
	size_t length = strlen(path);
	size_t end_length = strlen(end);
	if (path[0] != '/' || end_length == 0 || end_length > length || strcmp(path + length - end_length, end) != 0)
		return false;
	return end_length == length || path[length - end_length - 1] == '/';
}

int wlb_model_path_resolve(const char *typed, const char *known, const char *base, char *path, size_t size)
{
	int length = -1;
	if (known != NULL && ends_with_path(known, typed))
		length = snprintf(path, size, "%s", known);
	else if (typed[0] == '/')
		length = snprintf(path, size, "%s", typed);
	else if (base != NULL && base[0] != '\0')
		length = snprintf(path, size, "%s/%s", base, typed);
	return length >= 0 && (size_t)length < size ? 0 : -1;
}

static int refuse(const char *typed, const char *why, struct wlb_error *error)
{
	return wlb_fail(error,
	                "--wlb-model=%.200s: %s; name the model's readable config.json, for example "
	                "--wlb-model=config.json",
	                typed, why);
}

int wlb_model_path_check(const char *typed, const char *known, struct wlb_error *error)
{
	if (known != NULL && ends_with_path(known, typed))
		return 0;
	struct stat status;
	if (stat(typed, &status) != 0)
		return refuse(typed, strerror(errno), error);
	if (!S_ISREG(status.st_mode))
		return refuse(typed, "is not a regular file", error);
	if (access(typed, R_OK) != 0)
		return refuse(typed, strerror(errno), error);
	return 0;
}
