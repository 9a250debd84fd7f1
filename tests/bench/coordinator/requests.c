#include "tests/bench/coordinator/requests.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/seconds.h"

static void note(struct requests *requests, double took_ms)
{
	if (requests->count == requests->space) {
		requests->space = 2 * requests->space + 1024;
		requests->took_ms =
			reallocarray(requests->took_ms, (size_t)requests->space, sizeof(*requests->took_ms));
		if (requests->took_ms == NULL)
			exit(EXIT_FAILURE);
	}
	requests->took_ms[requests->count++] = took_ms;
}

int requests_post(struct requests *requests, struct wlb_connection *connection, const char *run, const char *what,
                  const char *sender, const char *body, int timeout_ms)
{
	char path[96];
	struct wlb_reply reply;
	struct wlb_error error;
	static atomic_flag is_told = ATOMIC_FLAG_INIT; /* the first request without an answer */
	double began_s = wlb_now_s();
	snprintf(path, sizeof(path), "/v1/runs/%s/%s", run, what);
	int rc = wlb_connection_request(connection, "POST", path, body, timeout_ms, &reply, &error);
	note(requests, 1e3 * (wlb_now_s() - began_s));
	if (rc != 0) {
		requests->unanswered++;
		if (!atomic_flag_test_and_set(&is_told))
			fprintf(stderr, "%s of %s: %s\n", what, sender, error.message);
		return -1;
	}
	if (reply.status != 200) {
		fprintf(stderr, "%s of %s: %d %s\n", what, sender, reply.status, reply.body);
		requests->refused++;
	}
	free(reply.body);
	return reply.status == 200 ? 0 : -1;
}

void requests_sleep_until_ms(int64_t when_ms)
{
	int64_t left_ms = when_ms - wlb_clock_ms();
	if (left_ms > 0)
		wlb_clock_sleep_ms(left_ms);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void requests_print(const char *name, const struct requests *const *of_threads, int threads)
{
	long count = 0, refused = 0, unanswered = 0, at = 0;
	for (int i = 0; i < threads; i++) {
		count += of_threads[i]->count;
		refused += of_threads[i]->refused;
		unanswered += of_threads[i]->unanswered;
	}
	double *all = calloc((size_t)count + 1, sizeof(*all));
	if (all == NULL)
		exit(EXIT_FAILURE);
	for (int i = 0; i < threads; i++) {
		if (of_threads[i]->count > 0)
			memcpy(all + at, of_threads[i]->took_ms, (size_t)of_threads[i]->count * sizeof(*all));
		at += of_threads[i]->count;
	}
	qsort(all, (size_t)count, sizeof(*all), by_value);
	printf("\"%s\":{\"requests\":%ld,\"refused\":%ld,\"unanswered\":%ld,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":"
	       "%.3f}",
	       name, count, refused, unanswered, all[count / 2], all[count * 99 / 100], count > 0 ? all[count - 1] : 0);
	free(all);
}
