#include "worker/train/shared_head.h"

#include <stdlib.h>

struct wlb_shared_head {
	const struct wlb_groups *groups;
	struct wlb_transformer *transformer;
	struct wlb_device *device;
	int64_t hidden_size;
	struct wlb_comm_request **rows_sent;    /* [slots, pp - 1] of the last stage */
	struct wlb_comm_request *gradient_sent; /* of another stage */
	/* Gradients that the last stage receives, [pp - 1]; the rows that another one receives, [1]. */
	struct wlb_comm_request **receiving;
	const struct wlb_micro_batch *received; /* of which they are; NULL: none has been started */
};

/* In a communicator of two ranks the sender is the first. */
enum { SENDER = 0, RECEIVER = 1 };

/* The last stage sends rows of each of its slots to a stage before it awaits the first of them; of all other messages
 * of an edge one is under way at a time. */
static int reserve_messages(const struct wlb_groups *groups, int slots, struct wlb_error *error)
{
	int most = groups->coords.pp == groups->layout.pp - 1 ? slots : 1;
	for (int stage = 0; stage < groups->layout.pp - 1; stage++)
		if (groups->head_rows[stage] != NULL && (wlb_comm_reserve(groups->head_rows[stage], most, error) < 0 ||
		                                         wlb_comm_reserve(groups->head_gradients[stage], 1, error) < 0))
			return -1;
	return 0;
}

struct wlb_shared_head *wlb_shared_head_new(const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                            struct wlb_device *device, int64_t hidden_size, int slots,
                                            struct wlb_error *error)
{
	struct wlb_shared_head *head = calloc(1, sizeof(*head));
	if (head != NULL) {
		*head = (struct wlb_shared_head){
			.groups = groups,
			.transformer = transformer,
			.device = device,
			.hidden_size = hidden_size,
			.rows_sent = calloc((size_t)slots * (size_t)groups->layout.pp, sizeof(*head->rows_sent)),
			.receiving = calloc((size_t)groups->layout.pp, sizeof(*head->receiving)),
		};
	}
	if (head == NULL || head->rows_sent == NULL || head->receiving == NULL)
		wlb_fail(error, "out of memory for the messages of the head of %d stages", groups->layout.pp);
	else if (reserve_messages(groups, slots, error) == 0)
		return head;
	wlb_shared_head_free(head);
	return NULL;
}

void wlb_shared_head_free(struct wlb_shared_head *head)
{
	if (head == NULL)
		return;
	free(head->rows_sent);
	free(head->receiving);
	free(head);
}

static int wait_for(struct wlb_comm_request **request, struct wlb_error *error)
{
	struct wlb_comm_request *waited = *request;
	*request = NULL;
	return wlb_comm_wait(waited, error);
}

static size_t count_of(const struct wlb_shared_head *head, struct wlb_head_rows rows)
{
	return (size_t)(rows.count * head->hidden_size);
}

/* Returns the place of a stage's part in a buffer of all rows. */
static void *part_of(const struct wlb_shared_head *head, void *all, struct wlb_head_rows rows)
{
	size_t element_bytes = wlb_dtype_bytes(head->device->compute);
	return (char *)all + (size_t)(rows.first * head->hidden_size) * element_bytes;
}

static struct wlb_comm_request **sent_of(struct wlb_shared_head *head, int number)
{
	return head->rows_sent + (size_t)number * (size_t)(head->groups->layout.pp - 1);
}

int wlb_shared_head_send(struct wlb_shared_head *head, int number, const struct wlb_micro_batch *batch,
                         struct wlb_error *error)
{
	struct wlb_slot *slot = wlb_transformer_slot(head->transformer, number);
	struct wlb_comm_request **requests = sent_of(head, number);
	if (wlb_head_norm(head->transformer, slot, batch, error) < 0)
		return -1;
	for (int stage = 0; stage < head->groups->layout.pp - 1; stage++) {
		const struct wlb_head_rows rows = wlb_head_rows_of(head->transformer, batch, stage);
		if (rows.count == 0)
			continue;
		requests[stage] = wlb_comm_send_start(head->groups->head_rows[stage], part_of(head, slot->normed, rows),
		                                      count_of(head, rows), head->device->compute, RECEIVER, error);
		if (requests[stage] == NULL)
			return -1;
	}
	return 0;
}

static int receive_start(struct wlb_shared_head *head, int number, struct wlb_comm *from, void *buffer,
                         struct wlb_head_rows rows, struct wlb_error *error)
{
	if (rows.count == 0)
		return 0;
	head->receiving[number] =
		wlb_comm_recv_start(from, buffer, count_of(head, rows), head->device->compute, SENDER, error);
	return head->receiving[number] != NULL ? 0 : -1;
}

/* Starts to receive this stage's rows of a micro-batch, unless that was started before. */
static int receive_rows(struct wlb_shared_head *head, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	int stage = head->groups->coords.pp;
	if (batch == NULL || head->received == batch)
		return 0;
	head->received = batch;
	return receive_start(head, 0, head->groups->head_rows[stage],
	                     wlb_transformer_head_buffers(head->transformer).rows,
	                     wlb_head_rows_of(head->transformer, batch, stage), error);
}

/* Starts to receive the gradients of all other stages, unless that was started before. */
static int receive_gradients(struct wlb_shared_head *head, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	void *all = wlb_transformer_head_buffers(head->transformer).d_rows;
	if (batch == NULL || head->received == batch)
		return 0;
	head->received = batch;
	for (int stage = 0; stage < head->groups->layout.pp - 1; stage++) {
		const struct wlb_head_rows rows = wlb_head_rows_of(head->transformer, batch, stage);
		if (receive_start(head, stage, head->groups->head_gradients[stage], part_of(head, all, rows), rows,
		                  error) < 0)
			return -1;
	}
	return 0;
}

int wlb_shared_head_compute(struct wlb_shared_head *head, const struct wlb_micro_batch *batch,
                            const struct wlb_micro_batch *next, const struct wlb_head_loss *loss,
                            struct wlb_error *error)
{
	int stage = head->groups->coords.pp;
	const struct wlb_head_buffers buffers = wlb_transformer_head_buffers(head->transformer);
	const struct wlb_head_rows rows = wlb_head_rows_of(head->transformer, batch, stage);
	if (receive_rows(head, batch, error) < 0 || wait_for(&head->receiving[0], error) < 0)
		return -1;
	if (rows.count == 0)
		return receive_rows(head, next, error);
	if (wait_for(&head->gradient_sent, error) < 0 ||
	    wlb_head_share(head->transformer, rows, buffers.rows, buffers.d_rows, batch, loss->sum, loss->scale,
	                   error) < 0)
		return -1;
	head->gradient_sent = wlb_comm_send_start(head->groups->head_gradients[stage], buffers.d_rows,
	                                          count_of(head, rows), head->device->compute, RECEIVER, error);
	return head->gradient_sent != NULL ? receive_rows(head, next, error) : -1;
}

int wlb_shared_head_take_loss(struct wlb_shared_head *head, int chunk, int number, const struct wlb_micro_batch *batch,
                              const struct wlb_micro_batch *next, const struct wlb_head_loss *loss,
                              const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	struct wlb_slot *slot = wlb_transformer_slot(head->transformer, number);
	struct wlb_comm_request **sent = sent_of(head, number);
	if (receive_gradients(head, batch, error) < 0 ||
	    wlb_head_own_share(head->transformer, slot, batch, loss->sum, loss->scale, error) < 0)
		return -1;
	for (int stage = 0; stage < head->groups->layout.pp - 1; stage++)
		if (wait_for(&sent[stage], error) < 0 || wait_for(&head->receiving[stage], error) < 0)
			return -1;
	if (wlb_head_norm_backward(head->transformer, chunk, slot, batch, watch, error) < 0)
		return -1;
	return receive_gradients(head, next, error);
}

int wlb_shared_head_end_step(struct wlb_shared_head *head, struct wlb_error *error)
{
	head->received = NULL;
	return wait_for(&head->gradient_sent, error);
}
