/* Reads the monotonic clock and the wall clock. Deadlines are times of the monotonic clock, in milliseconds. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

int64_t wlb_clock_ms(void);                 /* monotonic: for deadlines */
double wlb_clock_unix_s(void);              /* wall clock, seconds since 1970: for records */
double wlb_clock_unix_at_s(int64_t at_ms);  /* the same at a time of the monotonic clock */
int wlb_clock_left_ms(int64_t deadline_ms); /* until the deadline, 0 once it has passed; fits poll() */
void wlb_clock_sleep_ms(int64_t ms);

#endif
