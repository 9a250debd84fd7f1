#include "worker/model/recompute.h"

#include "worker/model/context_parallel.h"
#include "worker/model/forward.h"
#include "worker/model/tensor_parallel.h"

int wlb_recompute_mlp(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                      const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                      struct wlb_error *error)
{
	if (t->recompute == WLB_RECOMPUTE_FULL)
		return wlb_attention_half(t, w, a, batch, error) < 0 ? -1 : wlb_mlp_inner(t, w, a, batch, error);
	if (t->recompute == WLB_RECOMPUTE_SELECTIVE) {
		wlb_tp_norm(t, a->post_norm, a->post_rstd, a->middle, w->post_norm, batch->rows);
		t->device->ops->swiglu_forward(t->device, a->activated, a->gate, a->up,
		                               batch->rows * t->parameters->intermediate);
	}
	return 0;
}

int wlb_recompute_attention(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                            const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                            struct wlb_error *error)
{
	if (t->recompute != WLB_RECOMPUTE_SELECTIVE)
		return 0;
	wlb_tp_norm(t, a->norm, a->rstd, a->input, w->input_norm, batch->rows);
	return wlb_cp_gather(t, a, batch, error);
}
