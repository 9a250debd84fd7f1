/* Computes the times of a document's parts from the speeds of a machine. */
#include "worker/load/document_time.h"

/* The points are lengths of 64 tokens to 2^20. */
enum { LEAST_TOKENS = 64, STEP = 2 };

/* wlb_attention_seconds is linear in the logarithm of the length between points. A rate that rises by at most this
 * factor between two points, which are a factor of 2 apart, keeps the seconds of a document rising: the derivative of
 * n^2 x p(log n) is positive where p falls to 1 / (1 + 2 ln 2) = 1 / 2.39 of its value or to more. */
static const double RISE_MAX = 2.2;

/* A linear layer, forward, and the gradients of its input and of its weight. */
static double linear_s(const struct wlb_machine *machine, double rows, double in, double out)
{
	return wlb_machine_gemm_s(machine, rows, in, out) + wlb_machine_gemm_s(machine, rows, out, in) +
	       wlb_machine_gemm_s(machine, out, rows, in);
}

/* Seconds of the operations of a layer beside the products and attention, forward and backward: two norms, residual
 * sums where tp is above 1, rotary embeddings with a layer's share of their angles, SwiGLU. */
static double operations_s(const struct wlb_machine *machine, const struct wlb_model *model, int32_t tp, double rows,
                           double queries_keys, double mlp)
{
	double hidden = (double)model->hidden_size;
	double norms_s = wlb_machine_op_s(machine, WLB_OP_RMSNORM_FORWARD, rows * hidden / tp) +
	                 wlb_machine_op_s(machine, WLB_OP_RMSNORM_BACKWARD, rows * hidden / tp);
	double sums_s = tp > 1 ? 2.0 * wlb_machine_op_s(machine, WLB_OP_ADD, rows * hidden / tp) : 0.0;
	double angles_s = wlb_machine_op_s(machine, WLB_OP_ROPE_ANGLES, rows * 0.5 * (double)model->head_dim) /
	                  (double)model->num_hidden_layers;
	return 2.0 * norms_s + sums_s + 2.0 * angles_s +
	       2.0 * wlb_machine_op_s(machine, WLB_OP_ROPE, rows * queries_keys) +
	       wlb_machine_op_s(machine, WLB_OP_SWIGLU_FORWARD, rows * mlp) +
	       wlb_machine_op_s(machine, WLB_OP_SWIGLU_BACKWARD, rows * mlp);
}

static double layer_s(const struct wlb_machine *machine, const struct wlb_model *model, int32_t tp, double rows)
{
	double hidden = (double)model->hidden_size, mlp = (double)model->intermediate_size / tp;
	double q = (double)(model->num_attention_heads * model->head_dim) / tp;
	double kv = (double)(model->num_key_value_heads * model->head_dim) / tp;
	double products_s = linear_s(machine, rows, hidden, q + 2.0 * kv) + linear_s(machine, rows, q, hidden) +
	                    linear_s(machine, rows, hidden, 2.0 * mlp) + linear_s(machine, rows, mlp, hidden);
	return products_s + operations_s(machine, model, tp, rows, q + kv, mlp);
}

static double head_s(const struct wlb_machine *machine, const struct wlb_model *model, int32_t tp, double rows)
{
	double vocab = (double)model->vocab_size / tp;
	return linear_s(machine, rows, (double)model->hidden_size, vocab) +
	       wlb_machine_op_s(machine, WLB_OP_CROSS_ENTROPY_STATISTICS, rows * vocab) +
	       wlb_machine_op_s(machine, WLB_OP_CROSS_ENTROPY_GRADIENT, rows * vocab);
}

static void set_attention(const struct wlb_machine *machine, int heads, int head_dim,
                          struct wlb_document_speeds *speeds)
{
	for (int q = 0; q < WLB_DOCUMENT_POINTS; q++)
		for (int k = q; k < WLB_DOCUMENT_POINTS; k++) {
			double q_tokens = speeds->tokens[q], k_tokens = speeds->tokens[k];
			speeds->attention_s[q * WLB_DOCUMENT_POINTS + k] =
				wlb_machine_attention_s(machine, heads, head_dim, 0.0, q_tokens, k_tokens, 0) +
				wlb_machine_attention_s(machine, heads, head_dim, 0.0, q_tokens, k_tokens, 1);
		}
}

/* Raises the times of whole documents where they would not rise with the length. */
static void keep_rising(struct wlb_document_speeds *speeds)
{
	for (int i = 1; i < WLB_DOCUMENT_POINTS; i++) {
		double before = speeds->attention_s[(i - 1) * WLB_DOCUMENT_POINTS + i - 1];
		double pairs = speeds->tokens[i] * (speeds->tokens[i] + 1.0);
		double pairs_before = speeds->tokens[i - 1] * (speeds->tokens[i - 1] + 1.0);
		double least = before / pairs_before * pairs / RISE_MAX;
		double *seconds = &speeds->attention_s[i * WLB_DOCUMENT_POINTS + i];
		*seconds = *seconds > least ? *seconds : least;
	}
}

void wlb_document_speeds_of(const struct wlb_machine *machine, const struct wlb_model *model, int32_t tp, double rows,
                            struct wlb_document_speeds *speeds)
{
	int heads = (int)(model->num_attention_heads / tp);
	*speeds = (struct wlb_document_speeds){
		.measured = 1,
		.layer_token_s = layer_s(machine, model, tp, rows) / rows,
		.head_token_s = head_s(machine, model, tp, rows) / rows,
	};
	double tokens = LEAST_TOKENS;
	for (int i = 0; i < WLB_DOCUMENT_POINTS; i++, tokens *= STEP)
		speeds->tokens[i] = tokens;
	set_attention(machine, heads > 0 ? heads : 1, (int)model->head_dim, speeds);
	keep_rising(speeds);
}
