/* Lines on stderr: each begins with the time, or, under journald, with a priority. */
#ifndef COORDINATOR_WLBD_LOG_H
#define COORDINATOR_WLBD_LOG_H

enum wlbd_log_level {
	WLBD_LOG_ERROR,
	WLBD_LOG_WARNING,
	WLBD_LOG_INFO,
	WLBD_LOG_DEBUG,
};

/* Called once, before threads are started; until then lines up to INFO are written. */
void wlbd_log_open(enum wlbd_log_level level);

/* Kinds of lines that a client can cause as often as it likes: of each, ten are written in ten seconds, and the rest is
 * counted. */
enum wlbd_log_limit {
	WLBD_LIMIT_MUNGE,
	WLBD_LIMIT_HTTP,
	WLBD_LIMIT_CONNECTIONS,
	WLBD_LIMIT_END,
	WLBD_LIMIT_SLURM,
	WLBD_LIMIT_DATABASE,
	WLBD_LIMIT_ACTIVITIES,
	WLBD_LIMIT_ATTEMPTS,
	WLBD_LIMIT_VERDICTS,
	WLBD_LIMIT_SETTING,
	WLBD_LIMIT_NODE_CHECK,
	WLBD_LIMIT_COUNT,
};
void wlbd_log_limited(enum wlbd_log_level level, enum wlbd_log_limit kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes one line. Any thread may call it. */
void wlbd_log(enum wlbd_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
