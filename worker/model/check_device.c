#include "worker/model/transformer.h"

int wlb_transformer_check_device(const struct wlb_device *device, struct wlb_error *error)
{
	const struct wlb_ops *ops = device->ops;
	const struct {
		const char *name;
		int is_present;
	} needed[] = {
		{"linear", ops->linear != NULL},
		{"linear_d_x", ops->linear_d_x != NULL},
		{"linear_d_w", ops->linear_d_w != NULL},
		{"embedding_forward", ops->embedding_forward != NULL},
		{"embedding_backward", ops->embedding_backward != NULL},
		{"rmsnorm_forward", ops->rmsnorm_forward != NULL},
		{"rmsnorm_backward", ops->rmsnorm_backward != NULL},
		{"add_bias", ops->add_bias != NULL},
		{"bias_backward", ops->bias_backward != NULL},
		{"group_norm_sums", ops->group_norm_sums != NULL},
		{"group_norm_forward", ops->group_norm_forward != NULL},
		{"group_norm_backward", ops->group_norm_backward != NULL},
		{"rope_angles", ops->rope_angles != NULL},
		{"rope", ops->rope != NULL},
		{"attention_forward", ops->attention_forward != NULL},
		{"attention_backward", ops->attention_backward != NULL},
		{"swiglu_forward", ops->swiglu_forward != NULL},
		{"swiglu_backward", ops->swiglu_backward != NULL},
		{"geglu_forward", ops->geglu_forward != NULL},
		{"geglu_backward", ops->geglu_backward != NULL},
		{"cross_entropy_statistics", ops->cross_entropy_statistics != NULL},
		{"cross_entropy_gradient", ops->cross_entropy_gradient != NULL},
		{"gather_rows", ops->gather_rows != NULL},
		{"add", ops->add != NULL},
		{"scale", ops->scale != NULL},
		{"softcap", ops->softcap != NULL},
		{"add_gradients", ops->add_gradients != NULL},
		{"sum_squares", ops->sum_squares != NULL},
		{"clip_factor", ops->clip_factor != NULL},
		{"adamw", ops->adamw != NULL},
	};
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i].is_present)
			return wlb_fail(error,
			                "device %s cannot train yet: it has no %s in this version; use --device cpu",
			                device->name, needed[i].name);
	return 0;
}
