/* Times of the API (UTC, ISO 8601) for people: local time zone, durations as squeue has them. */
#ifndef COORDINATOR_WLB_OUTPUT_TIME_FORMAT_H
#define COORDINATOR_WLB_OUTPUT_TIME_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* "2026-11-20T10:00:00Z" -> seconds since 1970; (time_t)-1 for NULL and for anything else. */
time_t wlb_time_parse(const char *text);

/* "2026-11-20 10:00:00" here, or "-" for (time_t)-1. */
void wlb_time_format(time_t when, char *text, size_t size);

/* The clock time alone, "10:00:00", or with the day, "11-20 10:00:00". */
void wlb_time_short(time_t when, bool has_day, char *text, size_t size);

/* Whether both are of one day here. */
bool wlb_time_same_day(time_t one, time_t other);

/* "4:05", "2:04:05", "1-02:04:05"; "-" for a negative number. */
void wlb_duration_format(long seconds, char *text, size_t size);

#endif
