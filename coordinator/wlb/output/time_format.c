#include "coordinator/wlb/output/time_format.h"

#include <stdio.h>

time_t wlb_time_parse(const char *text)
{
	struct tm utc = {0};
	if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) == NULL)
		return (time_t)-1;
	return timegm(&utc);
}

static void format_local(time_t when, const char *format, char *text, size_t size)
{
	struct tm local;
	if (when == (time_t)-1 || localtime_r(&when, &local) == NULL || strftime(text, size, format, &local) == 0)
		snprintf(text, size, "-");
}

void wlb_time_format(time_t when, char *text, size_t size)
{
	format_local(when, "%Y-%m-%d %H:%M:%S", text, size);
}

void wlb_time_short(time_t when, bool has_day, char *text, size_t size)
{
	format_local(when, has_day ? "%m-%d %H:%M:%S" : "%H:%M:%S", text, size);
}

bool wlb_time_same_day(time_t one, time_t other)
{
	struct tm a, b;
	return localtime_r(&one, &a) != NULL && localtime_r(&other, &b) != NULL && a.tm_year == b.tm_year &&
	       a.tm_yday == b.tm_yday;
}

void wlb_duration_format(long seconds, char *text, size_t size)
{
	long days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
	if (seconds < 0)
		snprintf(text, size, "-");
	else if (days > 0)
		snprintf(text, size, "%ld-%02ld:%02ld:%02ld", days, hours, minutes, seconds % 60);
	else if (hours > 0)
		snprintf(text, size, "%ld:%02ld:%02ld", hours, minutes, seconds % 60);
	else
		snprintf(text, size, "%ld:%02ld", minutes, seconds % 60);
}
