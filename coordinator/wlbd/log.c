#include "coordinator/wlbd/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "libwlb/wlb.h"

enum { PERIOD_MS = 10000, LINES_MAX = 10 };

/* Set once, before the first thread is started. */
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

static void write_line(enum wlbd_log_level level, const char *text, unsigned omitted)
{
	char start[64], more[64] = "";
	prefix(level, start, sizeof(start));
	if (omitted > 0)
		snprintf(more, sizeof(more), " (%u lines like this were omitted before it)", omitted);
	/* One call, so that lines of two threads do not mix. */
	fprintf(stderr, "%s%s%s\n", start, text, more);
}

void wlbd_log(enum wlbd_log_level level, const char *format, ...)
{
	char line[2048];
	va_list args;

	if (level > highest)
		return;
	va_start(args, format);
	wlb_text_vformat(line, sizeof(line), format, args); /* what clients send shall not look like another line */
	va_end(args);
	write_line(level, line, 0);
}

/* How many lines of a kind were written and omitted in the current period. */
struct allowance {
	int64_t until_ms;
	unsigned written;
	unsigned omitted;
};

static bool allow(enum wlbd_log_limit kind, unsigned *omitted)
{
	static struct allowance allowances[WLBD_LIMIT_COUNT];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct allowance *allowance = &allowances[kind];
	pthread_mutex_lock(&lock);
	if (wlb_clock_ms() >= allowance->until_ms) {
		allowance->until_ms = wlb_clock_ms() + PERIOD_MS;
		allowance->written = 0;
	}
	bool allowed = allowance->written < LINES_MAX;
	allowance->written += allowed;
	*omitted = allowed ? allowance->omitted : 0;
	allowance->omitted = allowed ? 0 : allowance->omitted + 1;
	pthread_mutex_unlock(&lock);
	return allowed;
}

void wlbd_log_limited(enum wlbd_log_level level, enum wlbd_log_limit kind, const char *format, ...)
{
	char line[2048];
	unsigned omitted;
	va_list args;

	if (level > highest || !allow(kind, &omitted))
		return;
	va_start(args, format);
	wlb_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	write_line(level, line, omitted);
}
