#include "worker/load/document_time.h"

/* docs/results/kernels-cpu.md: two threads of the CPU device, float32. What counts is their ratio, which is about the
 * same for any number of threads. A product of matrices does 305 GFLOP/s. Attention, forward and backward together,
 * does 134 to 173 GFLOP/s on documents of 4,096 and 1,024 tokens where its tiles are counted in full, 150 in the
 * middle; with the tiles below that also gives what documents of 64 tokens take, which is twice as much a pair. */
static const double gemm_flops_per_s = 305e9;
static const double attention_flops_per_s = 150e9;

/* A block of 64 queries (kernels/cpu/attention.h) attends to every key up to that of its last query. A block that is
 * not full takes less time, so the tile of queries is smaller than the block. */
enum { QUERY_TILE = 16, KEY_TILE = 64 };

/* The time of the backward pass over that of the forward pass: it has two products for each one, and in attention five
 * for two. */
static const double gemm_backward = 2.0;
static const double attention_backward = 2.5;

void wlb_document_time_init(struct wlb_document_time *time, const struct wlb_model *model, int32_t tp)
{
	wlb_kernel_time_init(&time->kernels, model, tp, attention_flops_per_s, gemm_flops_per_s);
	time->kernels.q_tile = QUERY_TILE;
	time->kernels.k_tile = KEY_TILE;
	time->layers = (double)model->num_hidden_layers;
	time->head_token_s = 2.0 * (double)model->hidden_size * (double)model->vocab_size / tp / gemm_flops_per_s;
	time->token_factor = 1.0 + gemm_backward;
	time->attention_factor = 1.0 + attention_backward;
	time->speeds = (struct wlb_document_speeds){0};
}

int wlb_document_time_measured(struct wlb_document_time *time, const struct wlb_model *model,
                               const struct wlb_document_speeds *speeds, struct wlb_error *error)
{
	*time = (struct wlb_document_time){
		.layers = (double)model->num_hidden_layers,
		.head_token_s = speeds->head_token_s,
		.token_factor = 1.0,
		.attention_factor = 1.0,
		.speeds = *speeds,
	};
	time->kernels = (struct wlb_kernel_time){
		.q_tile = 1, /* the curve has been measured with what tiles cost */
		.k_tile = 1,
		.gemm_tile = 1,
		.gemm_token_s = speeds->layer_token_s,
		.window = model->sliding_window,
		.window_share = wlb_model_window_share(model),
		.attention = {.q_tokens = time->speeds.tokens,
	                      .q_count = WLB_DOCUMENT_POINTS,
	                      .k_tokens = time->speeds.tokens,
	                      .k_count = WLB_DOCUMENT_POINTS,
	                      .seconds = time->speeds.attention_s},
	};
	if (!(speeds->head_token_s > 0.0))
		return wlb_fail(error, "head_token_s is %g s: it must be above 0", speeds->head_token_s);
	return wlb_kernel_time_check(&time->kernels, error);
}

double wlb_document_s(const void *context, int64_t tokens)
{
	const struct wlb_document_time *time = context;
	double token_s = time->layers * time->kernels.gemm_token_s + time->head_token_s;
	double attention_s = time->layers * wlb_attention_seconds(&time->kernels, tokens, tokens);
	return time->token_factor * token_s * (double)tokens + time->attention_factor * attention_s;
}

double wlb_shards_time_s(const struct wlb_document_time *time, const struct wlb_shards *shards, int32_t rank,
                         int64_t rows, int32_t stages, int has_head)
{
	double layers = time->layers / stages;
	double token_s = layers * time->kernels.gemm_token_s + (has_head ? time->head_token_s : 0.0);
	double attention_s = layers * wlb_shards_seconds(shards, rank, &time->kernels);
	return time->token_factor * token_s * (double)rows + time->attention_factor * attention_s;
}
