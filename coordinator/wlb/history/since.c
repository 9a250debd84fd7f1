#include "coordinator/wlb/history/since.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MOST = 9 }; /* of how long ago, so that no product overflows */

/* Returns the seconds of "90s" and so on; -1: it is no such text. */
static long long ago_s(const char *text)
{
	static const struct {
		char letter;
		long long seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > DIGITS_MOST || strlen(text) != digits + 1)
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].letter == text[digits])
			return strtoll(text, NULL, 10) * units[i].seconds;
	return -1;
}

/* Reads the whole text by one of strptime's formats into fields of *local that the format has. */
static bool matches(const char *text, const char *format, struct tm *local)
{
	const char *end = strptime(text, format, local);
	return end != NULL && *end == '\0';
}

static time_t local_time(const char *text, time_t now)
{
	static const char *const dates[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
	                                    "%Y-%m-%d %H:%M", "%Y-%m-%d"};
	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		struct tm local = {.tm_isdst = -1};
		if (matches(text, dates[i], &local))
			return mktime(&local);
	}
	struct tm today;
	if (localtime_r(&now, &today) == NULL)
		return (time_t)-1;
	today.tm_sec = 0;
	today.tm_isdst = -1;
	return matches(text, "%H:%M", &today) ? mktime(&today) : (time_t)-1;
}

int wlb_since_parse(const char *text, time_t now, time_t *since, struct wlb_error *error)
{
	long long seconds = ago_s(text);
	time_t found = seconds >= 0 ? now - (time_t)seconds : local_time(text, now);
	if (found <= 0)
		return wlb_fail(error,
		                "'%.60s': must be how long ago, such as 45m, 12h or 3d, or a local time after 1970, "
		                "such as 2026-11-20, 2026-11-20T10:00 or 10:00",
		                text);
	*since = found;
	return 0;
}
