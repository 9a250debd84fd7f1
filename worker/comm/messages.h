/*
 * Messages of host memory between ranks, over MPI whatever transport carries the data calls. They travel while the host
 * does other work: it starts some, and tests until all have ended. They are in a communicator of MPI of their own, are
 * on no queue of the device, and are not recorded in the trace.
 */
#ifndef WORKER_COMM_MESSAGES_H
#define WORKER_COMM_MESSAGES_H

#include <stddef.h>

#include "worker/comm/comm.h"

struct wlb_messages;

/* Collective over `world`, of two ranks or more. NULL on failure. */
struct wlb_messages *wlb_messages_open(struct wlb_comm *world, struct wlb_error *error);
/* Before the world is closed, and after all messages have ended. NULL allowed. */
void wlb_messages_close(struct wlb_messages *messages);

/* Start a message of `bytes` bytes, which both ranks must know. The memory must stay as it is until all messages have
 * ended. Messages between two ranks keep their order. Return -1 on failure; the messages are unusable then. */
int wlb_messages_send(struct wlb_messages *messages, const void *data, size_t bytes, int to, struct wlb_error *error);
int wlb_messages_receive(struct wlb_messages *messages, void *data, size_t bytes, int from, struct wlb_error *error);
/* Returns 1 where all messages that this rank has started have ended, 0 where not, -1 on failure. MPI may go on with
 * the messages only in this call, so it must be called often. */
int wlb_messages_test(struct wlb_messages *messages, struct wlb_error *error);

#endif
