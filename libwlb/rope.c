/* The frequencies of rotary embeddings, as Transformers' modeling_rope_utils.py makes them. */
#include <math.h>

#include "libwlb/wlb.h"

const char *wlb_rope_type_name(enum wlb_rope_type type)
{
	static const char *const names[WLB_ROPE_TYPES] = {
		[WLB_ROPE_DEFAULT] = "default",
		[WLB_ROPE_LINEAR] = "linear",
		[WLB_ROPE_LLAMA3] = "llama3",
		[WLB_ROPE_YARN] = "yarn",
	};
	return (unsigned)type < WLB_ROPE_TYPES ? names[type] : "unknown";
}

/* Llama 3.1: frequencies of wavelengths beyond original / low_freq_factor are divided by `factor`, those below original
 * / high_freq_factor are not, and those between are blended. */
static double scale_llama3(const struct wlb_rope_scaling *s, double frequency)
{
	double turns = s->original_max_position_embeddings * frequency / (2.0 * M_PI);
	if (turns < s->low_freq_factor)
		return frequency / s->factor;
	if (turns > s->high_freq_factor)
		return frequency;
	double smooth = (turns - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
	return (1.0 - smooth) * frequency / s->factor + smooth * frequency;
}

/* The pairs of a head between which YaRN blends: below `low` frequencies stay, above `high` they are divided. */
struct ramp {
	double low, high;
};

/* Returns the pair, counted in fractions, that turns so often within the original length. */
static double pair_of_turns(const struct wlb_model *m, double dim, double turns)
{
	double original = m->rope_scaling.original_max_position_embeddings;
	return dim * log(original / (turns * 2.0 * M_PI)) / (2.0 * log(m->rope_theta));
}

static struct ramp yarn_ramp(const struct wlb_model *m, double dim)
{
	const struct wlb_rope_scaling *s = &m->rope_scaling;
	struct ramp ramp = {pair_of_turns(m, dim, s->beta_fast), pair_of_turns(m, dim, s->beta_slow)};
	if (s->truncate)
		ramp = (struct ramp){floor(ramp.low), ceil(ramp.high)};
	ramp = (struct ramp){fmax(ramp.low, 0.0), fmin(ramp.high, dim - 1.0)};
	if (ramp.low == ramp.high)
		ramp.high += 0.001; /* as there, against a division by 0 */
	return ramp;
}

static double scale_yarn(const struct wlb_rope_scaling *s, const struct ramp *ramp, double pair, double frequency)
{
	double divided = fmin(fmax((pair - ramp->low) / (ramp->high - ramp->low), 0.0), 1.0);
	return frequency / s->factor * divided + frequency * (1.0 - divided);
}

/* What the cosines and sines of all types are multiplied by for query_pre_attn_scalar. */
static double score_factor(const struct wlb_model *m)
{
	return m->query_pre_attn_scalar > 0.0 ? pow((double)m->head_dim / m->query_pre_attn_scalar, 0.25) : 1.0;
}

double wlb_rope_frequencies(const struct wlb_model *m, enum wlb_angles kind, double *frequencies)
{
	static const struct wlb_rope_scaling unscaled = {.type = WLB_ROPE_DEFAULT};
	int is_local = kind == WLB_ANGLES_LOCAL;
	const struct wlb_rope_scaling *s = is_local ? &unscaled : &m->rope_scaling;
	double theta = is_local ? m->rope_local_base_freq : m->rope_theta;
	int64_t dim = wlb_model_rotary_dim(m);
	const struct ramp ramp = s->type == WLB_ROPE_YARN ? yarn_ramp(m, (double)dim) : (struct ramp){0.0, 1.0};
	for (int64_t i = 0; i < dim / 2; i++) {
		double frequency = pow(theta, -2.0 * (double)i / (double)dim);
		switch (s->type) {
		case WLB_ROPE_DEFAULT:
		case WLB_ROPE_TYPES:
			break;
		case WLB_ROPE_LINEAR:
			frequency /= s->factor;
			break;
		case WLB_ROPE_LLAMA3:
			frequency = scale_llama3(s, frequency);
			break;
		case WLB_ROPE_YARN:
			frequency = scale_yarn(s, &ramp, (double)i, frequency);
			break;
		}
		frequencies[i] = frequency;
	}
	return (s->type == WLB_ROPE_YARN ? s->attention_factor : 1.0) * score_factor(m);
}
