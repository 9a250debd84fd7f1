/* The products of a layer, and sums of its parts. */
#include "libwlb/cost/layer.h"

#include <math.h>

#include "libwlb/cost/layer_operations.h"
#include "libwlb/cost/layer_widths.h"
#include "libwlb/cost/plan_sizes.h"

/* The matrix products of attention, up to one of a width with itself: the matrices of queries, keys and values are one.
 * wlb-worker has keys and values apart where several tensor-parallel ranks hold them, and in the forward pass where it
 * gathers them beside the product of the queries. */
struct product {
	enum wlb_width in, out;
};

static const struct product fused[] = {
	{WLB_WIDTH_HIDDEN, WLB_WIDTH_QUERIES_KEYS_VALUES}, {WLB_WIDTH_QUERIES, WLB_WIDTH_HIDDEN}, {0}};
static const struct product kv_apart[] = {{WLB_WIDTH_HIDDEN, WLB_WIDTH_QUERIES},
                                          {WLB_WIDTH_HIDDEN, WLB_WIDTH_KEYS_VALUES},
                                          {WLB_WIDTH_QUERIES, WLB_WIDTH_HIDDEN},
                                          {0}};
static const struct product latent[] = {
	{WLB_WIDTH_HIDDEN, WLB_WIDTH_LATENT_QUERIES}, {WLB_WIDTH_QUERIES_INPUT, WLB_WIDTH_QUERIES},
	{WLB_WIDTH_HIDDEN, WLB_WIDTH_LATENT_KEYS},    {WLB_WIDTH_KEYS_INPUT, WLB_WIDTH_HEADS_KEYS_VALUES},
	{WLB_WIDTH_ATTENDED, WLB_WIDTH_HIDDEN},       {0}};

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
	return wlb_layer_is_worker(cost) && wlb_plan_document_ranks(cost->plan) > 1 &&
	       cost->options->cp_overlap.forward > 0.0;
}

static struct wlb_seconds products_s(const struct wlb_layer_cost *cost, double tokens, const struct product *product)
{
	struct wlb_seconds sum = {0};
	for (; product->in != product->out; product++)
		if (wlb_layer_width(cost, product->out) > 0.0)
			add_product(cost->machine, cost->options->fp8, tokens, wlb_layer_width(cost, product->in),
			            wlb_layer_width(cost, product->out), &sum);
	return sum;
}

static struct wlb_seconds attention_products_s(const struct wlb_layer_cost *cost, double tokens)
{
	const struct wlb_model *m = cost->model;
	if (wlb_family(m->family)->latent)
		return products_s(cost, tokens, latent);
	int apart = wlb_layer_is_worker(cost) && cost->plan->layout.tp > m->num_key_value_heads;
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
	add_products(cost->machine, cost->options->fp8, count, tokens, hidden,
	             wlb_layer_gate_and_up(cost->model) * width, &sum);
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

double wlb_layer_queries_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (tokens <= 0.0)
		return 0.0;
	return wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, tokens,
	                              wlb_layer_width(cost, WLB_WIDTH_HIDDEN),
	                              wlb_layer_width(cost, WLB_WIDTH_QUERIES)) +
	       wlb_layer_rotary_share(cost->model) *
	               wlb_machine_op_s(cost->machine, WLB_OP_ROPE, tokens * wlb_layer_width(cost, WLB_WIDTH_QUERIES));
}

double wlb_layer_output_d_w_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (tokens <= 0.0)
		return 0.0;
	return wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, wlb_layer_width(cost, WLB_WIDTH_HIDDEN),
	                              tokens, wlb_layer_width(cost, WLB_WIDTH_ATTENDED));
}

double wlb_layer_gathered_bytes(const struct wlb_layer_cost *cost)
{
	if (cost->options->fp8 != WLB_FP8_NONE && !cost->options->whole_rows)
		return 1.0;
	return wlb_machine_element_bytes(cost->machine);
}

double wlb_angles_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (!wlb_layer_is_worker(cost))
		return 0.0;
	return wlb_model_angle_kinds(cost->model) *
	       wlb_machine_op_s(cost->machine, WLB_OP_ROPE_ANGLES,
	                        tokens * 0.5 * (double)wlb_model_rotary_dim(cost->model));
}

struct wlb_seconds wlb_layer_elementwise_s(const struct wlb_layer_cost *cost, double tokens)
{
	if (!(tokens > 0.0))
		return (struct wlb_seconds){0};
	return wlb_layer_streams_s(cost, tokens, 1.0);
}

/* Forward, the products that `modules` recompute. */
static double products_again_s(const struct wlb_layer_cost *cost, double tokens, unsigned modules)
{
	const struct wlb_model *m = cost->model;
	double share = wlb_model_expert_layers_share(m), sum = 0.0;
	if (modules & WLB_RECOMPUTE_MLA_UP_PROJ)
		for (const struct product *product = latent; product->in != product->out; product++)
			if (product->in == WLB_WIDTH_QUERIES_INPUT || product->in == WLB_WIDTH_KEYS_INPUT)
				sum += wlb_machine_fp8_gemm_s(cost->machine, cost->options->fp8, tokens,
				                              wlb_layer_width(cost, product->in),
				                              wlb_layer_width(cost, product->out));
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
	if (modules == 0 || !(tokens > 0.0))
		return 0.0;
	return wlb_layer_streams_again_s(cost, tokens, modules) + products_again_s(cost, tokens, modules);
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
	                                       wlb_layer_width(cost, WLB_WIDTH_HIDDEN)) +
	                wlb_layer_sum_s(cost, tokens, 1.0));
}

double wlb_layer_last_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double products_s = 2.0 * tokens * dense_columns(cost) * wlb_layer_width(cost, WLB_WIDTH_HIDDEN) /
	                    wlb_machine_gemm_most(cost->machine) /
	                    wlb_machine_fp8_rate(cost->machine, cost->options->fp8);
	return unread_share(cost) * (products_s + wlb_layer_sum_s(cost, tokens, 0.0));
}

struct wlb_seconds wlb_layer_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double products_s = 2.0 * wlb_model_layer_active_parameters(cost->model) * tokens / cost->plan->layout.tp /
	                    wlb_machine_gemm_most(cost->machine) /
	                    wlb_machine_fp8_rate(cost->machine, cost->options->fp8);
	struct wlb_seconds sum = wlb_layer_streams_s(cost, tokens, 0.0);
	sum.forward += products_s;
	sum.backward += 2.0 * products_s;
	return sum;
}
