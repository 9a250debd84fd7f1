#include "worker/comm/transport.h"

#include <string.h>

/* A group of one has no state, but NULL would read as failure. */
static char nothing;

static void *alone_split(void *state, int color, int key, int *rank, int *size, struct wlb_error *error)
{
	(void)state, (void)color, (void)key, (void)error;
	*rank = 0;
	*size = 1;
	return &nothing;
}

static void alone_close(void *state, int is_world)
{
	(void)state, (void)is_world;
}

static int alone_all_reduce(void *state, void *buffer, size_t count, enum wlb_dtype dtype, enum wlb_reduce op,
                            struct wlb_error *error)
{
	(void)state, (void)buffer, (void)count, (void)dtype, (void)op, (void)error;
	return 0;
}

static int alone_reduce_scatter(void *state, void *out, const void *in, size_t count, enum wlb_dtype dtype,
                                struct wlb_error *error)
{
	(void)state, (void)error;
	memmove(out, in, count * wlb_dtype_bytes(dtype));
	return 0;
}

static int alone_all_gather(void *state, void *out, const void *in, size_t bytes, struct wlb_error *error)
{
	(void)state, (void)error;
	memmove(out, in, bytes);
	return 0;
}

static int alone_broadcast(void *state, void *buffer, size_t bytes, int root, struct wlb_error *error)
{
	(void)state, (void)buffer, (void)bytes, (void)root, (void)error;
	return 0;
}

static int alone_send(void *state, const void *buffer, size_t bytes, int to, struct wlb_error *error)
{
	(void)state, (void)buffer, (void)bytes;
	return wlb_fail(error, "there is no rank %d to send to: this rank is alone", to);
}

static int alone_recv(void *state, void *buffer, size_t bytes, int from, struct wlb_error *error)
{
	(void)state, (void)buffer, (void)bytes;
	return wlb_fail(error, "there is no rank %d to receive from: this rank is alone", from);
}

static int alone_barrier(void *state, struct wlb_error *error)
{
	(void)state, (void)error;
	return 0;
}

const struct wlb_transport wlb_transport_alone = {
	.split = alone_split,
	.close = alone_close,
	.all_reduce = alone_all_reduce,
	.reduce_scatter = alone_reduce_scatter,
	.all_gather = alone_all_gather,
	.broadcast = alone_broadcast,
	.send = alone_send,
	.recv = alone_recv,
	.barrier = alone_barrier,
};
