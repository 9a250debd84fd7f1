/*
 * wlb-worker train that fails where a communicator of this rank carries messages in both directions: NCCL runs the
 * calls of a communicator in their order, and for large messages a send ends when it is received, so that two ranks
 * that both send first would wait for each other. Takes the same arguments, for a layout with pipeline parallelism.
 *
 * The linker replaces the functions that start a message by those below (--wrap) in all code of WLB.
 */
#include <stdio.h>

#include "worker/comm/comm.h"
#include "worker/train/train.h"

enum { MOST = 32, LARGE_BYTES = 64 << 10 }; /* more than MPI sends before the other side asks for it */

static struct used {
	const struct wlb_comm *comm;
	long sends, receives, large;
} used[MOST];

static void count(const struct wlb_comm *comm, int is_send, size_t bytes)
{
	int i = 0;
	while (i < MOST - 1 && used[i].comm != NULL && used[i].comm != comm)
		i++;
	used[i].comm = comm;
	*(is_send ? &used[i].sends : &used[i].receives) += 1;
	used[i].large += bytes > LARGE_BYTES;
}

struct wlb_comm_request *__real_wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t elements,
                                                    enum wlb_dtype dtype, int to, struct wlb_error *error);
struct wlb_comm_request *__real_wlb_comm_recv_start(struct wlb_comm *comm, void *buffer, size_t elements,
                                                    enum wlb_dtype dtype, int from, struct wlb_error *error);

struct wlb_comm_request *__wrap_wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t elements,
                                                    enum wlb_dtype dtype, int to, struct wlb_error *error)
{
	count(comm, 1, elements * wlb_dtype_bytes(dtype));
	return __real_wlb_comm_send_start(comm, buffer, elements, dtype, to, error);
}

struct wlb_comm_request *__wrap_wlb_comm_recv_start(struct wlb_comm *comm, void *buffer, size_t elements,
                                                    enum wlb_dtype dtype, int from, struct wlb_error *error)
{
	count(comm, 0, elements * wlb_dtype_bytes(dtype));
	return __real_wlb_comm_recv_start(comm, buffer, elements, dtype, from, error);
}

int main(int argc, char **argv)
{
	int code = wlb_train(argc, argv), edges = 0;
	for (int i = 0; i < MOST && used[i].comm != NULL; i++, edges++)
		if ((used[i].sends > 0 && used[i].receives > 0) || used[i].large == 0) {
			fprintf(stderr,
			        "test_directions: a communicator has %ld sends and %ld receives, %ld of them large\n",
			        used[i].sends, used[i].receives, used[i].large);
			return 1;
		}
	if (code == 0 && edges == 0)
		fprintf(stderr, "test_directions: no message was sent\n");
	return edges == 0 ? 1 : code;
}
