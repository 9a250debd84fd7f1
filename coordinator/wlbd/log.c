#include "coordinator/wlbd/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Written once, before the first thread. */
static enum wlbd_log_level highest = WLBD_LOG_INFO;
static bool journal;

void wlbd_log_open(enum wlbd_log_level level)
{
	highest = level;
	journal = getenv("JOURNAL_STREAM") != NULL;
}

static void prefix(enum wlbd_log_level level, char *text, size_t size)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	static const int priorities[] = {3, 4, 6, 7}; /* of syslog(3) */
	struct timespec now;
	struct tm parts;
	char moment[32];

	if (journal) {
		snprintf(text, size, "<%d>", priorities[level]);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	strftime(moment, sizeof(moment), "%F %T", &parts);
	snprintf(text, size, "%s.%03ld %s: ", moment, now.tv_nsec / 1000000, names[level]);
}

void wlbd_log(enum wlbd_log_level level, const char *format, ...)
{
	char line[2048];
	char start[64];
	va_list args;

	if (level > highest)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	prefix(level, start, sizeof(start));
	/* One call: lines of two threads do not mix. */
	fprintf(stderr, "%s%s\n", start, line);
}
