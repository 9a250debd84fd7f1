#include "checks/links/messages.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "checks/links/bounds.h"
#include "common/seconds.h"
#include "worker/comm/mpi_error.h"

enum {
	/* Larger than what a transport sends before the receiver has answered (64 KiB in Open MPI's TCP, 12 KiB in
	 * UCX): a message arrives only where the link works in both directions. */
	FIRST_BYTES = 256 << 10,
	MOST_BYTES = 64 << 20,
	PIECE_BYTES = 4 << 20, /* longer messages are sent in pieces: the memory of a node is the run's */
	GROWTH = 4,
	PASSES = 5, /* at the last size: the least of several times is that of a moment in which the run disturbed least
	             */
	EXCHANGE_TAG = 1,
	READY_TAG = 2,
	PIECE_TAG = 3,
	EXCHANGE_PAUSE_US = 200,
	PAUSE_US = 20,
};

/* Where the slowest pair takes so long, one that takes four times as long as others differs from them by 30 ms, which
 * is more than a process may wait for a busy processor. */
static const double ENOUGH_S = 0.04;

/* Starts to receive a message of `bytes` from a rank and to send one to it: two requests. */
static int start(int other, int tag, int bytes, char *received, const char *sent, MPI_Request *requests,
                 struct wlb_error *error)
{
	requests[0] = requests[1] = MPI_REQUEST_NULL;
	if (wlb_mpi_check(MPI_Irecv(received, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[0]), error) < 0)
		return -1;
	return wlb_mpi_check(MPI_Isend(sent, bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[1]), error);
}

/* Returns 1 where the requests have ended, 0 where not in time, -1 on failure. */
static int finish(MPI_Request *requests, int count, double until_s, int pause_us, struct wlb_error *error)
{
	for (;;) {
		int ended = 0;
		if (wlb_mpi_check(MPI_Testall(count, requests, &ended, MPI_STATUSES_IGNORE), error) < 0)
			return -1;
		if (ended)
			return 1;
		if (wlb_now_s() >= until_s)
			return 0;
		usleep((useconds_t)pause_us);
	}
}

/* The same for the messages of all ranks. */
static int finish_everywhere(MPI_Request *requests, int count, double until_s, struct wlb_error *error)
{
	MPI_Request all;
	int rc = finish(requests, count, until_s, EXCHANGE_PAUSE_US, error);
	if (rc != 1)
		return rc;
	if (wlb_mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &all), error) < 0)
		return -1;
	return finish(&all, 1, until_s, EXCHANGE_PAUSE_US, error);
}

int wlb_exchange(const int *peers, int count, double limit_s, int *answered, struct wlb_error *error)
{
	double until_s = wlb_now_s() + limit_s;
	MPI_Request *requests = malloc((2 * (size_t)count + 1) * sizeof(*requests));
	char *received = malloc((size_t)count * FIRST_BYTES + 1), *sent = calloc(1, FIRST_BYTES);
	for (int i = 0; i < count; i++)
		answered[i] = 0;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (requests == NULL || received == NULL || sent == NULL)
		return wlb_fail(error, "out of memory for messages with %d ranks", count);
	for (int i = 0; i < count; i++)
		if (start(peers[i], EXCHANGE_TAG, FIRST_BYTES, received + (size_t)i * FIRST_BYTES, sent,
		          &requests[2 * i], error) < 0)
			return -1;
	int rc = finish_everywhere(requests, 2 * count, until_s, error);
	for (int i = 0; i < count; i++)
		if (MPI_Test(&requests[2 * i], &answered[i], MPI_STATUS_IGNORE) != MPI_SUCCESS)
			answered[i] = 0;
	if (rc == 1) { /* otherwise MPI still uses them */
		free(requests);
		free(received);
		free(sent);
	}
	return rc;
}

struct pairs {
	int rank, size, bytes;
	double until_s;
	char *received, *sent; /* [PIECE_BYTES] */
	double pass_s[WLB_LINK_PEERS_MOST];
};

static int swap(const struct pairs *pairs, int other, int tag, int bytes, struct wlb_error *error)
{
	MPI_Request requests[2];
	if (start(other, tag, bytes, pairs->received, pairs->sent, requests, error) < 0)
		return -1;
	return finish(requests, 2, pairs->until_s, PAUSE_US, error);
}

/* Both are there before the time begins: the other may have waited for a slow rank. */
static int measure_pair(struct pairs *pairs, int other, struct wlb_error *error)
{
	int rc = swap(pairs, other, READY_TAG, 0, error);
	double from_s = wlb_now_s();
	for (int left = pairs->bytes; rc == 1 && left > 0; left -= PIECE_BYTES)
		rc = swap(pairs, other, PIECE_TAG, left < PIECE_BYTES ? left : PIECE_BYTES, error);
	if (rc == 1)
		pairs->pass_s[other] = wlb_now_s() - from_s;
	return rc;
}

/* Each pair once. */
static int pass(struct pairs *pairs, struct wlb_error *error)
{
	int rc = 1;
	for (int i = 0; i < pairs->size; i++)
		pairs->pass_s[i] = 0.0;
	for (int round = 0; rc == 1 && round < pairs->size; round++) {
		int other = wlb_link_partner(pairs->rank, pairs->size, round);
		if (other != pairs->rank)
			rc = measure_pair(pairs, other, error);
	}
	return rc;
}

static double slowest_s(const struct pairs *pairs)
{
	double most_s = 0.0;
	for (int i = 0; i < pairs->size; i++)
		most_s = pairs->pass_s[i] > most_s ? pairs->pass_s[i] : most_s;
	return most_s;
}

/* Of the ranks the greatest of each, so that all go on, or end, after the same pass. */
struct progress {
	double slowest_s; /* pair of the pass */
	double pass_s;    /* that it took */
	double gone_s;    /* since the first pass began */
};

static int agree(const struct pairs *pairs, struct progress *progress, struct wlb_error *error)
{
	const double own[] = {progress->slowest_s, progress->pass_s, progress->gone_s};
	double most[3] = {0.0};
	MPI_Request request;
	if (wlb_mpi_check(MPI_Iallreduce(own, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request), error) < 0)
		return -1;
	int rc = finish(&request, 1, pairs->until_s, PAUSE_US, error);
	*progress = (struct progress){most[0], most[1], most[2]};
	return rc;
}

/* Keeps the times of a pass: the least of each pair, of messages of the same size. A pass that has not ended counts
 * only for the first size. */
static void keep(const struct pairs *pairs, int is_whole, struct wlb_pair_times *times)
{
	if (times->bytes == 0 || (is_whole && times->bytes != pairs->bytes))
		*times = (struct wlb_pair_times){.bytes = pairs->bytes};
	if (times->bytes != pairs->bytes)
		return;
	for (int i = 0; i < pairs->size; i++)
		if (pairs->pass_s[i] > 0.0 && (times->seconds[i] == 0.0 || pairs->pass_s[i] < times->seconds[i]))
			times->seconds[i] = pairs->pass_s[i];
}

/* Sets the size of the next pass, and how many there were of that size; returns whether there is time for it. */
static int plan_next(struct pairs *pairs, const struct progress *progress, double limit_s, int *passes)
{
	double takes_s = progress->pass_s;
	(*passes)++;
	if (*passes == 1 && progress->slowest_s < ENOUGH_S && pairs->bytes < MOST_BYTES) {
		pairs->bytes *= GROWTH;
		takes_s *= GROWTH;
		*passes = 0;
	}
	return *passes < PASSES && progress->gone_s + takes_s < limit_s;
}

static int measure(struct pairs *pairs, double limit_s, struct wlb_pair_times *times, struct wlb_error *error)
{
	double began_s = wlb_now_s();
	int rc, passes = 0;
	struct progress progress;
	do {
		double from_s = wlb_now_s();
		rc = pass(pairs, error);
		progress = (struct progress){slowest_s(pairs), wlb_now_s() - from_s, wlb_now_s() - began_s};
		if (rc == 1)
			rc = agree(pairs, &progress, error);
		keep(pairs, rc == 1, times);
	} while (rc == 1 && plan_next(pairs, &progress, limit_s, &passes));
	return rc;
}

int wlb_pair_times_measure(int rank, int size, struct wlb_pair_times *times, struct wlb_error *error)
{
	struct pairs pairs = {.rank = rank, .size = size, .bytes = FIRST_BYTES};
	*times = (struct wlb_pair_times){0};
	pairs.until_s = wlb_now_s() + WLB_CHECK_LINKS_TIMES_MOST_S;
	pairs.received = malloc(PIECE_BYTES);
	pairs.sent = calloc(1, PIECE_BYTES);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (pairs.received == NULL || pairs.sent == NULL)
		return wlb_fail(error, "out of memory for messages of %d MiB", PIECE_BYTES >> 20);
	int rc = measure(&pairs, WLB_CHECK_LINKS_TIMES_S, times, error);
	if (rc == 1) { /* otherwise MPI still uses them */
		free(pairs.received);
		free(pairs.sent);
	}
	return rc;
}
