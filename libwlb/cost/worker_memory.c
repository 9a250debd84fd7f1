/*
 * The sizes of the buffers that wlb-worker allocates: worker/model/activations.c, worker/model/parameters.c and
 * worker/optimizer. The sizes are those of the first tensor-parallel rank, which has the most rows of the vocabulary
 * and columns of the MLP where they do not divide.
 */
#include "libwlb/cost/worker_memory.h"

#include <math.h>

#include "libwlb/cost/plan_sizes.h"

enum {
	LOGIT_BYTES = 512 << 20, /* of the logits that there are at once */
	LEAST_LOGIT_ROWS = 128,
	STATISTICS = 3, /* of a row of logits, from each tensor-parallel rank */
};

/* What the sizes of buffers depend on. */
struct sizes {
	const struct wlb_plan *plan;
	const struct wlb_model *model;
	int32_t stage;
	int is_last;
	double element, master; /* bytes of an element in use, and of a statistic or moment */
	double rows, share;     /* of a micro-batch on a context-parallel rank, and on a tensor-parallel rank of it */
	int has_exchanges;      /* of keys and values */
	double key_ranks;       /* for whose keys and values there is memory */
	double keys;            /* tokens of a rank's documents on all their ranks */
	double hidden, q, kv, mlp, vocab; /* widths on a tensor-parallel rank; hidden_size is whole */
	double heads;
	double groups; /* of queries and keys that are normed */
	int norms_before, norms_after;
};

int64_t wlb_logit_rows(int64_t rows, int64_t vocab_size, int32_t tp, int64_t element_bytes)
{
	int64_t row_bytes = (vocab_size + tp - 1) / tp * element_bytes;
	int64_t most = LOGIT_BYTES / (row_bytes > 0 ? row_bytes : 1);
	most = most > LEAST_LOGIT_ROWS ? most : LEAST_LOGIT_ROWS;
	return rows < most ? rows : most;
}

/* Queries and keys of a row that a tensor-parallel rank norms: their heads, or one each of all heads together. */
static double norm_groups(const struct wlb_plan *plan, const struct wlb_model *m)
{
	double heads = (double)m->num_attention_heads / plan->layout.tp;
	switch (wlb_family(m->family)->qk_norm) {
	case WLB_QK_NORM_HEAD:
		return heads + wlb_plan_kv_width(plan, m) / (double)m->head_dim;
	case WLB_QK_NORM_ALL:
		return 2.0;
	case WLB_QK_NORM_NONE:
		break;
	}
	return 0.0;
}

static struct sizes sizes_of(const struct wlb_plan *plan, const struct wlb_model *m, double element_bytes,
                             int32_t stage, int64_t tokens)
{
	double tp = (double)plan->layout.tp, rank_tokens = ceil((double)tokens / plan->layout.cp);
	double share = ceil(rank_tokens / tp), key_ranks = plan->dynamic_cp > 0 ? plan->dynamic_cp : plan->layout.cp;
	return (struct sizes){
		.plan = plan,
		.model = m,
		.stage = stage,
		.is_last = stage == plan->layout.pp - 1,
		.element = element_bytes,
		.master = fmax(element_bytes, 4.0),
		.rows = share * tp,
		.share = share,
		.has_exchanges = wlb_plan_document_ranks(plan) > 1,
		.key_ranks = key_ranks,
		.keys = plan->dynamic_cp > 0 ? key_ranks * rank_tokens : (double)tokens,
		.hidden = (double)m->hidden_size,
		.q = (double)(m->num_attention_heads * m->head_dim) / tp,
		.kv = wlb_plan_kv_width(plan, m),
		.mlp = ceil((double)m->intermediate_size / tp),
		.vocab = ceil((double)m->vocab_size / tp),
		.heads = (double)m->num_attention_heads / tp,
		.groups = norm_groups(plan, m),
		.norms_before = wlb_family(m->family)->norms != WLB_NORMS_AFTER,
		.norms_after = wlb_family(m->family)->norms != WLB_NORMS_BEFORE,
	};
}

/* Bytes that each layer keeps for a micro-batch unless whole layers are computed again. */
static double kept_bytes(const struct sizes *s)
{
	double elements = s->rows * (2.0 * s->q + 2.0 * s->kv + 2.0 * s->mlp) + s->share * s->hidden;
	double norms = 2.0 * (s->norms_before + s->norms_after);
	if (s->groups > 0.0) /* queries and keys before their norms */
		elements += s->rows * (s->q + s->kv);
	if (s->norms_after) /* what attention and MLP gave */
		elements += 2.0 * s->share * s->hidden;
	return s->element * elements + s->master * (norms * s->share + s->rows * (s->heads + s->groups));
}

/* Bytes that each layer keeps only where nothing is computed again. */
static double recomputed_bytes(const struct sizes *s)
{
	double gathered = s->has_exchanges ? 2.0 * s->keys * s->kv : 0.0;
	double norms = s->norms_before ? 2.0 * s->share * s->hidden : 0.0;
	return s->element * (norms + gathered);
}

/* Bytes of the activations of a chunk's layers for a micro-batch. */
static double layers_bytes(const struct sizes *s)
{
	int32_t chunk = wlb_plan_largest_chunk(s->plan, s->model, s->stage);
	double layers = (double)wlb_plan_layers(s->plan, s->model, s->stage, chunk);
	double bytes = s->element * s->share * s->hidden * fmax(0.0, layers - 1.0); /* of the others' inputs */
	if (s->plan->recompute == WLB_RECOMPUTE_NONE)
		return bytes + layers * (kept_bytes(s) + recomputed_bytes(s));
	if (s->plan->recompute == WLB_RECOMPUTE_FULL)
		layers -= wlb_plan_recomputed_layers(s->plan, s->model, s->stage, chunk);
	return bytes + layers * kept_bytes(s);
}

/* Bytes of a chunk's input and output, which messages use beyond its passes; with a shared head also of the normed
 * rows. */
static double slot_bytes(const struct sizes *s)
{
	double rows = s->element * s->share * s->hidden;
	return s->plan->shared_head && s->is_last ? 3.0 * rows + s->master * s->share : 2.0 * rows;
}

/* Of all chunks in flight, and of the layer that is computed again. Messages of a pipeline have one slot more. */
static double activation_bytes(const struct sizes *s)
{
	double in_flight = (double)wlb_plan_in_flight(s->plan, s->stage), slots = in_flight + (s->plan->layout.pp > 1);
	double bytes = in_flight * layers_bytes(s) + slots * slot_bytes(s);
	if (s->plan->recompute == WLB_RECOMPUTE_FULL)
		bytes += kept_bytes(s);
	if (s->plan->recompute != WLB_RECOMPUTE_NONE)
		bytes += recomputed_bytes(s);
	return bytes;
}

/* Bytes that only layers use: the gradients in attention, in whose place is the gated product of the MLP, and the
 * angles of the rotary embeddings. */
static double layer_bytes(const struct sizes *s)
{
	double gradients = s->element * (2.0 * s->q + 2.0 * s->kv) + s->master * s->groups;
	return s->rows * fmax(gradients, s->element * s->mlp) +
	       s->master * s->rows * (double)(wlb_model_angle_kinds(s->model) * wlb_model_rotary_dim(s->model));
}

/* Rows of a tensor-parallel rank of which the stage computes the head, where stages share it. */
static double head_rows(const struct sizes *s)
{
	return ceil(s->share / s->plan->layout.pp);
}

/* Bytes of logits and their statistics beyond those of layer_bytes(), in whose place they are. */
static double logit_bytes(const struct sizes *s)
{
	int32_t tp = s->plan->layout.tp;
	if (!s->is_last && !s->plan->shared_head)
		return 0.0;
	double rows = (double)wlb_logit_rows((int64_t)(s->plan->shared_head ? head_rows(s) : s->rows),
	                                     s->model->vocab_size, tp, (int64_t)s->element);
	double bytes = s->element * rows * s->vocab + s->master * tp * rows * STATISTICS;
	return fmax(0.0, bytes - layer_bytes(s));
}

/* Bytes that there are once for all layers and micro-batches. */
static double buffer_bytes(const struct sizes *s)
{
	const struct wlb_layout *l = &s->plan->layout;
	double elements = s->share * s->hidden; /* the gradient of a norm's output */
	if (l->tp > 1)                          /* gathered input of a product, and what is scattered after it */
		elements += 2.0 * s->rows * s->hidden;
	if (s->has_exchanges) /* gradients of all keys and values, and as they are exchanged */
		elements += 2.0 * s->kv * (fmax(s->keys, s->rows) + s->key_ranks * s->rows);
	if (s->is_last) /* of the last norm */
		elements += s->share * s->hidden;
	if (s->plan->shared_head) /* rows of the head and their gradients */
		elements += s->hidden * (s->is_last ? s->share : 2.0 * head_rows(s));
	return s->element * elements + (s->is_last ? s->master * s->share : 0.0) + layer_bytes(s);
}

/* Elements that a rank has of gradients: of all parameters, or with ZeRO stage 2 of the parameters whose gradients are
 * kept and of the two neighbours that are largest among the other buckets (worker/model/buckets.c). *part: of the
 * largest of these, which is received and added where the step has several micro-batches. */
static double gradient_elements(const struct sizes *s, double parameters, double *part)
{
	const struct wlb_plan *plan = s->plan;
	const struct wlb_model *m = s->model;
	double shards = (double)plan->layout.dp * plan->layout.cp;
	*part = 0.0;
	if (plan->zero_stage < 2 || shards == 1.0)
		return parameters;
	double layers = (double)wlb_plan_stage_layers(plan, m, s->stage);
	double matrices = wlb_plan_stage_matrices(plan, m, s->stage) / layers;
	if (m->num_key_value_heads < plan->layout.tp) /* several ranks have the same keys and values: these are kept */
		matrices -= 2.0 * s->hidden * s->kv;
	double table = m->tie_word_embeddings ? 0.0 : (double)m->vocab_size * s->hidden / plan->layout.tp;
	double together = fmin(layers, ceil(WLB_BUCKET_ELEMENTS / matrices));
	double bucket = together * matrices, next = fmin(layers - together, together) * matrices;
	if (plan->micro_batches > 1)
		*part = fmax(table, bucket) / shards;
	return parameters - layers * matrices - 2.0 * table + bucket + fmax(table, next);
}

struct wlb_memory wlb_worker_memory(const struct wlb_plan *plan, const struct wlb_model *model, double element_bytes,
                                    double gradient_bytes, int32_t stage, int64_t tokens)
{
	const struct sizes s = sizes_of(plan, model, element_bytes, stage, tokens);
	double parameters = wlb_plan_stage_parameters(plan, model, stage);
	double shards = (double)plan->layout.dp * plan->layout.cp;
	/* Adam's two moments and, where the weights in use are smaller than the masters, what is left of these. */
	double states = 2.0 * s.master + fmax(0.0, s.master - element_bytes);
	double part, gradients = gradient_elements(&s, parameters, &part);
	double sums = shards > 1.0 ? parameters / shards : 0.0; /* this rank's part of the reduced gradients */
	double saved = 3.0 * s.master * parameters / shards;    /* masters and two moments */
	return (struct wlb_memory){
		.weights = element_bytes * parameters,
		.gradients = gradient_bytes * gradients,
		.optimizer = states * parameters / shards,
		.activations = activation_bytes(&s),
		.logits = logit_bytes(&s),
		.buffers = buffer_bytes(&s) + gradient_bytes * (sums + part),
		.saved = saved,
		/* Two near checkpoints while the second is written, each with the copy of another rank, which is also
	         * received before it is written. */
		.saved_local = saved + 2.0 * 2.0 * saved + saved,
	};
}
