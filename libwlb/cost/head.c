/* The head with its loss, the embedding, and the optimizer. */
#include "libwlb/cost/layer.h"
#include "libwlb/cost/layer_operations.h"

#include <math.h>

/* Bytes of a logit that the loss reads and writes in Megatron-LM r0.8, core/tensor_parallel/cross_entropy.py: a copy in
 * float32 (6), the largest (4), the difference (8), its exponential (8), their sum (4), the quotient (8); backward the
 * product with the loss's gradient (8) and the copy in bfloat16 (6). */
static const struct wlb_seconds logit_bytes = {38.0, 14.0};

/* The same of one kernel in either direction: it reads the logit, and writes its gradient (flash-attn 1.0.9,
 * losses/cross_entropy.py). */
static const struct wlb_seconds fused_logit_bytes = {2.0, 4.0};

/* The same of PyTorch's cross_entropy in the type of the logits (aten/src/ATen/native/cuda/SoftMax.cu): log_softmax
 * reads rows that are longer than shared memory three times (6) and writes (2); backward a gradient of zeros is written
 * (2) and read twice (4), and the result is read and written (4). */
static const struct wlb_seconds split_logit_bytes = {8.0, 10.0};

double wlb_head_parts(const struct wlb_layer_cost *cost, double tokens)
{
	if (!wlb_layer_is_worker(cost))
		return 1.0;
	return ceil(tokens / (double)wlb_logit_rows((int64_t)ceil(tokens), cost->model->vocab_size,
	                                            cost->plan->layout.tp,
	                                            (int64_t)wlb_machine_element_bytes(cost->machine)));
}

/* The loss of `logits` elements; `calls` as for wlb_layer_streams_s. The soft cap of logits is timed as a sum. */
static struct wlb_seconds loss_s(const struct wlb_layer_cost *cost, double logits, double calls)
{
	int capped = cost->model->final_logit_softcapping > 0.0;
	if (wlb_layer_is_worker(cost))
		return (struct wlb_seconds){
			wlb_layer_operation_s(cost, calls, logits, 0.0, WLB_OP_CROSS_ENTROPY_STATISTICS) +
				wlb_layer_operation_s(cost, calls, logits, 0.0, capped ? WLB_OP_ADD : WLB_OPERATIONS),
			wlb_layer_operation_s(cost, calls, logits, 0.0, WLB_OP_CROSS_ENTROPY_GRADIENT),
		};
	if (cost->options->fused_loss)
		return (struct wlb_seconds){wlb_layer_memory_s(cost, fused_logit_bytes.forward * logits),
		                            wlb_layer_memory_s(cost, fused_logit_bytes.backward * logits)};
	const struct wlb_seconds *bytes = cost->options->split_operations ? &split_logit_bytes : &logit_bytes;
	return (struct wlb_seconds){wlb_layer_memory_s(cost, wlb_layer_traffic(cost) * bytes->forward * logits),
	                            wlb_layer_memory_s(cost, wlb_layer_traffic(cost) * bytes->backward * logits)};
}

struct wlb_seconds wlb_head_s(const struct wlb_layer_cost *cost, double tokens)
{
	double vocabulary = (double)cost->model->vocab_size / cost->plan->layout.tp;
	if (tokens <= 0.0)
		return (struct wlb_seconds){0};
	double chunks = wlb_head_parts(cost, tokens);
	struct wlb_seconds norm = wlb_layer_norm_s(cost, tokens);
	struct wlb_seconds loss = loss_s(cost, tokens * vocabulary, chunks);
	double hidden = (double)cost->model->hidden_size, rows = tokens / chunks;
	double backward_s = wlb_machine_gemm_s(cost->machine, rows, vocabulary, hidden) +
	                    wlb_machine_gemm_s(cost->machine, vocabulary, rows, hidden);
	return (struct wlb_seconds){
		chunks * wlb_machine_gemm_s(cost->machine, rows, hidden, vocabulary) + loss.forward + norm.forward,
		chunks * backward_s + loss.backward + norm.backward,
	};
}

struct wlb_seconds wlb_head_waits_s(const struct wlb_layer_cost *cost, double pieces, double tokens, double gather_s,
                                    double reduce_s)
{
	if (tokens <= 0.0)
		return (struct wlb_seconds){0};
	double parts = wlb_head_parts(cost, tokens), rows = tokens / parts;
	double hidden = (double)cost->model->hidden_size,
	       vocabulary = (double)cost->model->vocab_size / cost->plan->layout.tp;
	double logits_s = parts * wlb_machine_gemm_s(cost->machine, rows, hidden, vocabulary);
	double d_w_s = wlb_machine_gemm_s(cost->machine, vocabulary, rows, hidden);
	return (struct wlb_seconds){
		gather_s + (pieces - 1.0) * fmax(0.0, gather_s - logits_s),
		fmax(0.0, reduce_s - d_w_s) + (pieces - 1.0) * fmax(0.0, reduce_s - d_w_s - logits_s),
	};
}

struct wlb_seconds wlb_embedding_s(const struct wlb_layer_cost *cost, double tokens)
{
	double hidden = (double)cost->model->hidden_size, elements = tokens * hidden, calls = tokens > 0.0 ? 1.0 : 0.0;
	double vocabulary = (double)cost->model->vocab_size / cost->plan->layout.tp;
	struct wlb_seconds sum = {wlb_layer_operation_s(cost, calls, elements, 2.0, WLB_OP_EMBEDDING_FORWARD),
	                          wlb_layer_operation_s(cost, calls, elements, 3.0, WLB_OP_EMBEDDING_BACKWARD)};
	if (cost->options->embedding_product && tokens > 0.0) { /* backward, the gradient of the weights alone */
		sum.forward += wlb_machine_gemm_s(cost->machine, tokens, vocabulary, hidden);
		sum.backward += wlb_machine_gemm_s(cost->machine, vocabulary, tokens, hidden);
	}
	return sum;
}

struct wlb_seconds wlb_head_least_s(const struct wlb_layer_cost *cost, double tokens)
{
	double elements = tokens * (double)cost->model->vocab_size / cost->plan->layout.tp;
	double product_s = 2.0 * elements * (double)cost->model->hidden_size / wlb_machine_gemm_most(cost->machine);
	struct wlb_seconds loss = loss_s(cost, elements, 0.0);
	return (struct wlb_seconds){product_s + loss.forward, 2.0 * product_s + loss.backward};
}

double wlb_optimizer_norm_s(const struct wlb_layer_cost *cost, double updated)
{
	if (wlb_machine_element_bytes(cost->machine) >= 4.0)
		return updated * wlb_machine_op_element_s(cost->machine, WLB_OP_SUM_SQUARES);
	return wlb_layer_memory_s(cost, updated * cost->options->gradient_bytes);
}

double wlb_optimizer_s(const struct wlb_layer_cost *cost, double updated, double held)
{
	const struct wlb_machine *machine = cost->machine;
	double element = wlb_machine_element_bytes(machine), gradient = cost->options->gradient_bytes;
	/* The norm is computed, and the weights, which are the masters where they have 4 bytes or more, are updated. */
	if (wlb_layer_is_worker(cost) && element >= 4.0)
		return updated * (wlb_machine_op_element_s(machine, WLB_OP_SUM_SQUARES) +
		                  wlb_machine_op_element_s(machine, WLB_OP_ADAMW));
	/* The norm and the update read the gradient; master weight and both moments are read and written. Megatron-LM
	 * also writes the weight in use, which is a half of wlb-worker's master, sets gradients to 0, and multiplies
	 * them by 1 / replicas before they are summed. */
	double others = wlb_layer_is_worker(cost) ? 0.0 : updated * element + held * 3.0 * gradient;
	return wlb_layer_memory_s(cost, updated * (2.0 * gradient + 6.0 * 4.0) + others);
}

/* Of how many GPUs a step is as long as on one node. */
static const double one_node_gpus = 8.0;

double wlb_slowest_rank(const struct wlb_layer_cost *cost)
{
	double doublings = log2(fmax(1.0, wlb_layout_ranks(&cost->plan->layout) / one_node_gpus));
	return fmax(1.0, cost->machine->slowest_rank) * (1.0 + cost->options->growth * doublings);
}
