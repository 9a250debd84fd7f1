#include "worker/calibrate/links.h"

#include "common/seconds.h"
#include "worker/calibrate/filled_memory.h"
#include "worker/calibrate/link_fit.h"
#include "worker/calibrate/stopwatch.h"

/* Messages of up to SURE_BYTES are always measured, whatever the time limit: a bandwidth needs large messages. */
enum { BYTES_MIN = 4 << 10, SURE_BYTES = 1 << 20, BYTES_MAX = 16 << 20, STEP = 4, SAMPLES = 21 };

struct link_test {
	struct wlb_device *device;
	struct wlb_comm *pair; /* of one rank where it has no partner */
	void *own, *all;       /* reals of BYTES_MAX, and of twice that */
	enum wlb_dtype dtype;  /* of the reals */
	size_t count;          /* reals of a message */
};

typedef int link_call(struct link_test *test, struct wlb_error *error);

static int gather(struct link_test *test, struct wlb_error *error)
{
	return wlb_comm_all_gather(test->pair, test->all, test->own, test->count, test->dtype, error);
}

static int reduce(struct link_test *test, struct wlb_error *error)
{
	return wlb_comm_reduce_scatter(test->pair, test->own, test->all, test->count, test->dtype, error);
}

static int send(struct link_test *test, struct wlb_error *error)
{
	struct wlb_comm_request *request = wlb_comm_send_start(test->pair, test->own, test->count, test->dtype,
	                                                       1 - wlb_comm_rank(test->pair), error);
	return request != NULL ? wlb_comm_wait(request, error) : -1;
}

static int receive(struct link_test *test, struct wlb_error *error)
{
	return wlb_comm_recv(test->pair, test->all, test->count, test->dtype, 1 - wlb_comm_rank(test->pair), error);
}

static int send_and_return(struct link_test *test, struct wlb_error *error)
{
	int first = wlb_comm_rank(test->pair) == 0;
	if ((first ? send(test, error) : receive(test, error)) < 0)
		return -1;
	return first ? receive(test, error) : send(test, error);
}

/* The calls that are measured, where their times go, and how many messages one after the other each sends. */
static const struct {
	link_call *call;
	size_t seconds;
	double messages;
} CALLS[] = {{gather, offsetof(struct wlb_link_calls, gather_s), 1.0},
             {reduce, offsetof(struct wlb_link_calls, reduce_s), 1.0},
             {send_and_return, offsetof(struct wlb_link_calls, send_s), 2.0}};

enum { CALL_COUNT = sizeof(CALLS) / sizeof(CALLS[0]) };

static double *seconds_of(struct wlb_link_calls *calls, int call)
{
	return (double *)((char *)calls + CALLS[call].seconds);
}

/* Makes a call and waits until its messages have arrived: the host, and what the call has queued on the device. */
static int finish(struct link_test *test, link_call *call, struct wlb_error *error)
{
	return call(test, error) < 0 ? -1 : test->device->ops->synchronize(test->device, error);
}

/* Sets the point calls->count, for messages of test->count reals. */
static int measure_size(struct link_test *test, struct wlb_link_calls *calls, struct wlb_error *error)
{
	double samples[SAMPLES];
	for (int c = 0; c < CALL_COUNT; c++) {
		for (int i = -1; i < SAMPLES; i++) { /* the first is not counted */
			double from_s = wlb_now_s();
			if (finish(test, CALLS[c].call, error) < 0)
				return -1;
			if (i >= 0)
				samples[i] = wlb_now_s() - from_s;
		}
		seconds_of(calls, c)[calls->count] = wlb_median(samples, SAMPLES) / CALLS[c].messages;
	}
	return 0;
}

/* Measures all sizes for which there is time; all ranks measure the same ones. */
static int measure_sizes(struct wlb_device *device, struct wlb_comm *world, struct link_test *test, double limit_s,
                         struct wlb_link_calls *calls, struct wlb_error *error)
{
	*calls = (struct wlb_link_calls){0};
	for (size_t bytes = BYTES_MIN; bytes <= BYTES_MAX; bytes *= STEP) {
		double slowest_s, from_s = wlb_now_s();
		test->count = bytes / wlb_dtype_bytes(device->compute);
		calls->bytes[calls->count] = (double)bytes;
		if (wlb_comm_size(test->pair) == 2 && measure_size(test, calls, error) < 0)
			return wlb_fail_in(error, "messages of %zu bytes", bytes);
		calls->count++;
		slowest_s = wlb_now_s() - from_s;
		if (wlb_comm_all_reduce_double(world, &slowest_s, 1, WLB_MAX, error) < 0)
			return -1;
		limit_s -= slowest_s;
		/* The next size may take STEP times as long. */
		if (STEP * slowest_s > limit_s && bytes >= SURE_BYTES)
			break;
	}
	return 0;
}

/* Fits the link to all points together. */
static int fit(struct wlb_link_calls *calls, struct wlb_link *link, struct wlb_error *error)
{
	struct wlb_link_point points[CALL_COUNT * WLB_LINK_POINTS];
	int count = 0;
	for (int32_t i = 0; i < calls->count; i++)
		for (int c = 0; c < CALL_COUNT; c++)
			points[count++] = (struct wlb_link_point){calls->bytes[i], seconds_of(calls, c)[i]};
	return wlb_link_fit(points, count, link, error);
}

int wlb_measure_link(struct wlb_device *device, struct wlb_comm *world, const struct wlb_rank_map *map,
                     enum wlb_link_kind kind, double limit_s, struct wlb_link *link, struct wlb_link_calls *calls,
                     struct wlb_error *error)
{
	int rank = wlb_comm_rank(world), partner = wlb_pair_partner(map, kind, rank);
	int color = partner >= 0 && partner < rank ? partner : rank;
	int64_t most = BYTES_MAX / (int64_t)wlb_dtype_bytes(device->compute);
	struct link_test test = {
		.device = device, .pair = wlb_comm_split(world, color, rank, "pair", error), .dtype = device->compute};
	if (test.pair == NULL || wlb_comm_connect(&test.pair, 1, error) < 0)
		return -1;
	test.own = wlb_alloc_filled(device, device->compute, most, error);
	test.all = test.own != NULL ? wlb_alloc_filled(device, device->compute, 2 * most, error) : NULL;
	int rc = test.all != NULL ? measure_sizes(device, world, &test, limit_s, calls, error) : -1;
	*link = (struct wlb_link){0};
	if (rc == 0 && wlb_comm_size(test.pair) == 2)
		rc = fit(calls, link, error);
	device->ops->release(device, test.own);
	device->ops->release(device, test.all);
	wlb_comm_close(test.pair);
	return rc < 0 ? wlb_fail_in(error, "%s", wlb_link_name(kind)) : 0;
}
