/*
 * The messages of a head that the stages share (libwlb's wlb_plan.shared_head, worker/model/transformer.h): the last
 * stage sends each other one its part of the normed rows of a micro-batch, and receives their gradient. One order of
 * all passes (libwlb/layout/pipeline.c) has the rows sent a period before their gradient is needed, and every wait here
 * is for something that is earlier in it: no stage waits for one that waits for it, also where a message is sent only
 * when it is received.
 *
 * Receives are started a pass early: the rows of the next micro-batch when a share has been computed, the gradients of
 * the next one when the last stage has used those before. Started when they were needed, they made a step of two CPU
 * ranks longer; the likely cause is that MPI advances a large message only in calls of the host.
 */
#ifndef WORKER_TRAIN_SHARED_HEAD_H
#define WORKER_TRAIN_SHARED_HEAD_H

#include "worker/model/transformer.h"
#include "worker/parallel/groups.h"

struct wlb_shared_head;

/* The caller owns groups and transformer, which has `slots` slots; both must outlive it. Returns NULL if out of memory.
 */
struct wlb_shared_head *wlb_shared_head_new(const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                            struct wlb_device *device, int64_t hidden_size, int slots,
                                            struct wlb_error *error);
void wlb_shared_head_free(struct wlb_shared_head *head); /* NULL allowed */

/* The loss of a step: its sum (device), and the factor of its gradients. */
struct wlb_head_loss {
	double *sum;
	double scale;
};

/* On the last stage, after the forward pass of the model's last chunk in slot `number`: normalises the rows and starts
 * to send the others their parts. */
int wlb_shared_head_send(struct wlb_shared_head *head, int number, const struct wlb_micro_batch *batch,
                         struct wlb_error *error);

/* On another stage: receives its part of the rows, computes it, and starts to send the gradient, and to receive the
 * rows of `next`: the next micro-batch of the step that has tokens, NULL where there is none. */
int wlb_shared_head_compute(struct wlb_shared_head *head, const struct wlb_micro_batch *batch,
                            const struct wlb_micro_batch *next, const struct wlb_head_loss *loss,
                            struct wlb_error *error);

/* On the last stage, before the backward pass of the model's last chunk: computes its own part, receives the gradients
 * of the others, replaces the slot's output by its gradient, and starts to receive the gradients of `next`. */
int wlb_shared_head_take_loss(struct wlb_shared_head *head, int chunk, int number, const struct wlb_micro_batch *batch,
                              const struct wlb_micro_batch *next, const struct wlb_head_loss *loss,
                              const struct wlb_backward_watch *watch, struct wlb_error *error);

/* Waits until the gradients of the step's last micro-batch have been sent. */
int wlb_shared_head_end_step(struct wlb_shared_head *head, struct wlb_error *error);

#endif
