/* Requests to a coordinator, and how long they took. */
#ifndef TESTS_BENCH_COORDINATOR_REQUESTS_H
#define TESTS_BENCH_COORDINATOR_REQUESTS_H

#include <stdint.h>

#include "coordinator/client/client.h"

/* The requests of one thread. Begins as zeros. */
struct requests {
	double *took_ms; /* [count] */
	long count;
	long space;
	long refused;    /* of them: with another status than 200 */
	long unanswered; /* of them */
};

/* Posts to /v1/runs/RUN/WHAT for `sender`, and notes how long that took. Returns 0 where the status was 200. */
int requests_post(struct requests *requests, struct wlb_connection *connection, const char *run, const char *what,
                  const char *sender, const char *body, int timeout_ms);

/* Prints "NAME":{...}: how many requests of all threads, and the quantiles of their times. */
void requests_print(const char *name, const struct requests *const *of_threads, int threads);

/* Sleeps until a time of the monotonic clock, which may have passed. */
void requests_sleep_until_ms(int64_t when_ms);

#endif
