/* The elementwise operations of a layer, which memory bounds. */
#include "libwlb/cost/layer_operations.h"

#include <math.h>

#include "libwlb/cost/layer_widths.h"
#include "libwlb/cost/plan_sizes.h"

/* What only some families have, or programs: SPLIT what split_operations says, FP8 products in 8 bits. */
enum part {
	OF_ALL,
	ROTARY,
	SPLIT_ROTARY,
	SPLIT_LATENT,
	SPLIT_BIASES,
	BIASES,
	BIASES_APART,
	QK_NORMS,
	FURTHER_NORMS,
	GATED,
	UNGATED,
	EXPERTS,
	EXPERTS_APART,
	EXPERTS_SORTED,
	LOOPED,
	FP8
};

/* WORKER_TP: wlb-worker where tp is above 1; WORKER_TP_1: where it is 1 */
enum trainer { EVERY, MEGATRON, WORKER, WORKER_TP, WORKER_TP_1 };

/* Memory-bound operations, with the elements of a token that they read and write in Megatron-LM, and what they are in
 * wlb-worker. `divided` is 1 where tensor parallelism divides the rows; an operation is called `calls` times. */
struct stream {
	enum wlb_width width;
	int divided;
	double calls, forward, backward;
	enum wlb_op op_forward, op_backward; /* WLB_OPERATIONS: wlb-worker has none */
	unsigned again; /* modules that recompute it: of WLB_WIDTH_MLPS and WLB_WIDTH_MLP_INPUTS, those of their own
	                   MLPs */
	enum trainer trainer; /* has it */
	enum part part;
};

/* Modules that recompute an operation; MLPs as a whole, or of MLPs the gated product alone. */
enum {
	NONE = WLB_RECOMPUTE_NONE,
	NORMS = WLB_RECOMPUTE_LAYERNORM,
	UP_PROJECTION = WLB_RECOMPUTE_MLA_UP_PROJ,
	WHOLE_MLPS = WLB_RECOMPUTE_MLP | WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS,
	ACTIVATIONS = WHOLE_MLPS | WLB_RECOMPUTE_MOE_ACT | WLB_RECOMPUTE_ACT
};

static const struct stream streams[] = {
	/* norms; their backward pass adds to the gradient of the residual stream */
	{WLB_WIDTH_HIDDEN, 1, 2.0, 2.0, 4.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NORMS, EVERY, OF_ALL},
	/* residual sums; in wlb-worker the product before adds, or where tp is above 1 a norm and a sum of its own */
	{WLB_WIDTH_HIDDEN, 1, 2.0, 3.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, OF_ALL},
	{WLB_WIDTH_HIDDEN, 1, 2.0, 3.0, 0.0, WLB_OP_ADD, WLB_OPERATIONS, NONE, WORKER_TP, OF_ALL},
	/* rotary embeddings, one kernel each */
	{WLB_WIDTH_QUERIES, 0, 1.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, ROTARY},
	{WLB_WIDTH_KEYS, 0, 1.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, ROTARY},
	{WLB_WIDTH_QUERIES_KEYS, 0, 1.0, 2.0, 2.0, WLB_OP_ROPE, WLB_OP_ROPE, NONE, WORKER, ROTARY},
	/* or as NeMo AutoModel has them (nemo_automodel/components/models, commit 8d9bfb90e): four products of a half,
         * two sums, one tensor of both; backward four products, two of them with a sign, two sums, one tensor */
	{WLB_WIDTH_QUERIES_KEYS, 0, 1.0, 9.0, 10.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, SPLIT_ROTARY},
	/* of latent attention, where they are casts to float32 and back and a product there, backward also the sum over
         * heads of the keys' gradient; then one tensor of all of a head's query and one of its key, and a copy of the
         * values; backward the gradient of queries, and that of keys and values, is one tensor again */
	{WLB_WIDTH_ROTATED, 0, 1.0, 10.0, 11.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, SPLIT_LATENT},
	{WLB_WIDTH_QUERIES, 0, 1.0, 4.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, SPLIT_LATENT},
	{WLB_WIDTH_ATTENDED, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, SPLIT_LATENT},
	{WLB_WIDTH_HEADS_KEYS_VALUES, 0, 1.0, 0.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON,
         SPLIT_LATENT},
	/* its biases of experts (components/moe/layers.py, _apply_bias): rows of each expert are summed with its bias
         * and put together again. Those of the last product are weighted in float32 (2), summed (5), put together (4),
         * cast (3); backward a cast (3), the gradients of the sum (3), of the bias (6), of the weight (6), one tensor
         * (2) */
	{WLB_WIDTH_GATES_AND_UPS, 0, 1.0, 4.0, 3.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON,
         SPLIT_BIASES},
	{WLB_WIDTH_ROUTED, 0, 1.0, 14.0, 20.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON,
         SPLIT_BIASES},
	/* its sinks of attention (components/attention/flex_attention.py, models/gpt_oss/layers.py): queries and
         * outputs in the order of heads and back (4), outputs weighted in float32 (3) and cast (3); backward a cast
         * (3), the gradients of the outputs (4 and a cast, 3) and of the weight (7); keys and values in the order of
         * heads, backward the values alone */
	{WLB_WIDTH_QUERIES, 0, 1.0, 10.0, 17.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_CORE_ATTN, MEGATRON,
         SPLIT_BIASES},
	{WLB_WIDTH_KEYS, 0, 2.0, 2.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_CORE_ATTN, MEGATRON,
         SPLIT_BIASES},
	/* biases of queries, keys and values; norms of queries and keys, which have two passes in either direction */
	{WLB_WIDTH_QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 1.0, WLB_OP_ADD, WLB_OP_SUM_SQUARES, NONE, EVERY, BIASES},
	{WLB_WIDTH_QUERIES_KEYS, 0, 1.0, 3.0, 5.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NONE, EVERY,
         QK_NORMS},
	/* biases of all matrices: a sum, where no other follows, and the sum of their gradients */
	{WLB_WIDTH_QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_CORE_ATTN,
         MEGATRON, BIASES_APART},
	{WLB_WIDTH_MLPS, 0, 1.0, 2.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, ACTIVATIONS, MEGATRON, BIASES_APART},
	{WLB_WIDTH_HIDDEN, 1, 2.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, BIASES_APART},
	/* norms after attention and MLP beside those before; wlb-worker adds their results in a sum of its own */
	{WLB_WIDTH_HIDDEN, 1, 2.0, 2.0, 4.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NONE, EVERY,
         FURTHER_NORMS},
	{WLB_WIDTH_HIDDEN, 1, 2.0, 3.0, 0.0, WLB_OP_ADD, WLB_OPERATIONS, NONE, WORKER_TP_1, FURTHER_NORMS},
	/* the gated product, SwiGLU or GeGLU, which wlb-worker's backward pass always computes again */
	{WLB_WIDTH_MLPS, 0, 1.0, 3.0, 5.0, WLB_OP_SWIGLU_FORWARD, WLB_OP_SWIGLU_BACKWARD, ACTIVATIONS, EVERY, GATED},
	{WLB_WIDTH_MLPS, 0, 1.0, 2.0, 3.0, WLB_OPERATIONS, WLB_OPERATIONS, ACTIVATIONS, MEGATRON, UNGATED},
	/* a row's copies in the order of experts, and their outputs in that of rows: of all rows, or where experts are
         * on other ranks of the rank's share before it sends them; those that arrive are sorted again by experts */
	{WLB_WIDTH_ROUTED, 0, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON, EXPERTS},
	{WLB_WIDTH_ROUTED, 1, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON,
         EXPERTS_APART},
	{WLB_WIDTH_ROUTED, 0, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON,
         EXPERTS_SORTED},
	/* copies of what products give, but the last, into the stack of all layers */
	{WLB_WIDTH_QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	{WLB_WIDTH_HIDDEN, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	{WLB_WIDTH_GATES_AND_UPS, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	/* casts to 8 bits, each as fp8_casts: forward of the inputs of products, backward of the gradients of outputs;
         * of latent attention those of what each head has, without those of the narrower rows that it is made of */
	{WLB_WIDTH_HIDDEN, 0, 1.0, 1.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{WLB_WIDTH_ATTENDED, 0, 1.0, 1.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{WLB_WIDTH_QUERIES_KEYS_VALUES, 0, 1.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{WLB_WIDTH_MLP_INPUTS, 0, 1.0, 1.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, WHOLE_MLPS, MEGATRON, FP8},
	{WLB_WIDTH_MLPS, 0, 1.0, 1.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, WHOLE_MLPS, MEGATRON, FP8},
	{WLB_WIDTH_GATES_AND_UPS, 0, 1.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
};

enum { STREAMS = sizeof(streams) / sizeof(streams[0]) };

/* Elements of two bytes that the cast of one element reads and writes. It is read, and written twice in one byte each:
 * for the products of both passes, whose factors lie in different orders. For a scale from its own magnitude the tensor
 * is read once more before. Transformer Engine's benchmark of products on a B300 (docs/examples/gemm_profiling), which
 * writes a cast once, adds 2.4, 5.6 and 4.4 bytes for delayed, tensorwise and MXFP8 at 75% of the memory's rate. */
static const double fp8_casts[] = {
	[WLB_FP8_NONE] = 0.0,
	[WLB_FP8_DELAYED] = 2.0,
	[WLB_FP8_TENSORWISE] = 3.0,
	[WLB_FP8_MXFP8] = 2.0,
};

double wlb_layer_memory_s(const struct wlb_layer_cost *cost, double bytes)
{
	return bytes / cost->machine->memory_bytes_per_s;
}

double wlb_layer_rotary_share(const struct wlb_model *model)
{
	return model->no_rope_layer_interval > 0 ? 1.0 - 1.0 / (double)model->no_rope_layer_interval : 1.0;
}

static int is_trained_by(const struct wlb_layer_cost *cost, enum trainer trainer)
{
	int worker = wlb_layer_is_worker(cost);
	switch (trainer) {
	case EVERY:
		return 1;
	case MEGATRON:
		return !worker;
	case WORKER:
		return worker;
	case WORKER_TP:
		return worker && cost->plan->layout.tp > 1;
	case WORKER_TP_1:
		return worker && cost->plan->layout.tp == 1;
	}
	return 0;
}

/* XLA's products add biases in 8 bits alone, and where nothing else reads what they give
 * (xla/service/gpu/gemm_rewriter.cc, FuseVectorBiasAdd). */
static int has_biases_apart(const struct wlb_layer_cost *cost)
{
	int fused = cost->options->fp8 != WLB_FP8_NONE && cost->plan->recompute == WLB_RECOMPUTE_FULL;
	return cost->options->biases_apart && wlb_family(cost->model->family)->norm_biases && !fused;
}

/* The same of rotary embeddings, and of what split_operations adds. */
static int has_split_part(const struct wlb_layer_cost *cost, enum part part)
{
	const struct wlb_family_row *family = wlb_family(cost->model->family);
	if (!cost->options->split_operations)
		return part == ROTARY;
	switch (part) {
	case SPLIT_ROTARY:
		return !family->latent;
	case SPLIT_LATENT:
		return family->latent;
	case SPLIT_BIASES:
		return family->experts && family->all_biases;
	default:
		return 0;
	}
}

static int has_part(const struct wlb_layer_cost *cost, enum part part)
{
	const struct wlb_family_row *family = wlb_family(cost->model->family);
	int32_t ep = wlb_plan_expert_ranks(cost->plan);
	switch (part) {
	case OF_ALL:
		return 1;
	case ROTARY:
	case SPLIT_ROTARY:
	case SPLIT_LATENT:
	case SPLIT_BIASES:
		return has_split_part(cost, part);
	case BIASES:
		return family->qkv_biases;
	case BIASES_APART:
		return has_biases_apart(cost);
	case QK_NORMS:
		return family->qk_norm != WLB_QK_NORM_NONE;
	case FURTHER_NORMS:
		return family->norms == WLB_NORMS_BOTH;
	case GATED:
		return !family->ungated;
	case UNGATED:
		return family->ungated;
	case EXPERTS:
		return family->experts && ep == 1;
	case EXPERTS_APART:
		return ep > 1 && !cost->options->rows_by_rank;
	case EXPERTS_SORTED:
		return ep > 1 && cost->model->num_experts > ep;
	case LOOPED:
		return cost->options->looped_layers && cost->plan->recompute != WLB_RECOMPUTE_FULL;
	case FP8:
		return cost->options->fp8 != WLB_FP8_NONE;
	}
	return 0;
}

double wlb_layer_traffic(const struct wlb_layer_cost *cost)
{
	return fmax(1.0, cost->options->elementwise);
}

double wlb_layer_operation_s(const struct wlb_layer_cost *cost, double calls, double elements, double traffic,
                             enum wlb_op op)
{
	const struct wlb_machine *machine = cost->machine;
	if (!wlb_layer_is_worker(cost) && traffic == 0.0)
		return 0.0;
	if (!wlb_layer_is_worker(cost))
		return calls * machine->operation_s +
		       wlb_layer_memory_s(cost, wlb_layer_traffic(cost) * traffic * elements *
		                                        wlb_machine_element_bytes(machine));
	if (op == WLB_OPERATIONS)
		return 0.0;
	return calls * wlb_machine_op_call_s(machine, op) + elements * wlb_machine_op_element_s(machine, op);
}

/* `calls` is 1, or 0 for a time without the fixed time of each call. */
static struct wlb_seconds one_stream_s(const struct wlb_layer_cost *cost, const struct stream *stream, double tokens,
                                       double calls)
{
	if (!is_trained_by(cost, stream->trainer) || !has_part(cost, stream->part))
		return (struct wlb_seconds){0};
	double share =
		stream->part == ROTARY || stream->part == SPLIT_ROTARY ? wlb_layer_rotary_share(cost->model) : 1.0;
	double elements = share * stream->calls * tokens * wlb_layer_width(cost, stream->width);
	if (stream->divided && !cost->options->whole_rows)
		elements /= cost->plan->layout.tp;
	if (stream->part == FP8)
		elements *= fp8_casts[cost->options->fp8];
	calls *= share * (stream->divided && wlb_layer_halves_rows(cost, tokens) ? 2.0 : 1.0) * stream->calls;
	return (struct wlb_seconds){
		wlb_layer_operation_s(cost, calls, elements, stream->forward, stream->op_forward),
		wlb_layer_operation_s(cost, calls, elements, stream->backward, stream->op_backward)};
}

struct wlb_seconds wlb_layer_streams_s(const struct wlb_layer_cost *cost, double tokens, double calls)
{
	struct wlb_seconds sum = {0};
	for (size_t i = 0; i < STREAMS; i++) {
		struct wlb_seconds one = one_stream_s(cost, &streams[i], tokens, calls);
		sum.forward += one.forward;
		sum.backward += one.backward;
	}
	return sum;
}

/* Returns the share of an operation's rows and columns that `modules` recompute. Where they recompute the input of a
 * product and not the product, it is cast in one order of its factors before and in the other then: no cast is done
 * again. */
static double again_share(const struct wlb_layer_cost *cost, const struct stream *stream, unsigned modules)
{
	modules &= stream->again;
	if (modules == 0)
		return 0.0;
	if (stream->width == WLB_WIDTH_MLPS)
		return wlb_plan_mlp_columns_again(cost->model, modules) / wlb_plan_mlp_columns(cost->model);
	if (stream->width == WLB_WIDTH_MLP_INPUTS)
		return wlb_layer_mlp_inputs(cost->model, modules) * wlb_layer_width(cost, WLB_WIDTH_HIDDEN) /
		       wlb_layer_width(cost, WLB_WIDTH_MLP_INPUTS);
	return 1.0;
}

double wlb_layer_streams_again_s(const struct wlb_layer_cost *cost, double tokens, unsigned modules)
{
	double sum = 0.0;
	for (size_t i = 0; i < STREAMS; i++)
		sum += again_share(cost, &streams[i], modules) * one_stream_s(cost, &streams[i], tokens, 1.0).forward;
	return sum;
}

struct wlb_seconds wlb_layer_norm_s(const struct wlb_layer_cost *cost, double tokens)
{
	const struct stream *norms = &streams[0];
	struct wlb_seconds sum = one_stream_s(cost, norms, tokens, 1.0);
	return (struct wlb_seconds){sum.forward / norms->calls, sum.backward / norms->calls};
}

double wlb_layer_sum_s(const struct wlb_layer_cost *cost, double tokens, double calls)
{
	const struct stream *sums = &streams[1];
	return one_stream_s(cost, sums, tokens, calls).forward / sums->calls;
}
