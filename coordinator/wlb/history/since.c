#include "coordinator/wlb/history/since.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 9 }; /* of how long ago, so that no product overflows */

/* Returns the seconds of "90s" and so on; -1: it is no such text. */
static long long ago_s(const char *text)
{
	static const struct {
		char letter;
		long long seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > DIGITS_MAX || strlen(text) != digits + 1)
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

/* mktime makes another time of one that the calendar, or the change to summer time, leaves out; -1: it is such a time.
 */
static time_t existing_time(const struct tm *local)
{
	struct tm found = *local;
	time_t when = mktime(&found);
	bool is_same = found.tm_mon == local->tm_mon && found.tm_mday == local->tm_mday &&
	               found.tm_hour == local->tm_hour && found.tm_min == local->tm_min;
	return is_same ? when : (time_t)-1;
}

/* The newest such time of a day that is not after now; -1: it is no time of a day. */
static time_t time_of_day(const char *text, time_t now)
{
	struct tm local;
	if (localtime_r(&now, &local) == NULL)
		return (time_t)-1;
	local.tm_sec = 0;
	local.tm_isdst = -1;
	if (!matches(text, "%H:%M", &local))
		return (time_t)-1;
	struct tm day_before = local;
	day_before.tm_mday--;
	time_t today = mktime(&local);
	return today <= now ? today : mktime(&day_before);
}

static time_t local_time(const char *text, time_t now)
{
	static const char *const dates[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
	                                    "%Y-%m-%d %H:%M", "%Y-%m-%d"};
	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		struct tm local = {.tm_isdst = -1};
		if (matches(text, dates[i], &local))
			return existing_time(&local);
	}
	return time_of_day(text, now);
}

int wlb_since_parse(const char *text, time_t now, time_t *since, struct wlb_error *error)
{
	long long seconds = ago_s(text);
	time_t found = seconds >= 0 ? now - (time_t)seconds : local_time(text, now);
	if (found <= 0 || found > now)
		return wlb_fail(error,
		                "'%.60s': must be how long ago, such as 45m, 12h or 3d, or a local time that has "
		                "been, after 1970, such as 2026-11-20, 2026-11-20T10:00 or 10:00",
		                text);
	*since = found;
	return 0;
}
