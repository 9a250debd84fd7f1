#include "worker/check_links/exchange.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/seconds.h"
#include "worker/comm/mpi_error.h"

/* Larger than what a transport sends before the receiver has answered (64 KiB in Open MPI's TCP, 12 KiB in UCX): a
 * message arrives only where the link works in both directions. */
enum { MESSAGE_BYTES = 256 << 10, TAG = 1, PAUSE_US = 200 };

struct exchange {
	int count;
	MPI_Request *requests; /* [2 * count] receives, then sends */
	char *received;        /* [count][MESSAGE_BYTES] */
	char *sent;            /* [MESSAGE_BYTES] the same for all */
	MPI_Request agreed;    /* a barrier, begun once all have ended; MPI_REQUEST_NULL before */
};

static int start(struct exchange *exchange, const int *peers, struct wlb_error *error)
{
	int rc = 0;
	for (int i = 0; i < 2 * exchange->count; i++)
		exchange->requests[i] = MPI_REQUEST_NULL;
	for (int i = 0; rc == 0 && i < exchange->count; i++)
		rc = wlb_mpi_check(MPI_Irecv(exchange->received + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES, MPI_BYTE,
		                             peers[i], TAG, MPI_COMM_WORLD, &exchange->requests[i]),
		                   error);
	for (int i = 0; rc == 0 && i < exchange->count; i++)
		rc = wlb_mpi_check(MPI_Isend(exchange->sent, MESSAGE_BYTES, MPI_BYTE, peers[i], TAG, MPI_COMM_WORLD,
		                             &exchange->requests[exchange->count + i]),
		                   error);
	return rc;
}

/* Returns 1 where all messages of this rank have ended, 0 where not, -1 on failure. */
static int progress(struct exchange *exchange, int *answered, struct wlb_error *error)
{
	int left = 0;
	for (int i = 0; i < 2 * exchange->count; i++) {
		int ended = 0;
		if (wlb_mpi_check(MPI_Test(&exchange->requests[i], &ended, MPI_STATUS_IGNORE), error) < 0)
			return -1;
		left += !ended;
		if (i < exchange->count)
			answered[i] = ended;
	}
	return left == 0;
}

/* Returns 1 where all ranks have ended theirs. */
static int agree(struct exchange *exchange, struct wlb_error *error)
{
	int ended = 0;
	if (exchange->agreed == MPI_REQUEST_NULL &&
	    wlb_mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &exchange->agreed), error) < 0)
		return -1;
	return wlb_mpi_check(MPI_Test(&exchange->agreed, &ended, MPI_STATUS_IGNORE), error) < 0 ? -1 : ended;
}

static int run(struct exchange *exchange, const int *peers, double limit_s, int *answered, struct wlb_error *error)
{
	double until_s = wlb_now_s() + limit_s;
	int rc = start(exchange, peers, error), is_done = 0;
	while (rc == 0 && wlb_now_s() < until_s) {
		if (!is_done)
			rc = is_done = progress(exchange, answered, error);
		if (rc >= 0)
			rc = is_done ? agree(exchange, error) : 0;
		if (rc == 0)
			usleep(PAUSE_US);
	}
	return rc;
}

int wlb_exchange(const int *peers, int count, double limit_s, int *answered, struct wlb_error *error)
{
	struct exchange exchange = {.count = count, .agreed = MPI_REQUEST_NULL};
	for (int i = 0; i < count; i++)
		answered[i] = 0;
	exchange.requests = calloc(2 * (size_t)count + 1, sizeof(MPI_Request));
	exchange.received = malloc((size_t)count * MESSAGE_BYTES + 1);
	exchange.sent = calloc(1, MESSAGE_BYTES);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (exchange.requests == NULL || exchange.received == NULL || exchange.sent == NULL)
		return wlb_fail(error, "out of memory for messages with %d ranks", count);
	int rc = run(&exchange, peers, limit_s, answered, error);
	if (rc == 1) { /* otherwise MPI still uses them */
		free(exchange.requests);
		free(exchange.received);
		free(exchange.sent);
	}
	return rc;
}
