#include "libwlb/cost/halves.h"

#include <math.h>

#include "libwlb/cost/layer_operations.h"
#include "libwlb/cost/plan_sizes.h"

/* Of one of the four matrices of a layer, [out, in]: its product and that for the gradient of its input, of half the
 * rows, and that for its own gradient, of all. */
struct matrix {
	double forward_s, d_x_s, d_w_s;
};

/* Elementwise operations of half the rows: backward, of both halves that are no norms. */
struct elementwise {
	struct wlb_seconds norm, rope, gated;
	double sum_s; /* of the layer's input and what the MLP gave */
};

/* What work on the device's queue and calls on the links' have taken so far, and how long the device waited. */
struct queues {
	double device_s, link_s, waited_s;
	double gather_s, reduce_s;
	struct wlb_seconds attention; /* of all rows */
	struct elementwise op;
	int exchanges; /* of keys and values, before which attention of neither half begins */
};

static struct matrix matrix_of(const struct wlb_layer_cost *cost, double tokens, double in, double out)
{
	const struct wlb_machine *machine = cost->machine;
	return (struct matrix){
		.forward_s = wlb_machine_gemm_s(machine, tokens / 2.0, in, out),
		.d_x_s = wlb_machine_gemm_s(machine, tokens / 2.0, out, in),
		.d_w_s = wlb_machine_gemm_s(machine, out, tokens, in),
	};
}

/* Starts a call behind the work on the device's queue. Returns when it ends. */
static double start(struct queues *q, double takes_s)
{
	q->link_s = fmax(q->link_s, q->device_s) + takes_s;
	return q->link_s;
}

static void await(struct queues *q, double end_s)
{
	q->waited_s += fmax(0.0, end_s - q->device_s);
	q->device_s = fmax(q->device_s, end_s);
}

/* The four matrices: of queries, keys and values, of attention's output, of gate and up, of down. */
enum { QKV, OUTPUT, GATE_UP, DOWN, MATRICES };

/* What a forward pass has under way between two layers: the gathers of the halves of the layer's input, or of the
 * second one, which is not begun, the sum that it is made of. */
struct begun {
	double rows_s[2], sum_s;
	int is_summed;
};

/* Queries, keys and values of a half, whose rows are under way. Those of the second are gathered after the first's
 * product. */
static void queries_and_keys(struct queues *q, const struct matrix m[MATRICES], struct begun *begun, int half)
{
	await(q, begun->rows_s[half]);
	q->device_s += m[QKV].forward_s + q->op.rope.forward;
	if (half > 0 || begun->is_summed)
		return;
	await(q, begun->sum_s);
	q->device_s += q->op.sum_s + q->op.norm.forward;
	begun->rows_s[1] = start(q, q->gather_s);
}

/* Attention up to its output, whose second half's sum is under way as its first half's rows of the MLP's input are. */
static struct begun attention_forward(struct queues *q, const struct matrix m[MATRICES], struct begun begun)
{
	double half_s = q->attention.forward / 2.0;
	struct begun next = {0};
	for (int half = 0; q->exchanges && half < 2; half++)
		queries_and_keys(q, m, &begun, half);
	for (int half = 0; half < 2; half++) {
		if (!q->exchanges)
			queries_and_keys(q, m, &begun, half);
		q->device_s += q->exchanges ? half_s : 0.0;
		if (half > 0) {
			await(q, next.sum_s);
			q->device_s += q->op.norm.forward;
			next.rows_s[0] = start(q, q->gather_s);
		}
		q->device_s += (q->exchanges ? 0.0 : half_s) + m[OUTPUT].forward_s;
		next.sum_s = start(q, q->reduce_s);
	}
	return next;
}

/* Returns what is under way behind the layer; `is_again`: it ends before the last product. */
static struct begun forward(struct queues *q, const struct matrix m[MATRICES], struct begun begun, int is_again)
{
	struct begun mlp = attention_forward(q, m, begun), next = {0};
	await(q, mlp.rows_s[0]);
	q->device_s += m[GATE_UP].forward_s;
	await(q, mlp.sum_s);
	q->device_s += q->op.norm.forward;
	mlp.rows_s[1] = start(q, q->gather_s);
	if (!is_again) {
		q->device_s += q->op.gated.forward + m[DOWN].forward_s;
		next.sum_s = start(q, q->reduce_s);
	}
	await(q, mlp.rows_s[1]);
	q->device_s += m[GATE_UP].forward_s;
	if (is_again)
		return next;
	q->device_s += q->op.gated.forward;
	await(q, next.sum_s);
	q->device_s += q->op.sum_s + q->op.norm.forward;
	next.rows_s[0] = start(q, q->gather_s);
	q->device_s += m[DOWN].forward_s;
	next.sum_s = start(q, q->reduce_s);
	return next;
}

/* Starts the gathers of both halves of what a pass begins with. */
static void begin(struct queues *q, double begun[2])
{
	for (int half = 0; half < 2; half++)
		begun[half] = start(q, q->gather_s);
}

/* Attention or MLP: from `begun`, the ends of the gathers of the gradient of what it gave, to `next`, those of the next
 * one's; NULL: it is not begun yet. `last` is the block's last matrix, before which is what takes between_s, `first`
 * the first. */
static void backward(struct queues *q, const struct matrix *first, const struct matrix *last, double between_s,
                     const double begun[2], double next[2])
{
	double sums_s[2], rows_s;
	for (int half = 0; half < 2; half++) {
		await(q, begun[half]);
		q->device_s += last->d_x_s;
	}
	start(q, q->gather_s);
	rows_s = start(q, q->gather_s);
	q->device_s += between_s + last->d_w_s;
	for (int half = 0; half < 2; half++) {
		q->device_s += first->d_x_s;
		sums_s[half] = start(q, q->reduce_s);
	}
	await(q, sums_s[0]);
	q->device_s += q->op.norm.backward;
	if (next != NULL)
		next[0] = start(q, q->gather_s);
	await(q, rows_s);
	q->device_s += first->d_w_s;
	await(q, sums_s[1]);
	q->device_s += q->op.norm.backward;
	if (next != NULL)
		next[1] = start(q, q->gather_s);
}

/* Returns what the device waits in the forward pass of a layer between others. */
static double forward_waits_s(struct queues q, const struct matrix m[MATRICES])
{
	struct begun begun = {.is_summed = 1};
	begin(&q, begun.rows_s);
	begun = forward(&q, m, begun, 0);
	q.waited_s = 0.0;
	forward(&q, m, begun, 0);
	return q.waited_s;
}

/* The same of the backward pass; `is_full`: of layers that are computed again as a whole, each from its input on. */
static double backward_waits_s(struct queues q, const struct matrix m[MATRICES], int is_full)
{
	double begun[2];
	begin(&q, begun);
	for (int layer = 0; layer < 2; layer++) {
		q.waited_s = 0.0;
		if (is_full) {
			struct begun again = {.is_summed = 1};
			begin(&q, again.rows_s);
			forward(&q, m, again, 1);
			begin(&q, begun);
		}
		backward(&q, &m[GATE_UP], &m[DOWN], q.op.gated.backward, begun, begun);
		backward(&q, &m[QKV], &m[OUTPUT], q.attention.backward + q.op.rope.backward, begun,
		         is_full ? NULL : begun);
	}
	return q.waited_s;
}

static struct elementwise elementwise_of(const struct wlb_layer_cost *cost, double tokens, double rotated, double mlp)
{
	double half = tokens / 2.0, share = half / cost->plan->layout.tp * (double)cost->model->hidden_size;
	return (struct elementwise){
		.norm = {wlb_layer_operation_s(cost, 1.0, share, 0.0, WLB_OP_RMSNORM_FORWARD),
	                 wlb_layer_operation_s(cost, 1.0, share, 0.0, WLB_OP_RMSNORM_BACKWARD)},
		.rope = {wlb_layer_operation_s(cost, 1.0, half * rotated, 0.0, WLB_OP_ROPE),
	                 wlb_layer_operation_s(cost, 2.0, tokens * rotated, 0.0, WLB_OP_ROPE)},
		.gated = {wlb_layer_operation_s(cost, 1.0, half * mlp, 0.0, WLB_OP_SWIGLU_FORWARD),
	                  wlb_layer_operation_s(cost, 1.0, tokens * mlp, 0.0, WLB_OP_SWIGLU_BACKWARD)},
		.sum_s = wlb_layer_operation_s(cost, 1.0, share, 0.0, WLB_OP_ADD),
	};
}

struct wlb_halved_rows wlb_layer_halved_rows(const struct wlb_layer_cost *cost, double tokens, double gather_s,
                                             double reduce_s, struct wlb_seconds attention)
{
	const struct wlb_model *model = cost->model;
	double tp = cost->plan->layout.tp, hidden = (double)model->hidden_size,
	       mlp = (double)model->intermediate_size / tp,
	       queries = (double)(model->num_attention_heads * model->head_dim) / tp,
	       keys = wlb_plan_kv_width(cost->plan, model);
	const struct matrix m[MATRICES] = {
		[QKV] = matrix_of(cost, tokens, hidden, queries + 2.0 * keys),
		[OUTPUT] = matrix_of(cost, tokens, queries, hidden),
		[GATE_UP] = matrix_of(cost, tokens, hidden, 2.0 * mlp),
		[DOWN] = matrix_of(cost, tokens, mlp, hidden),
	};
	const struct queues idle = {.gather_s = gather_s,
	                            .reduce_s = reduce_s,
	                            .attention = attention,
	                            .op = elementwise_of(cost, tokens, queries + keys, mlp),
	                            .exchanges = wlb_plan_document_ranks(cost->plan) > 1};
	double backward_s = backward_waits_s(idle, m, 0);
	return (struct wlb_halved_rows){
		.exposed = {forward_waits_s(idle, m), backward_s},
		.again_s = backward_waits_s(idle, m, 1) - backward_s,
	};
}
