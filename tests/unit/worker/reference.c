/*
 * A Llama forward pass written from the papers and Hugging Face's modeling_llama.py, one token and one head at a
 * time, in float64. Of worker/ and kernels/ it uses only the table of tensors.
 */
#include "tests/unit/worker/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 64, MAX_WIDTH = 64 };

typedef double matrix[MAX_TOKENS][MAX_WIDTH];

static const double *weight(const struct wlb_parameters *p, int layer, const char *name)
{
	char full[64];
	if (layer >= 0)
		snprintf(full, sizeof(full), "model.layers.%d.%s.weight", layer, name);
	else
		snprintf(full, sizeof(full), "%s.weight", name);
	for (int i = 0; i < p->count; i++)
		if (strcmp(p->tensors[i].name, full) == 0)
			return wlb_weight(p, i);
	fprintf(stderr, "no tensor %s\n", full);
	abort();
}

/* LlamaRMSNorm: w * x / sqrt(mean(x^2) + eps) */
static void rms_norm(double *out, const double *x, const double *w, int width, double eps)
{
	double mean = 0.0;
	for (int i = 0; i < width; i++)
		mean += x[i] * x[i] / width;
	for (int i = 0; i < width; i++)
		out[i] = w[i] * x[i] / sqrt(mean + eps);
}

/* out = W x, W[rows][cols] */
static void multiply(double *out, const double *w, const double *x, int rows, int cols)
{
	for (int r = 0; r < rows; r++) {
		out[r] = 0.0;
		for (int c = 0; c < cols; c++)
			out[r] += w[r * cols + c] * x[c];
	}
}

/* apply_rotary_pos_emb: x cos + rotate_half(x) sin, rotate_half(x) = (-x2, x1) */
static void rotate(double *x, int heads, int dim, int position, double theta)
{
	for (int h = 0; h < heads; h++, x += dim)
		for (int i = 0; i < dim / 2; i++) {
			double angle = position * pow(theta, -2.0 * i / dim);
			double x1 = x[i], x2 = x[i + dim / 2];
			x[i] = x1 * cos(angle) - x2 * sin(angle);
			x[i + dim / 2] = x2 * cos(angle) + x1 * sin(angle);
		}
}

/* Token t of one head attends to the keys 0 .. t. */
static void attend(double *out, const double *q, matrix k, matrix v, int t, int kv_at, int dim)
{
	double weights[MAX_TOKENS], total = 0.0;
	for (int s = 0; s <= t; s++) {
		double score = 0.0;
		for (int i = 0; i < dim; i++)
			score += q[i] * k[s][kv_at + i] / sqrt(dim);
		weights[s] = exp(score);
		total += weights[s];
	}
	for (int i = 0; i < dim; i++) {
		out[i] = 0.0;
		for (int s = 0; s <= t; s++)
			out[i] += weights[s] / total * v[s][kv_at + i];
	}
}

static void attention(const struct wlb_parameters *p, int l, matrix x, int length)
{
	static matrix q, k, v;
	const struct wlb_model *m = &p->shape;
	int h = (int)m->hidden_size, dim = (int)m->head_dim;
	int heads = (int)m->num_attention_heads, kv_heads = (int)m->num_key_value_heads;
	for (int t = 0; t < length; t++) {
		double norm[MAX_WIDTH];
		rms_norm(norm, x[t], weight(p, l, "input_layernorm"), h, m->rms_norm_eps);
		multiply(q[t], weight(p, l, "self_attn.q_proj"), norm, heads * dim, h);
		multiply(k[t], weight(p, l, "self_attn.k_proj"), norm, kv_heads * dim, h);
		multiply(v[t], weight(p, l, "self_attn.v_proj"), norm, kv_heads * dim, h);
		rotate(q[t], heads, dim, t, m->rope_theta);
		rotate(k[t], kv_heads, dim, t, m->rope_theta);
	}
	for (int t = 0; t < length; t++) {
		double joined[MAX_WIDTH], out[MAX_WIDTH];
		for (int head = 0; head < heads; head++)
			attend(joined + head * dim, q[t] + head * dim, k, v, t, head / (heads / kv_heads) * dim, dim);
		multiply(out, weight(p, l, "self_attn.o_proj"), joined, h, heads * dim);
		for (int i = 0; i < h; i++)
			x[t][i] += out[i];
	}
}

/* down(silu(gate(x)) * up(x)) */
static void mlp(const struct wlb_parameters *p, int l, double *x)
{
	const struct wlb_model *m = &p->shape;
	int h = (int)m->hidden_size, f = (int)m->intermediate_size;
	double norm[MAX_WIDTH], gate[MAX_WIDTH], up[MAX_WIDTH], out[MAX_WIDTH];
	rms_norm(norm, x, weight(p, l, "post_attention_layernorm"), h, m->rms_norm_eps);
	multiply(gate, weight(p, l, "mlp.gate_proj"), norm, f, h);
	multiply(up, weight(p, l, "mlp.up_proj"), norm, f, h);
	for (int i = 0; i < f; i++)
		up[i] *= gate[i] / (1.0 + exp(-gate[i]));
	multiply(out, weight(p, l, "mlp.down_proj"), up, h, f);
	for (int i = 0; i < h; i++)
		x[i] += out[i];
}

static double cross_entropy(const double *logits, int vocab, int target)
{
	double total = 0.0;
	for (int i = 0; i < vocab; i++)
		total += exp(logits[i]);
	return log(total) - logits[target];
}

double reference_loss(const struct wlb_parameters *p, const int32_t *tokens, int length)
{
	static matrix x;
	const struct wlb_model *m = &p->shape;
	int h = (int)m->hidden_size, vocab = (int)m->vocab_size;
	const double *embedding = weight(p, -1, "model.embed_tokens");
	const double *head = m->tie_word_embeddings ? embedding : weight(p, -1, "lm_head");
	double sum = 0.0;
	for (int t = 0; t < length; t++)
		memcpy(x[t], embedding + tokens[t] * h, (size_t)h * sizeof(double));
	for (int l = 0; l < m->num_hidden_layers; l++) {
		attention(p, l, x, length);
		for (int t = 0; t < length; t++)
			mlp(p, l, x[t]);
	}
	for (int t = 0; t < length; t++) {
		double norm[MAX_WIDTH], logits[MAX_WIDTH];
		rms_norm(norm, x[t], weight(p, -1, "model.norm"), h, m->rms_norm_eps);
		multiply(logits, head, norm, vocab, h);
		sum += cross_entropy(logits, vocab, tokens[t + 1]);
	}
	return sum;
}
