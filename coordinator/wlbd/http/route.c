#include "coordinator/wlbd/http/route.h"

#include <stdlib.h>
#include <string.h>

/* Returns the number of digits that `text` begins with; 0 where they are more than `max` or begin with a zero. */
static size_t number_length(const char *text, size_t max)
{
	size_t length = strspn(text, "0123456789");
	return text[0] != '0' && length <= max ? length : 0;
}

/* Whether `text` is "", or ".N". */
static bool is_launch(const char *text)
{
	size_t length = text[0] == '.' ? number_length(text + 1, 6) : 0;
	return text[0] == '\0' || (length > 0 && text[1 + length] == '\0');
}

bool wlbd_run_name_valid(const char *name)
{
	size_t job = number_length(name, 10);
	return job > 0 && is_launch(name + job);
}

/* Tasks and components are counted from 0. */
bool wlbd_run_alias_valid(const char *name)
{
	size_t job = number_length(name, 10);
	if (job == 0 || (name[job] != '_' && name[job] != '+'))
		return wlbd_run_name_valid(name);
	const char *part = name + job + 1;
	size_t length = part[0] == '0' ? 1 : number_length(part, 10);
	return length > 0 && is_launch(part + length);
}

uint32_t wlbd_run_job_id(const char *run)
{
	unsigned long long number = strtoull(run, NULL, 10);
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* Compares segment by segment; copies what matches the '*' to run. */
static bool matches(const struct wlbd_route *route, const char *path, char run[WLBD_RUN_NAME_SIZE], bool *run_valid)
{
	const char *pattern = route->pattern;
	run[0] = '\0';
	*run_valid = true;
	const char *star = strchr(pattern, '*');
	if (star == NULL)
		return strcmp(pattern, path) == 0;
	size_t before = (size_t)(star - pattern);
	if (strncmp(pattern, path, before) != 0)
		return false;
	const char *name = path + before;
	size_t length = strcspn(name, "/");
	if (length == 0 || strcmp(name + length, star + 1) != 0)
		return false;
	*run_valid = false;
	if (length < WLBD_RUN_NAME_SIZE) {
		memcpy(run, name, length);
		run[length] = '\0';
		*run_valid = route->takes_alias ? wlbd_run_alias_valid(run) : wlbd_run_name_valid(run);
	}
	return true;
}

enum wlbd_match wlbd_route_match(const struct wlbd_route *routes, size_t count, const char *method, const char *path,
                                 const struct wlbd_route **route, char run[WLBD_RUN_NAME_SIZE])
{
	enum wlbd_match result = WLBD_MATCH_NO_PATH;
	bool run_valid;
	for (size_t i = 0; i < count; i++) {
		if (!matches(&routes[i], path, run, &run_valid))
			continue;
		if (strcmp(routes[i].method, method) != 0) {
			result = WLBD_MATCH_NO_METHOD;
			continue;
		}
		*route = &routes[i];
		return run_valid ? WLBD_MATCH : WLBD_MATCH_BAD_RUN;
	}
	return result;
}
