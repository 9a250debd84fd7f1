#include "worker/launch/auto_request.h"

#include <math.h>

/* The tokens of a micro-batch by its windows', as packing or the user limits them. */
static double length_ratio(const struct wlb_train_options *options)
{
	enum wlb_strategy packing = (enum wlb_strategy)options->packing;
	struct wlb_packer_options packer;
	if (options->max_tokens > 0) {
		double windows = options->micro_batch_size > 0 ? (double)options->micro_batch_size : 1.0;
		double ratio = (double)options->max_tokens / (windows * (double)options->seq_length);
		return fmin(fmax(ratio, 1.0), 64.0);
	}
	wlb_packer_options_init(&packer, options->seq_length, 1);
	return packing == WLB_STRATEGY_PLAIN || packing == WLB_STRATEGY_FIXED ? 1.0 : packer.max_length_ratio;
}

void wlb_train_auto_request(const struct wlb_train_options *options, const char *gpu_types,
                            struct wlb_auto_request *request)
{
	int64_t windows = options->micro_batch_size;
	if (windows == 0 && options->max_tokens > 0)
		windows = 1;
	*request = (struct wlb_auto_request){
		.model = options->model,
		.lengths = options->data_path,
		.machine = options->machine,
		.gpu_types = options->device == WLB_DEVICE_CUDA ? gpu_types : NULL,
		.seq_length = options->seq_length,
		.global_batch = (int32_t)options->global_batch_size,
		.max_length_ratio = length_ratio(options),
		.sharding = (enum wlb_sharding)options->cp_sharding,
		.is_worker = 1,
		.element_bytes = options->dtype == WLB_FLOAT64    ? 8
	                         : options->dtype == WLB_BFLOAT16 ? 2
	                                                          : 4,
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
