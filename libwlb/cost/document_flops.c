/* Counts the floating-point operations of one forward pass over a document. */
#include "libwlb/pairs.h"

double wlb_cost_document(const struct wlb_model *m, int64_t tokens)
{
	double n = (double)tokens;
	double q = (double)(m->num_attention_heads * wlb_model_head_width(m));
	double linear = 2.0 * (double)wlb_model_active_matrices(m);
	/* Two products (scores, values) of 2 flops for each pair of a query and a key. */
	double attention = 4.0 * q * wlb_mean_pairs(m, n, n);
	return linear * n + (double)m->num_hidden_layers * attention;
}
