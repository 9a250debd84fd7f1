#include "libwlb/pairs.h"

#include <math.h>

static double causal_pairs(double q_tokens, double k_tokens)
{
	return q_tokens * (k_tokens - (q_tokens - 1.0) / 2.0);
}

/* The window leaves out of a query's keys as many as the token `window` before it would see. */
double wlb_attention_pairs(double window, double q_tokens, double k_tokens)
{
	double pairs = causal_pairs(q_tokens, k_tokens), before = k_tokens - window;
	return window > 0.0 && before > 0.0 ? pairs - causal_pairs(fmin(q_tokens, before), before) : pairs;
}

double wlb_mean_pairs(const struct wlb_model *m, double q_tokens, double k_tokens)
{
	double share = wlb_model_window_share(m);
	return (1.0 - share) * wlb_attention_pairs(0.0, q_tokens, k_tokens) +
	       share * wlb_attention_pairs((double)m->sliding_window, q_tokens, k_tokens);
}
