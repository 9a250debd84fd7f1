/*
 * wlb-worker whose rank at place CORRUPT_PLACE of the layout computes wrongly: the last bit of one number is flipped in
 * each pass, or in every CORRUPT_EVERY-th. CORRUPT_IN: "forward", the residual stream that the pass leaves; "backward",
 * its gradient; "weights" or "head", the gradient of a weight of a layer or of the head. The linker calls the functions
 * below in place of the model's
 * (--wrap).
 */
#include <stdlib.h>
#include <string.h>

#include "worker/model/activations.h"

int __real_wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                       struct wlb_error *error);
int __wrap_wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                       struct wlb_error *error);
int __real_wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                        const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch,
                        struct wlb_error *error);
int __wrap_wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                        const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch,
                        struct wlb_error *error);

int __real_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error);
int __wrap_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error);

static int number_of(const char *name, int missing)
{
	const char *text = getenv(name);
	return text != NULL ? atoi(text) : missing;
}

static int is_now(const struct wlb_transformer *t, const char *in)
{
	static int passes;
	const char *where = getenv("CORRUPT_IN");
	if (where == NULL || strcmp(where, in) != 0 || t->groups->place != number_of("CORRUPT_PLACE", -1))
		return 0;
	return passes++ % number_of("CORRUPT_EVERY", 1) == 0;
}

/* The CPU device's memory is the host's. */
static void flip(void *number)
{
	*(unsigned char *)number ^= 1;
}

int __wrap_wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                       struct wlb_error *error)
{
	int rc = __real_wlb_forward(t, chunk, slot, batch, error);
	if (rc == 0 && is_now(t, "forward"))
		flip(slot->output);
	return rc;
}

struct flipping {
	struct wlb_transformer *t;
	const struct wlb_backward_watch *watch;
};

/* Flips a bit in the gradient of the chunk's first layer, or of the head, before it is called complete. */
static int flip_weight(void *context, int chunk, int layer, struct wlb_error *error)
{
	const struct flipping *f = context;
	const struct wlb_parameters *p = f->t->parameters;
	if (layer == 0)
		flip(wlb_gradient(p, p->chunks[chunk].tensors[0].q));
	else if (layer == p->chunks[chunk].layers)
		flip(wlb_gradient(p, p->head));
	return f->watch != NULL ? f->watch->layer_done(f->watch->context, chunk, layer, error) : 0;
}

int __wrap_wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                        const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch,
                        struct wlb_error *error)
{
	struct flipping flipping = {t, watch};
	const struct wlb_backward_watch flips = {.layer_done = flip_weight, .context = &flipping};
	int rc = __real_wlb_backward(t, chunk, slot, batch, is_now(t, "weights") ? &flips : watch, error);
	if (rc == 0 && is_now(t, "backward"))
		flip(slot->output);
	return rc;
}

int __wrap_wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                         const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                         const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	struct flipping flipping = {t, watch};
	const struct wlb_backward_watch flips = {.layer_done = flip_weight, .context = &flipping};
	return __real_wlb_head_loss(t, chunk, slot, batch, loss_sum, scale, is_now(t, "head") ? &flips : watch, error);
}
