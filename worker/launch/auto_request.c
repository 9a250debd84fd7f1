#include "worker/launch/auto_request.h"

#include "worker/load/options.h"

void wlb_train_auto_request(const struct wlb_train_options *options, const char *gpu_types,
                            struct wlb_auto_request *request)
{
	const struct wlb_loader_options loading = {
		.seq_length = options->seq_length,
		.global_batch_size = options->global_batch_size,
		.packing = options->packing == WLB_PACKING_AUTO ? WLB_STRATEGY_BALANCED
	                                                        : (enum wlb_strategy)options->packing,
		.max_tokens = options->max_tokens,
	};
	bool has_limit = options->max_tokens > 0;
	int64_t windows = options->micro_batch_size > 0 ? options->micro_batch_size : has_limit;
	*request = (struct wlb_auto_request){
		.model = options->model,
		.lengths = options->data_path,
		.blend = options->data.blend.count > 1 ? &options->data.blend : NULL,
		.machine = options->machine,
		.gpu_types = options->device == WLB_DEVICE_CUDA ? gpu_types : NULL,
		.seq_length = options->seq_length,
		.global_batch = (int32_t)options->global_batch_size,
		.zero_stage = options->zero_stage,
		.max_length_ratio = wlb_loader_length_ratio(&loading),
		.max_tokens = options->max_tokens,
		.least_micro_batches = has_limit ? (int32_t)wlb_loader_bins_min(&loading) : 0,
		.sharding = (enum wlb_sharding)options->cp_sharding,
		.dynamic = options->packing == WLB_PACKING_AUTO ? -1 : options->packing == WLB_STRATEGY_DYNAMIC,
		.is_worker = 1,
		.element_bytes = options->dtype == WLB_FLOAT64    ? 8
	                         : options->dtype == WLB_BFLOAT16 ? 2
	                                                          : 4,
		.halved_rows = options->tp_halves,
		.gradient_bytes = options->main_grads == WLB_MAIN_GRADS_BF16 ? 2 : 0,
		.fixed = {.interleave = (int32_t)options->virtual_stages,
	                  .micro_batch_windows = (int32_t)windows,
	                  .recompute = options->recompute == WLB_RECOMPUTE_AUTO ? -1 : options->recompute,
	                  .recompute_layers = options->recompute_layers,
	                  .account_for_embedding = options->account_for_embedding,
	                  .account_for_loss = options->account_for_loss,
	                  .shared_head =
	                          options->head_stages == WLB_HEAD_AUTO ? -1 : options->head_stages == WLB_HEAD_ALL},
	};
}
