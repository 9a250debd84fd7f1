/* Counts the floating-point operations of one forward pass over a document. */
#include "libwlb/pairs.h"

double wlb_cost_document(const struct wlb_model *m, int64_t tokens)
{
	double n = (double)tokens;
	double hidden = (double)m->hidden_size;
	double q = (double)(m->num_attention_heads * m->head_dim);
	double kv = (double)(m->num_key_value_heads * m->head_dim);
	double linear = 2.0 * (hidden * (q + 2.0 * kv) + q * hidden + 3.0 * hidden * (double)m->intermediate_size);
	/* Two products (scores, values) of 2 flops for each pair of a query and a key. */
	double attention = 4.0 * q * wlb_mean_pairs(m, n, n);
	return (double)m->num_hidden_layers * (linear * n + attention);
}
