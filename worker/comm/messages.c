#include "worker/comm/messages.h"

#include <stdlib.h>

#include "libwlb/capacity.h"
#include "worker/comm/communicator.h"
#include "worker/comm/mpi_error.h"
#include "worker/comm/mpi_group.h"

/* MPI counts are int: longer messages go in pieces. */
#define PIECE_BYTES ((size_t)1 << 30)

enum { TAG = 2 };

struct wlb_messages {
	struct wlb_mpi_group *group;
	MPI_Request *pieces; /* of the messages that have not ended together */
	size_t count, capacity;
};

struct wlb_messages *wlb_messages_open(struct wlb_comm *world, struct wlb_error *error)
{
	struct wlb_messages *messages = calloc(1, sizeof(*messages));
	if (messages == NULL) {
		wlb_fail(error, "out of memory for messages between ranks");
		return NULL;
	}
	messages->group = wlb_mpi_duplicate(world->members.mpi, error);
	if (messages->group != NULL)
		return messages;
	free(messages);
	return NULL;
}

void wlb_messages_close(struct wlb_messages *messages)
{
	if (messages == NULL)
		return;
	wlb_mpi_close(messages->group, 0);
	free(messages->pieces);
	free(messages);
}

/* Returns where the request of the next piece is kept; NULL where memory is short. */
static MPI_Request *next_request(struct wlb_messages *messages, struct wlb_error *error)
{
	if (wlb_grow((void **)&messages->pieces, &messages->capacity, messages->count + 1, sizeof(MPI_Request)) == 0)
		return &messages->pieces[messages->count++];
	wlb_fail(error, "out of memory for %zu messages between ranks", messages->count + 1);
	return NULL;
}

static int piece_bytes(size_t bytes)
{
	return (int)(bytes < PIECE_BYTES ? bytes : PIECE_BYTES);
}

int wlb_messages_send(struct wlb_messages *messages, const void *data, size_t bytes, int to, struct wlb_error *error)
{
	const char *cursor = data;
	for (size_t left = bytes; left > 0;) {
		int piece = piece_bytes(left);
		MPI_Request *request = next_request(messages, error);
		if (request == NULL ||
		    wlb_mpi_check(MPI_Isend(cursor, piece, MPI_BYTE, to, TAG, messages->group->comm, request), error) <
		            0)
			return wlb_fail_in(error, "message to rank %d", to);
		cursor += piece;
		left -= (size_t)piece;
	}
	return 0;
}

int wlb_messages_receive(struct wlb_messages *messages, void *data, size_t bytes, int from, struct wlb_error *error)
{
	char *cursor = data;
	for (size_t left = bytes; left > 0;) {
		int piece = piece_bytes(left);
		MPI_Request *request = next_request(messages, error);
		if (request == NULL ||
		    wlb_mpi_check(MPI_Irecv(cursor, piece, MPI_BYTE, from, TAG, messages->group->comm, request),
		                  error) < 0)
			return wlb_fail_in(error, "message from rank %d", from);
		cursor += piece;
		left -= (size_t)piece;
	}
	return 0;
}

int wlb_messages_test(struct wlb_messages *messages, struct wlb_error *error)
{
	int done = 0;
	if (messages->count == 0)
		return 1;
	if (wlb_mpi_check(MPI_Testall((int)messages->count, messages->pieces, &done, MPI_STATUSES_IGNORE), error) < 0)
		return wlb_fail_in(error, "messages between ranks");
	if (done)
		messages->count = 0;
	return done;
}
