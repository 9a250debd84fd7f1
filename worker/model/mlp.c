/* The MLP of a layer. */
#include "worker/model/layer_parts.h"

int wlb_mlp_gates_and_ups(const struct wlb_layer_pass *l, int piece, struct wlb_error *error)
{
	const void *y = wlb_tp_rows(l->t, l->s->gathered, wlb_mlp_input(l));
	int64_t width = 2 * l->p->intermediate;
	int last = wlb_last_piece(l);
	if ((last == 0 && wlb_mlp_input_start(l, last, error) < 0) || wlb_comm_wait(l->t->rows[piece], error) < 0)
		return -1;
	wlb_linear(l->device, wlb_piece_of(l, l->a->gate_up, width, piece), width, wlb_piece_of(l, y, l->hidden, piece),
	           &l->gate_up, NULL, wlb_piece_rows(l, piece));
	return piece + 1 == last ? wlb_mlp_input_start(l, last, error) : 0;
}

void wlb_mlp_activate(const struct wlb_layer_pass *l, int piece)
{
	int64_t width = l->p->intermediate;
	(l->gelu_gate ? l->device->ops->geglu_forward : l->device->ops->swiglu_forward)(
		l->device, wlb_piece_of(l, l->s->activated, width, piece),
		wlb_piece_of(l, l->a->gate_up, 2 * width, piece), wlb_piece_rows(l, piece), width);
}

int wlb_mlp_down(const struct wlb_layer_pass *l, void *given, int piece, struct wlb_error *error)
{
	void *addend = wlb_tp_rows(l->t, l->s->addend, given);
	wlb_linear(l->device, wlb_piece_of(l, addend, l->hidden, piece), l->hidden,
	           wlb_piece_of(l, l->s->activated, l->p->intermediate, piece), &l->down,
	           l->tp_is_1 && !l->norms_after ? l->a->middle : NULL, wlb_piece_rows(l, piece));
	return wlb_piece_sum_start(l, given, addend, piece, error);
}

/* The first of two pieces of the layer's output, with which the next layer begins. */
static int first_output(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *out,
                        struct wlb_error *error)
{
	return next != NULL ? wlb_attention_input_start(next, l, 0, error) : wlb_piece_output(l, out, 0, error);
}

int wlb_mlp_forward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *out,
                    struct wlb_error *error)
{
	void *given = l->norms_after ? l->a->mlp_given : out;
	int last = wlb_last_piece(l);
	for (int i = 0; i <= last; i++) {
		if (wlb_mlp_gates_and_ups(l, i, error) < 0)
			return -1;
		wlb_mlp_activate(l, i);
		/* The next layer's rows are gathered beside the last product. */
		if ((i > 0 && first_output(l, next, out, error) < 0) || wlb_mlp_down(l, given, i, error) < 0)
			return -1;
	}
	return 0;
}

/* Before the backward pass of the MLP SELECTIVE computes the norm again. */
static void recompute_mlp(const struct wlb_layer_pass *l)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute != WLB_RECOMPUTE_SELECTIVE || !l->norms_before)
		return;
	for (int i = 0; i <= wlb_last_piece(l); i++)
		wlb_piece_norm(l, a->post_norm, a->post_rstd, NULL, a->middle, NULL, l->w->post_norm, i);
}

/* From the gradient of what the MLP gave, whose rows d_out are under way, to that of gate_up, and the gradient of down.
 * The pass of the gate replaces gate_up by its gradient, and the gradient of its output by its output, which the
 * gradient of the matrix needs. `y` has the rows of the MLP's input, which are under way on return. */
static int gates_and_down_backward(const struct wlb_layer_pass *l, const void *d_out, void *y,
                                   struct wlb_comm_request *y_rows[2], struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	recompute_mlp(l);
	for (int i = 0; i <= wlb_last_piece(l); i++) {
		if (wlb_comm_wait(l->t->rows[i], error) < 0)
			return -1;
		wlb_linear_d_x(l->device, wlb_piece_of(l, s->activated, l->p->intermediate, i), 0,
		               wlb_piece_of(l, d_out, l->hidden, i), l->hidden, &l->down, wlb_piece_rows(l, i));
	}
	if (wlb_layer_gather_start(l, y, wlb_mlp_input(l), y_rows, error) < 0)
		return -1;
	(l->gelu_gate ? l->device->ops->geglu_backward : l->device->ops->swiglu_backward)(
		l->device, l->a->gate_up, s->activated, l->n, l->p->intermediate);
	wlb_linear_d_w(l->device, d_out, l->hidden, s->activated, &l->down, l->n);
	return 0;
}

/* Of a piece, d_residual becomes the gradient of `middle`, with which that of attention begins. */
static int mlp_input_backward(const struct wlb_layer_pass *l, void *d_residual, int piece, struct wlb_error *error)
{
	if (wlb_input_backward(l, d_residual, l->a->middle, l->a->post_rstd, l->w->post_norm, piece, error) < 0)
		return -1;
	return wlb_attention_gradient_start(l, d_residual, piece, error);
}

int wlb_mlp_backward(const struct wlb_layer_pass *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	void *y = wlb_tp_rows(l->t, s->gathered, wlb_mlp_input(l)), *d_y = wlb_tp_rows(l->t, s->addend, s->d_norm);
	const void *d_out = wlb_tp_rows(l->t, s->addend, wlb_given_gradient(l, d_residual)), *d_gate_up = l->a->gate_up;
	int64_t width = 2 * l->p->intermediate;
	struct wlb_comm_request *y_rows[2];
	int last = wlb_last_piece(l);
	if (gates_and_down_backward(l, d_out, y, y_rows, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		wlb_linear_d_x(l->device, wlb_piece_of(l, d_y, l->hidden, i), 0, wlb_piece_of(l, d_gate_up, width, i),
		               width, &l->gate_up, wlb_piece_rows(l, i));
		if (wlb_piece_sum_start(l, s->d_norm, d_y, i, error) < 0)
			return -1;
	}
	for (int i = 0; i < last; i++)
		if (mlp_input_backward(l, d_residual, i, error) < 0)
			return -1;
	if (wlb_layer_gather_await(y_rows, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_gate_up, width, y, &l->gate_up, l->n);
	return mlp_input_backward(l, d_residual, last, error);
}
