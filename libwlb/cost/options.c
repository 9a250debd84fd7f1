#include "libwlb/wlb.h"

void wlb_cost_options_init(struct wlb_cost_options *options)
{
	*options = (struct wlb_cost_options){
		.overlap_gradients = 1,
		.overlap_pp = 1,
		.gradient_bytes = 4,
	};
}

int wlb_cost_options_check(const struct wlb_cost_options *options, struct wlb_error *error)
{
	if (!(options->tp_overlap >= 0.0 && options->tp_overlap <= 1.0))
		return wlb_fail(error, "tp_overlap is %g: it must lie between 0 and 1", options->tp_overlap);
	if (!(options->cp_overlap >= 0.0 && options->cp_overlap <= 1.0))
		return wlb_fail(error, "cp_overlap is %g: it must lie between 0 and 1", options->cp_overlap);
	if (options->gradient_bytes != 2 && options->gradient_bytes != 4 && options->gradient_bytes != 8)
		return wlb_fail(error, "gradient_bytes is %d: it must be 2, 4 or 8", options->gradient_bytes);
	return 0;
}
