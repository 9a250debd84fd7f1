/* Counts the floating-point operations of one forward pass over a document. */
#include "libwlb/wlb.h"

double wlb_cost_document(const struct wlb_model *m, int64_t tokens)
{
	double n = (double)tokens;
	double q = (double)(m->num_attention_heads * m->head_dim);
	double linear = 2.0 * (double)wlb_model_layer_active_parameters(m);
	/* Query i sees i + 1 keys, in a sliding window at most as many as that has: n (n + 1) / 2 pairs, two products
	 * (scores, values) of 2 flops each. */
	double window = m->sliding_window > 0 && (double)m->sliding_window < n ? (double)m->sliding_window : n;
	double attention = 2.0 * q * (window * (window + 1.0) + 2.0 * (n - window) * window);
	return (double)m->num_hidden_layers * (linear * n + attention);
}
