#include "libwlb/cost/layer.h"

#include <math.h>

#include "libwlb/cost/plan_sizes.h"

/* Widths on one tensor-parallel rank. ATTENDED is that of attention's output; LATENT_QUERIES and
 * LATENT_KEYS are those of what latent attention makes of a row first, QUERIES_INPUT and KEYS_INPUT of what it makes
 * queries of, and of each head a key and a value; ROUTED is that of a token's copies for its experts; MLP_INPUTS, MLPS
 * and GATES_AND_UPS are those of the inputs, the columns and what gate and up give of all MLPs of a token in the mean
 * layer. */
enum width {
	HIDDEN,
	QUERIES,
	KEYS,
	KEYS_VALUES,
	QUERIES_KEYS,
	QUERIES_KEYS_VALUES,
	ATTENDED,
	LATENT_QUERIES,
	QUERIES_INPUT,
	LATENT_KEYS,
	KEYS_INPUT,
	HEADS_KEYS_VALUES,
	ROUTED,
	MLP_INPUTS,
	MLPS,
	GATES_AND_UPS
};

static double value_width(const struct wlb_model *m)
{
	return (double)(m->v_head_dim > 0 ? m->v_head_dim : m->head_dim);
}

/* Returns how many MLPs have a token's row as their input in the mean layer, of those that `modules` recompute as a
 * whole. */
static double mlp_inputs(const struct wlb_model *m, unsigned modules)
{
	double share = wlb_model_expert_layers_share(m), dense = modules & WLB_RECOMPUTE_MLP ? 1.0 - share : 0.0;
	int shared = m->shared_intermediate_size > 0 && (modules & (WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS));
	if (m->num_experts == 0)
		return dense;
	return (modules & WLB_RECOMPUTE_MOE ? wlb_plan_token_experts(m) : 0.0) + (shared ? share : 0.0) + dense;
}

/* Returns the matrices of an MLP that have its input as theirs. */
static double gate_and_up(const struct wlb_model *m)
{
	return wlb_family(m->family)->ungated ? 1.0 : 2.0;
}

/* Returns the columns of a token's MLPs in the mean layer whose gated product and casts are operations of their own. */
static double unfused_columns(const struct wlb_layer_cost *cost)
{
	const struct wlb_model *m = cost->model;
	double fused = m->num_experts > 0 && cost->options->fused_experts && cost->options->fp8 == WLB_FP8_MXFP8
	                       ? wlb_plan_token_experts(m) * (double)m->intermediate_size
	                       : 0.0;
	return wlb_plan_mlp_columns(m) - fused;
}

static double width_of(const struct wlb_layer_cost *cost, enum width width)
{
	const struct wlb_model *m = cost->model;
	double tp = cost->plan->layout.tp, heads = (double)m->num_attention_heads / tp;
	double queries = heads * (double)m->head_dim;
	switch (width) {
	case HIDDEN:
		return (double)m->hidden_size;
	case QUERIES:
		return queries;
	case KEYS:
		return wlb_plan_kv_width(cost->plan, m);
	case KEYS_VALUES:
		return 2.0 * wlb_plan_kv_width(cost->plan, m);
	case QUERIES_KEYS:
		return queries + wlb_plan_kv_width(cost->plan, m);
	case QUERIES_KEYS_VALUES:
		return queries + 2.0 * wlb_plan_kv_width(cost->plan, m);
	case ATTENDED:
		return heads * value_width(m);
	case LATENT_QUERIES:
		return (double)m->q_lora_rank;
	case QUERIES_INPUT:
		return (double)(m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden_size);
	case LATENT_KEYS:
		return (double)(m->kv_lora_rank + m->qk_rope_head_dim);
	case KEYS_INPUT:
		return (double)m->kv_lora_rank;
	case HEADS_KEYS_VALUES:
		return heads * ((double)(m->head_dim - m->qk_rope_head_dim) + value_width(m));
	case ROUTED:
		return wlb_plan_token_experts(m) * (double)m->hidden_size;
	case MLP_INPUTS:
		return mlp_inputs(m, WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_MLP) * (double)m->hidden_size;
	case MLPS:
		return unfused_columns(cost) / tp;
	case GATES_AND_UPS:
		return gate_and_up(m) * unfused_columns(cost) / tp;
	}
	return 0.0;
}

/* The matrix products of attention, up to one of a width with itself: the matrices of queries, keys and values are one.
 * wlb-worker has keys and values apart where several tensor-parallel ranks hold them, and in the forward pass where it
 * gathers them beside the product of the queries. */
struct product {
	enum width in, out;
};

static const struct product fused[] = {{HIDDEN, QUERIES_KEYS_VALUES}, {QUERIES, HIDDEN}, {0}};
static const struct product kv_apart[] = {{HIDDEN, QUERIES}, {HIDDEN, KEYS_VALUES}, {QUERIES, HIDDEN}, {0}};
static const struct product latent[] = {{HIDDEN, LATENT_QUERIES}, {QUERIES_INPUT, QUERIES},
                                        {HIDDEN, LATENT_KEYS},    {KEYS_INPUT, HEADS_KEYS_VALUES},
                                        {ATTENDED, HIDDEN},       {0}};

/* What only some families have; FP8 has products in 8 bits. */
enum part {
	OF_ALL,
	ROTARY,
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
	enum width width;
	int divided;
	double calls, forward, backward;
	enum wlb_op op_forward, op_backward; /* WLB_OPERATIONS: wlb-worker has none */
	unsigned again;       /* modules that recompute it: of MLPS and MLP_INPUTS, those of their own MLPs */
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
	{HIDDEN, 1, 2.0, 2.0, 4.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NORMS, EVERY, OF_ALL},
	/* residual sums; in wlb-worker the product before adds, or where tp is above 1 a norm and a sum of its own */
	{HIDDEN, 1, 2.0, 3.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, OF_ALL},
	{HIDDEN, 1, 2.0, 3.0, 0.0, WLB_OP_ADD, WLB_OPERATIONS, NONE, WORKER_TP, OF_ALL},
	/* rotary embeddings */
	{QUERIES, 0, 1.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, ROTARY},
	{KEYS, 0, 1.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, UP_PROJECTION, MEGATRON, ROTARY},
	{QUERIES_KEYS, 0, 1.0, 2.0, 2.0, WLB_OP_ROPE, WLB_OP_ROPE, NONE, WORKER, ROTARY},
	/* biases of queries, keys and values; norms of queries and keys, which have two passes in either direction */
	{QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 1.0, WLB_OP_ADD, WLB_OP_SUM_SQUARES, NONE, EVERY, BIASES},
	{QUERIES_KEYS, 0, 1.0, 3.0, 5.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NONE, EVERY, QK_NORMS},
	/* biases of all matrices: a sum, where no other follows, and the sum of their gradients */
	{QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_CORE_ATTN, MEGATRON,
         BIASES_APART},
	{MLPS, 0, 1.0, 2.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, ACTIVATIONS, MEGATRON, BIASES_APART},
	{HIDDEN, 1, 2.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, BIASES_APART},
	/* norms after attention and MLP beside those before; wlb-worker adds their results in a sum of its own */
	{HIDDEN, 1, 2.0, 2.0, 4.0, WLB_OP_RMSNORM_FORWARD, WLB_OP_RMSNORM_BACKWARD, NONE, EVERY, FURTHER_NORMS},
	{HIDDEN, 1, 2.0, 3.0, 0.0, WLB_OP_ADD, WLB_OPERATIONS, NONE, WORKER_TP_1, FURTHER_NORMS},
	/* the gated product, SwiGLU or GeGLU, which wlb-worker's backward pass always computes again */
	{MLPS, 0, 1.0, 3.0, 5.0, WLB_OP_SWIGLU_FORWARD, WLB_OP_SWIGLU_BACKWARD, ACTIVATIONS, EVERY, GATED},
	{MLPS, 0, 1.0, 2.0, 3.0, WLB_OPERATIONS, WLB_OPERATIONS, ACTIVATIONS, MEGATRON, UNGATED},
	/* a row's copies in the order of experts, and their outputs in that of rows: of all rows, or where experts are
         * on other ranks of the rank's share before it sends them; those that arrive are sorted again by experts */
	{ROUTED, 0, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON, EXPERTS},
	{ROUTED, 1, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON, EXPERTS_APART},
	{ROUTED, 0, 2.0, 2.0, 2.0, WLB_OPERATIONS, WLB_OPERATIONS, WLB_RECOMPUTE_MOE, MEGATRON, EXPERTS_SORTED},
	/* copies of what products give, but the last, into the stack of all layers */
	{QUERIES_KEYS_VALUES, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	{HIDDEN, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	{GATES_AND_UPS, 0, 1.0, 2.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, LOOPED},
	/* casts to 8 bits, each as fp8_casts: forward of the inputs of products, backward of the gradients of outputs;
         * of latent attention those of what each head has, without those of the narrower rows that it is made of */
	{HIDDEN, 0, 1.0, 1.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{ATTENDED, 0, 1.0, 1.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{QUERIES_KEYS_VALUES, 0, 1.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
	{MLP_INPUTS, 0, 1.0, 1.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, WHOLE_MLPS, MEGATRON, FP8},
	{MLPS, 0, 1.0, 1.0, 0.0, WLB_OPERATIONS, WLB_OPERATIONS, WHOLE_MLPS, MEGATRON, FP8},
	{GATES_AND_UPS, 0, 1.0, 0.0, 1.0, WLB_OPERATIONS, WLB_OPERATIONS, NONE, MEGATRON, FP8},
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

/* Bytes of a logit that the loss reads and writes in Megatron-LM r0.8, core/tensor_parallel/cross_entropy.py: a copy in
 * float32 (6), the largest (4), the difference (8), its exponential (8), their sum (4), the quotient (8); backward the
 * product with the loss's gradient (8) and the copy in bfloat16 (6). */
static const struct wlb_seconds logit_bytes = {38.0, 14.0};

/* The same of one kernel in either direction: it reads the logit, and writes its gradient (flash-attn 1.0.9,
 * losses/cross_entropy.py). */
static const struct wlb_seconds fused_logit_bytes = {2.0, 4.0};

static double stream_s(const struct wlb_layer_cost *cost, double bytes)
{
	return bytes / cost->machine->memory_bytes_per_s;
}

static int is_worker(const struct wlb_layer_cost *cost)
{
	return cost->options->trainer == WLB_COST_WORKER;
}

/* Adds the time of `count` products in one kernel and of the two products of the backward pass of each. */
static void add_products(const struct wlb_machine *machine, enum wlb_fp8 fp8, double count, double tokens, double in,
                         double out, struct wlb_seconds *sum)
{
	sum->forward += wlb_machine_grouped_gemm_s(machine, fp8, count, tokens, in, out);
	sum->backward += wlb_machine_grouped_gemm_s(machine, fp8, count, tokens, out, in) +
	                 wlb_machine_grouped_gemm_s(machine, fp8, count, out, tokens, in);
}

static void add_product(const struct wlb_machine *machine, enum wlb_fp8 fp8, double tokens, double in, double out,
                        struct wlb_seconds *sum)
{
	add_products(machine, fp8, 1.0, tokens, in, out, sum);
}

static void add(struct wlb_seconds *sum, struct wlb_seconds more, double times)
{
	sum->forward += times * more.forward;
	sum->backward += times * more.backward;
}

static int gathers_beside_queries(const struct wlb_layer_cost *cost)
{
	return is_worker(cost) && wlb_plan_document_ranks(cost->plan) > 1 && cost->options->cp_overlap.forward > 0.0;
}

static struct wlb_seconds products_s(const struct wlb_layer_cost *cost, double tokens, const struct product *product)
{
	struct wlb_seconds sum = {0};
	for (; product->in != product->out; product++)
		if (width_of(cost, product->out) > 0.0)
			add_product(cost->machine, cost->options->fp8, tokens, width_of(cost, product->in),
			            width_of(cost, product->out), &sum);
	return sum;
}

static struct wlb_seconds attention_products_s(const struct wlb_layer_cost *cost, double tokens)
{
	const struct wlb_model *m = cost->model;
	if (wlb_family(m->family)->latent)
		return products_s(cost, tokens, latent);
	int apart = is_worker(cost) && cost->plan->layout.tp > m->num_key_value_heads;
	struct wlb_seconds sum = products_s(cost, tokens, apart ? kv_apart : fused);
	if (gathers_beside_queries(cost))
		sum.forward = products_s(cost, tokens, kv_apart).forward;
	return sum;
}

/* `count` MLPs whose like products are one kernel, each of so many tokens and, on all tensor-parallel ranks, columns;
 * gate and up are one matrix. */
static struct wlb_seconds mlps_s(const struct wlb_layer_cost *cost, double count, double tokens, int64_t columns)
{
	double hidden = (double)cost->model->hidden_size, width = (double)columns / cost->plan->layout.tp;
	struct wlb_seconds sum = {0};
	if (columns == 0)
		return sum;
	add_products(cost->machine, cost->options->fp8, count, tokens, hidden, gate_and_up(cost->model) * width, &sum);
	add_products(cost->machine, cost->options->fp8, count, tokens, width, hidden, &sum);
	return sum;
}

static struct wlb_seconds mlp_s(const struct wlb_layer_cost *cost, double tokens, int64_t columns)
{
	return mlps_s(cost, 1.0, tokens, columns);
}

/* What chooses experts, the rank's experts, each with the products of an MLP on an equal share of the tokens that all
 * of them get, which are as many as the rank's own tokens have copies, and the shared one. Rows are padded as tiles
 * are: a recipe's 32 or 128 for each expert add nothing. */
static struct wlb_seconds experts_s(const struct wlb_layer_cost *cost, double tokens)
{
	const struct wlb_model *m = cost->model;
	double experts = (double)m->num_experts / wlb_plan_expert_ranks(cost->plan);
	double copies = tokens * (double)m->num_experts_per_tok;
	struct wlb_seconds sum = mlp_s(cost, tokens, m->shared_intermediate_size);
	add_product(cost->machine, WLB_FP8_NONE, tokens / cost->plan->layout.tp, (double)m->hidden_size,
	            (double)m->num_experts, &sum);
	double kernels = cost->options->grouped_experts ? 1.0 : experts;
	add(&sum, mlps_s(cost, experts / kernels, copies / experts, m->intermediate_size), kernels);
	return sum;
}

int wlb_layer_halves_rows(const struct wlb_layer_cost *cost, double tokens)
{
	double least = (double)cost->options->halved_rows, tp = (double)cost->plan->layout.tp;
	return least > 0.0 && tp > 1.0 && tokens >= fmax(least, 2.0 * tp);
}

/* Of rows in one piece. */
static struct wlb_seconds piece_products_s(const struct wlb_layer_cost *cost, double tokens)
{
	const struct wlb_model *m = cost->model;
	double share = wlb_model_expert_layers_share(m);
	struct wlb_seconds sum = {0};
	if (!(tokens > 0.0))
		return sum;
	sum = attention_products_s(cost, tokens);
	if (m->num_experts == 0) {
		add(&sum, mlp_s(cost, tokens, m->intermediate_size), 1.0);
		return sum;
	}
	add(&sum, experts_s(cost, tokens), share);
	if (share < 1.0)
		add(&sum, mlp_s(cost, tokens, m->dense_intermediate_size), 1.0 - share);
	return sum;
}

/* Of rows in halves, products forward and those for the gradients of inputs, which have the same shapes, are of one
 * half after the other; those for the gradients of matrices stay. */
struct wlb_seconds wlb_layer_products_s(const struct wlb_layer_cost *cost, double tokens)
{
	struct wlb_seconds sum = piece_products_s(cost, tokens);
	if (!wlb_layer_halves_rows(cost, tokens))
		return sum;
	double longer_s = 2.0 * piece_products_s(cost, tokens / 2.0).forward - sum.forward;
	return (struct wlb_seconds){sum.forward + longer_s, sum.backward + longer_s};
}

/* Returns on how many of `parts` parts of the experts are a row's, which are neighbours and follow those of the row
 * before: they begin at each multiple of the greatest common divisor as often. */
static double parts_in_turn(const struct wlb_model *m, double parts)
{
	int64_t in_part = (int64_t)((double)m->num_experts / parts), divisor = m->num_experts_per_tok;
	for (int64_t rest = in_part; rest > 0;) {
		int64_t next = divisor % rest;
		divisor = rest;
		rest = next;
	}
	return fmin(parts, 1.0 + (double)(m->num_experts_per_tok - divisor) / (double)in_part);
}

/* Returns how likely one of `parts` parts of the experts has some of a row's. */
static double part_share(const struct wlb_layer_cost *cost, double parts)
{
	const struct wlb_model *m = cost->model;
	double none = 1.0; /* of the row's experts are in the part */
	if (cost->options->experts_in_turn)
		return parts_in_turn(m, parts) / parts;
	for (int64_t i = 0; i < m->num_experts_per_tok; i++)
		none *= fmax(0.0, (double)(m->num_experts - i) - (double)m->num_experts / parts) /
		        (double)(m->num_experts - i);
	return 1.0 - none;
}

double wlb_layer_exchange_s(const struct wlb_layer_cost *cost, double tokens, int crosses_switch)
{
	const struct wlb_model *m = cost->model;
	int ranks = wlb_plan_expert_ranks(cost->plan), tp = cost->plan->layout.tp;
	int linked = wlb_machine_linked_gpus(cost->machine), on_node = linked > tp ? linked / tp : 1;
	if (ranks == 1)
		return 0.0;
	double near = on_node < ranks ? on_node : ranks, copies = (double)m->num_experts_per_tok;
	double near_rows = copies * (near - 1.0) / ranks, far_rows = copies * (ranks - near) / ranks;
	if (cost->options->rows_by_node || cost->options->rows_by_rank) {
		near_rows = copies * (near - 1.0) / near;
		far_rows = (ranks / near - 1.0) * part_share(cost, ranks / near);
	}
	if (cost->options->rows_by_rank)
		near_rows = ranks * part_share(cost, ranks) * (near - 1.0) / near;
	double row_bytes = tokens / tp * (double)m->hidden_size * wlb_machine_element_bytes(cost->machine);
	return 2.0 * wlb_model_expert_layers_share(m) *
	       wlb_machine_exchange_s(cost->machine, ranks, on_node, crosses_switch, near_rows * row_bytes,
	                              far_rows * row_bytes);
}

/* Returns the share of the layers that rotate queries and keys. */
static double rotary_share(const struct wlb_model *model)
{
	return model->no_rope_layer_interval > 0 ? 1.0 - 1.0 / (double)model->no_rope_layer_interval : 1.0;
}

double wlb_layer_queries_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (tokens <= 0.0)
		return 0.0;
	return wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, tokens, width_of(cost, HIDDEN),
	                              width_of(cost, QUERIES)) +
	       rotary_share(cost->model) *
	               wlb_machine_op_s(cost->machine, WLB_OP_ROPE, tokens * width_of(cost, QUERIES));
}

int wlb_layer_hides_exchange(const struct wlb_layer_cost *cost)
{
	const struct wlb_plan *plan = cost->plan;
	int again = plan->recompute == WLB_RECOMPUTE_FULL || (plan->recompute & WLB_RECOMPUTE_MOE);
	return cost->options->exchange_processors > 0 && !again && (plan->layout.pp == 1 || plan->interleave > 1);
}

double wlb_layer_exchange_lost_s(const struct wlb_layer_cost *cost, double exchange_s)
{
	double processors = cost->machine->processors;
	return processors > 0.0 ? exchange_s * fmin(1.0, cost->options->exchange_processors / processors) : 0.0;
}

double wlb_layer_output_d_w_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (tokens <= 0.0)
		return 0.0;
	return wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, width_of(cost, HIDDEN), tokens,
	                              width_of(cost, ATTENDED));
}

double wlb_layer_gathered_bytes(const struct wlb_layer_cost *cost)
{
	if (cost->options->fp8 != WLB_FP8_NONE && !cost->options->whole_rows)
		return 1.0;
	return wlb_machine_element_bytes(cost->machine);
}

static int is_trained_by(const struct wlb_layer_cost *cost, enum trainer trainer)
{
	int worker = is_worker(cost);
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

static int has_part(const struct wlb_layer_cost *cost, enum part part)
{
	const struct wlb_family_row *family = wlb_family(cost->model->family);
	int32_t ep = wlb_plan_expert_ranks(cost->plan);
	switch (part) {
	case OF_ALL:
	case ROTARY:
		return 1;
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

static double elementwise(const struct wlb_layer_cost *cost)
{
	return fmax(1.0, cost->options->elementwise);
}

/* Returns the seconds of calls of an operation on `elements` in all: in Megatron-LM of `traffic` reals for each, in
 * wlb-worker of `op`. */
static double direction_s(const struct wlb_layer_cost *cost, double calls, double elements, double traffic,
                          enum wlb_op op)
{
	const struct wlb_machine *machine = cost->machine;
	if (!is_worker(cost) && traffic == 0.0)
		return 0.0;
	if (!is_worker(cost))
		return calls * machine->operation_s +
		       stream_s(cost, elementwise(cost) * traffic * elements * wlb_machine_element_bytes(machine));
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
	double share = stream->part == ROTARY ? rotary_share(cost->model) : 1.0;
	double elements = share * stream->calls * tokens * width_of(cost, stream->width);
	if (stream->divided && !cost->options->whole_rows)
		elements /= cost->plan->layout.tp;
	if (stream->part == FP8)
		elements *= fp8_casts[cost->options->fp8];
	calls *= share * (stream->divided && wlb_layer_halves_rows(cost, tokens) ? 2.0 : 1.0) * stream->calls;
	return (struct wlb_seconds){direction_s(cost, calls, elements, stream->forward, stream->op_forward),
	                            direction_s(cost, calls, elements, stream->backward, stream->op_backward)};
}

static struct wlb_seconds streams_s(const struct wlb_layer_cost *cost, double tokens, double calls)
{
	struct wlb_seconds sum = {0};
	for (size_t i = 0; i < STREAMS; i++) {
		struct wlb_seconds one = one_stream_s(cost, &streams[i], tokens, calls);
		sum.forward += one.forward;
		sum.backward += one.backward;
	}
	return sum;
}

double wlb_angles_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (!is_worker(cost))
		return 0.0;
	return wlb_model_angle_kinds(cost->model) *
	       wlb_machine_op_s(cost->machine, WLB_OP_ROPE_ANGLES,
	                        tokens * 0.5 * (double)wlb_model_rotary_dim(cost->model));
}

struct wlb_seconds wlb_layer_elementwise_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (!(tokens > 0.0))
		return (struct wlb_seconds){0};
	return streams_s(cost, tokens, 1.0);
}

/* Returns the share of an operation's rows and columns that `modules` recompute. Where they recompute the input of a
 * product and not the product, it is cast in one order of its factors before and in the other then: no cast is done
 * again. */
static double again_share(const struct wlb_layer_cost *cost, const struct stream *stream, unsigned modules)
{
	modules &= stream->again;
	if (modules == 0)
		return 0.0;
	if (stream->width == MLPS)
		return wlb_plan_mlp_columns_again(cost->model, modules) / wlb_plan_mlp_columns(cost->model);
	if (stream->width == MLP_INPUTS)
		return mlp_inputs(cost->model, modules) * width_of(cost, HIDDEN) / width_of(cost, MLP_INPUTS);
	return 1.0;
}

/* Forward, the products that `modules` recompute. */
static double products_again_s(const struct wlb_layer_cost *cost, double tokens, unsigned modules)
{
	const struct wlb_model *m = cost->model;
	double share = wlb_model_expert_layers_share(m), sum = 0.0;
	if (modules & WLB_RECOMPUTE_MLA_UP_PROJ)
		for (const struct product *product = latent; product->in != product->out; product++)
			if (product->in == QUERIES_INPUT || product->in == KEYS_INPUT)
				sum += wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, tokens,
				                              width_of(cost, product->in),
				                              width_of(cost, product->out));
	if (modules & WLB_RECOMPUTE_MLP)
		sum += (1.0 - share) *
		       mlp_s(cost, tokens, m->num_experts == 0 ? m->intermediate_size : m->dense_intermediate_size)
		               .forward;
	if (modules & WLB_RECOMPUTE_MOE)
		sum += share * experts_s(cost, tokens).forward;
	else if (modules & WLB_RECOMPUTE_SHARED_EXPERTS)
		sum += share * mlp_s(cost, tokens, m->shared_intermediate_size).forward;
	return sum;
}

double wlb_layer_modules_s(const struct wlb_layer_cost *cost, double tokens)
{
	unsigned modules = wlb_plan_modules(cost->plan->recompute, cost->options);
	double sum = 0.0;
	if (modules == 0 || !(tokens > 0.0))
		return sum;
	for (size_t i = 0; i < STREAMS; i++)
		sum += again_share(cost, &streams[i], modules) * one_stream_s(cost, &streams[i], tokens, 1.0).forward;
	return sum + products_again_s(cost, tokens, modules);
}

/* Seconds of the sum after the last product of a layer. */
static double last_sum_s(const struct wlb_layer_cost *cost, double tokens, double calls)
{
	const struct stream *sums = &streams[1];
	return one_stream_s(cost, sums, tokens, calls).forward / sums->calls;
}

/* Returns the share of the layers whose last product gives what no operation of the backward pass reads. */
static double unread_share(const struct wlb_layer_cost *cost)
{
	if (wlb_family(cost->model->family)->norms != WLB_NORMS_BEFORE)
		return 0.0;
	return 1.0 - wlb_model_expert_layers_share(cost->model);
}

/* The columns on a rank of the MLP of a layer without experts. */
static double dense_columns(const struct wlb_layer_cost *cost)
{
	const struct wlb_model *m = cost->model;
	int64_t columns = m->num_experts == 0 ? m->intermediate_size : m->dense_intermediate_size;
	return (double)columns / cost->plan->layout.tp;
}

double wlb_layer_last_s(const struct wlb_layer_cost *cost, double tokens)
{
	double share = unread_share(cost);
	if (!(tokens > 0.0) || share == 0.0)
		return 0.0;
	return share * (wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, tokens, dense_columns(cost),
	                                       width_of(cost, HIDDEN)) +
	                last_sum_s(cost, tokens, 1.0));
}

double wlb_layer_last_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double products_s = 2.0 * tokens * dense_columns(cost) * width_of(cost, HIDDEN) /
	                    wlb_machine_gemm_most(cost->machine) /
	                    wlb_machine_fp8_rate(cost->machine, cost->options->fp8);
	return unread_share(cost) * (products_s + last_sum_s(cost, tokens, 0.0));
}

/* Bytes of a score that attention which is not fused reads and writes beside its products: a scaled and masked softmax
 * and dropout in two bytes, with a byte for its mask; backward the gradients of both. */
static const struct wlb_seconds score_bytes = {9.0, 11.0};

/* Attention that is not fused, of one layer: products of all heads over all pairs. Forward QK^T and PV, backward two of
 * each of them, for the gradients of both of their factors. */
static struct wlb_seconds unfused_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens)
{
	const struct wlb_machine *machine = cost->machine;
	double heads = (double)cost->model->num_attention_heads / cost->plan->layout.tp;
	double dim = (double)wlb_model_head_width(cost->model), q_rows = heads * q_tokens, k_rows = heads * k_tokens;
	double scores_s = wlb_machine_gemm_s(machine, q_rows, dim, k_tokens);
	double values_s = wlb_machine_gemm_s(machine, q_rows, k_tokens, dim);
	double keys_s = wlb_machine_gemm_s(machine, k_rows, q_tokens, dim);
	return (struct wlb_seconds){
		scores_s + values_s + stream_s(cost, score_bytes.forward * q_rows * k_tokens),
		scores_s + values_s + 2.0 * keys_s + stream_s(cost, score_bytes.backward * q_rows * k_tokens),
	};
}

/* Attention of the mean layer in one direction; ranks have whole heads. */
static double attention_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens, int backward)
{
	const struct wlb_model *m = cost->model;
	int heads = (int)(m->num_attention_heads / cost->plan->layout.tp), dim = (int)wlb_model_head_width(m);
	double share = wlb_model_window_share(m), window = (double)m->sliding_window, seconds = 0.0;
	if (share < 1.0)
		seconds += (1.0 - share) *
		           wlb_machine_attention_s(cost->machine, heads, dim, 0.0, q_tokens, k_tokens, backward);
	if (share > 0.0)
		seconds += share *
		           wlb_machine_attention_s(cost->machine, heads, dim, window, q_tokens, k_tokens, backward);
	return seconds;
}

struct wlb_seconds wlb_layer_attention_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens)
{
	int unfused = cost->options->unfused_attention, again = WLB_RECOMPUTE_CORE_ATTN;
	struct wlb_seconds sum = unfused ? unfused_s(cost, q_tokens, k_tokens)
	                                 : (struct wlb_seconds){attention_s(cost, q_tokens, k_tokens, 0),
	                                                        attention_s(cost, q_tokens, k_tokens, 1)};
	if (unfused)
		again |= WLB_RECOMPUTE_SELECTIVE;
	if (cost->plan->recompute & again)
		sum.backward += sum.forward;
	return sum;
}

struct wlb_seconds wlb_layer_attention_least_s(const struct wlb_layer_cost *cost, double pairs)
{
	double flops = 4.0 * pairs * (double)(cost->model->num_attention_heads * wlb_model_head_width(cost->model)) /
	               cost->plan->layout.tp;
	if (cost->options->unfused_attention) {
		double forward_s = flops / wlb_machine_gemm_most(cost->machine);
		return (struct wlb_seconds){forward_s, 2.0 * forward_s};
	}
	return (struct wlb_seconds){
		flops / wlb_machine_attention_most(cost->machine, 0),
		2.5 * flops / wlb_machine_attention_most(cost->machine, 1),
	};
}

/* Returns how many products the head's product is divided into: wlb-worker never has the logits of many rows. */
static double logit_chunks(const struct wlb_layer_cost *cost, double tokens)
{
	if (!is_worker(cost))
		return 1.0;
	return ceil(tokens / (double)wlb_logit_rows((int64_t)ceil(tokens), cost->model->vocab_size,
	                                            cost->plan->layout.tp,
	                                            (int64_t)wlb_machine_element_bytes(cost->machine)));
}

/* The loss of `logits` elements; `calls` as above. The soft cap of logits is timed as a sum. */
static struct wlb_seconds loss_s(const struct wlb_layer_cost *cost, double logits, double calls)
{
	int capped = cost->model->final_logit_softcapping > 0.0;
	if (is_worker(cost))
		return (struct wlb_seconds){
			direction_s(cost, calls, logits, 0.0, WLB_OP_CROSS_ENTROPY_STATISTICS) +
				direction_s(cost, calls, logits, 0.0, capped ? WLB_OP_ADD : WLB_OPERATIONS),
			direction_s(cost, calls, logits, 0.0, WLB_OP_CROSS_ENTROPY_GRADIENT),
		};
	if (cost->options->fused_loss)
		return (struct wlb_seconds){stream_s(cost, fused_logit_bytes.forward * logits),
		                            stream_s(cost, fused_logit_bytes.backward * logits)};
	return (struct wlb_seconds){stream_s(cost, elementwise(cost) * logit_bytes.forward * logits),
	                            stream_s(cost, elementwise(cost) * logit_bytes.backward * logits)};
}

struct wlb_seconds wlb_head_s(const struct wlb_layer_cost *cost, double tokens)
{
	double vocabulary = (double)cost->model->vocab_size / cost->plan->layout.tp;
	struct wlb_seconds sum = {0};
	if (tokens <= 0.0)
		return sum;
	double chunks = logit_chunks(cost, tokens);
	add_product(cost->machine, WLB_FP8_NONE, tokens / chunks, (double)cost->model->hidden_size, vocabulary, &sum);
	sum = (struct wlb_seconds){chunks * sum.forward, chunks * sum.backward};
	struct wlb_seconds norm = one_stream_s(cost, &streams[0], tokens, 1.0);
	struct wlb_seconds loss = loss_s(cost, tokens * vocabulary, chunks);
	sum.forward += loss.forward + norm.forward / streams[0].calls;
	sum.backward += loss.backward + norm.backward / streams[0].calls;
	return sum;
}

struct wlb_seconds wlb_embedding_s(const struct wlb_layer_cost *cost, double tokens)
{
	double hidden = (double)cost->model->hidden_size, elements = tokens * hidden, calls = tokens > 0.0 ? 1.0 : 0.0;
	double vocabulary = (double)cost->model->vocab_size / cost->plan->layout.tp;
	struct wlb_seconds sum = {direction_s(cost, calls, elements, 2.0, WLB_OP_EMBEDDING_FORWARD),
	                          direction_s(cost, calls, elements, 3.0, WLB_OP_EMBEDDING_BACKWARD)};
	if (cost->options->embedding_product && tokens > 0.0) { /* backward, the gradient of the weights alone */
		sum.forward += wlb_machine_gemm_s(cost->machine, tokens, vocabulary, hidden);
		sum.backward += wlb_machine_gemm_s(cost->machine, vocabulary, tokens, hidden);
	}
	return sum;
}

struct wlb_seconds wlb_layer_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double products_s = 2.0 * wlb_model_layer_active_parameters(cost->model) * tokens / cost->plan->layout.tp /
	                    wlb_machine_gemm_most(cost->machine) /
	                    wlb_machine_fp8_rate(cost->machine, cost->options->fp8);
	struct wlb_seconds sum = streams_s(cost, tokens, 0.0);
	sum.forward += products_s;
	sum.backward += 2.0 * products_s;
	return sum;
}

struct wlb_seconds wlb_head_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double elements = tokens * (double)cost->model->vocab_size / cost->plan->layout.tp;
	double product_s = 2.0 * elements * (double)cost->model->hidden_size / wlb_machine_gemm_most(cost->machine);
	struct wlb_seconds loss = loss_s(cost, elements, 0.0);
	return (struct wlb_seconds){product_s + loss.forward, 2.0 * product_s + loss.backward};
}

double wlb_optimizer_s(const struct wlb_layer_cost *cost, double updated, double held)
{
	const struct wlb_machine *machine = cost->machine;
	double element = wlb_machine_element_bytes(machine), gradient = cost->options->gradient_bytes;
	/* The norm is computed, and the weights, which are the masters where they have 4 bytes or more, are updated. */
	if (is_worker(cost) && element >= 4.0)
		return updated * (wlb_machine_op_element_s(machine, WLB_OP_SUM_SQUARES) +
		                  wlb_machine_op_element_s(machine, WLB_OP_ADAMW));
	/* The norm and the update read the gradient; master weight and both moments are read and written. Megatron-LM
	 * also writes the weight in use, which is a half of wlb-worker's master, sets gradients to 0, and multiplies
	 * them by 1 / replicas before they are summed. */
	double others = is_worker(cost) ? 0.0 : updated * element + held * 3.0 * gradient;
	return stream_s(cost, updated * (2.0 * gradient + 6.0 * 4.0) + others);
}

/* Of how many GPUs a step is as long as on one node. */
static const double one_node_gpus = 8.0;

double wlb_slowest_rank(const struct wlb_layer_cost *cost)
{
	double doublings = log2(fmax(1.0, wlb_layout_ranks(&cost->plan->layout) / one_node_gpus));
	return fmax(1.0, cost->machine->slowest_rank) * (1.0 + cost->options->growth * doublings);
}
