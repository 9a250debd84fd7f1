#include "worker/model/qkv_vectors.h"

#include "worker/model/gradients.h"
#include "worker/model/norm.h"

/* Columns of qkv with a bias that lies in one place: all three, or where several ranks hold keys and values or a part
 * alone is wanted, queries apart. */
struct biased {
	int first, last; /* tensors */
	int64_t column, width;
};

static int list_biased(const struct wlb_parameters *p, const struct wlb_layer_tensors *w, enum wlb_qkv parts,
                       struct biased list[2])
{
	int64_t q = p->heads * p->shape.head_dim, kv = p->kv_heads * p->shape.head_dim;
	int count = 0;
	if (w->q_bias < 0)
		return 0;
	if (parts == WLB_QKV && p->tensors[w->q_bias].bucket == p->tensors[w->k_bias].bucket) {
		list[0] = (struct biased){w->q_bias, w->v_bias, 0, q + 2 * kv};
		return 1;
	}
	if (parts & WLB_QUERIES)
		list[count++] = (struct biased){w->q_bias, w->q_bias, 0, q};
	if (parts & WLB_KEYS_AND_VALUES)
		list[count++] = (struct biased){w->k_bias, w->v_bias, q, 2 * kv};
	return count;
}

static void add_biases(struct wlb_transformer *t, const struct wlb_layer_tensors *w, enum wlb_qkv parts, void *qkv,
                       int64_t n)
{
	const struct wlb_parameters *p = t->parameters;
	int64_t stride = p->heads * p->shape.head_dim + 2 * wlb_kv_width(t);
	struct biased list[2];
	int count = list_biased(p, w, parts, list);
	for (int i = 0; i < count; i++)
		t->device->ops->add_bias(t->device, wlb_element(t->device->compute, qkv, list[i].column), stride,
		                         wlb_weight(p, list[i].first), n, list[i].width);
}

static void biases_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w, void *d_qkv, int64_t n)
{
	const struct wlb_parameters *p = t->parameters;
	int64_t stride = p->heads * p->shape.head_dim + 2 * wlb_kv_width(t);
	struct biased list[2];
	int count = list_biased(p, w, WLB_QKV, list);
	for (int i = 0; i < count; i++) {
		for (int tensor = list[i].first; tensor <= list[i].last; tensor++)
			wlb_gradient_to_add(p, tensor);
		t->device->ops->bias_backward(t->device, wlb_gradient(p, list[i].first),
		                              wlb_element(t->device->compute, d_qkv, list[i].column), stride, n,
		                              list[i].width);
	}
}

/* Queries or keys, which are normed alike. */
struct normed {
	int tensor;
	int64_t column; /* in qkv, and in those before the norms */
	int64_t sums;   /* where those of this kind begin */
	struct wlb_norm_groups groups;
};

/* The sum of all heads is that of tp ranks, which have as many columns each: of keys that several of them hold, each
 * adds the squares, or a part of the products. */
static struct wlb_norm_groups groups_of(const struct wlb_transformer *t, int groups, int64_t heads, int64_t n)
{
	const struct wlb_model *m = &t->parameters->shape;
	int64_t width = heads * m->head_dim / (groups > 0 ? groups : 1);
	int is_all = wlb_family(m->family)->qk_norm == WLB_QK_NORM_ALL;
	return (struct wlb_norm_groups){.rows = n,
	                                .groups = groups,
	                                .width = width,
	                                .total = (double)width * (is_all ? t->tp_size : 1),
	                                .epsilon = m->rms_norm_eps,
	                                .weight_addend = wlb_norm_addend(m)};
}

static void list_normed(const struct wlb_transformer *t, const struct wlb_layer_tensors *w, int64_t n,
                        struct normed list[2])
{
	const struct wlb_parameters *p = t->parameters;
	int queries = wlb_query_groups(p), keys = wlb_key_groups(p);
	list[0] = (struct normed){w->q_norm, 0, 0, groups_of(t, queries, p->heads, n)};
	list[1] = (struct normed){w->k_norm, p->heads * p->shape.head_dim, n * queries,
	                          groups_of(t, keys, p->kv_heads, n)};
}

/* Adds the sums of all tensor-parallel ranks, where a norm is of the heads of all of them: of queries, of keys, or of
 * both. */
static int add_sums(const struct wlb_transformer *t, void *sums, int kinds, int64_t n, struct wlb_error *error)
{
	if (wlb_family(t->parameters->shape.family)->qk_norm != WLB_QK_NORM_ALL || t->tp_size == 1)
		return 0;
	return wlb_comm_all_reduce(t->tp, sums, (size_t)(kinds * n), t->device->master, WLB_SUM, error);
}

/* The rows of a piece: of qkv, of queries and keys before the norms, and of their sums, of which those of the queries
 * of a piece come first, then those of its keys. */
struct rows {
	void *qkv, *raw_qk, *sums;
	int64_t n;
};

static struct rows rows_of(const struct wlb_transformer *t, const struct wlb_layer_activations *a, void *qkv,
                           void *sums, struct wlb_tp_piece piece)
{
	const struct wlb_parameters *p = t->parameters;
	enum wlb_dtype compute = t->device->compute;
	int64_t kv = wlb_kv_width(t), width = p->heads * p->shape.head_dim + kv;
	int64_t groups = wlb_query_groups(p) + wlb_key_groups(p);
	return (struct rows){
		.qkv = wlb_element(compute, qkv, piece.first * (width + kv)),
		.raw_qk = a->raw_qk != NULL ? wlb_element(compute, a->raw_qk, piece.first * width) : NULL,
		.sums = sums != NULL ? wlb_element(t->device->master, sums, piece.first * groups) : NULL,
		.n = piece.count,
	};
}

static int norm_queries_and_keys(struct wlb_transformer *t, const struct wlb_layer_tensors *w, const struct rows *rows,
                                 enum wlb_qkv parts, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	enum wlb_dtype compute = t->device->compute, master = t->device->master;
	int64_t kv = wlb_kv_width(t), q = p->heads * p->shape.head_dim, width = q + kv;
	int first = parts & WLB_QUERIES ? 0 : 1, end = parts & WLB_KEYS_AND_VALUES ? 2 : 1;
	struct normed list[2];
	list_normed(t, w, rows->n, list);
	ops->gather_rows(t->device, wlb_element(compute, rows->raw_qk, list[first].column), width,
	                 wlb_element(compute, rows->qkv, list[first].column), width + kv, NULL, rows->n,
	                 (end == 2 ? width : q) - list[first].column);
	for (int i = first; i < end; i++) {
		const void *x = wlb_element(compute, rows->raw_qk, list[i].column);
		ops->group_norm_sums(t->device, wlb_element(master, rows->sums, list[i].sums), x, width, x, width, NULL,
		                     &list[i].groups);
	}
	if (add_sums(t, wlb_element(master, rows->sums, list[first].sums), end - first, rows->n, error) < 0)
		return -1;
	for (int i = first; i < end; i++)
		ops->group_norm_forward(t->device, wlb_element(compute, rows->qkv, list[i].column), width + kv,
		                        wlb_element(compute, rows->raw_qk, list[i].column), width,
		                        wlb_element(master, rows->sums, list[i].sums), wlb_weight(p, list[i].tensor),
		                        &list[i].groups);
	return 0;
}

/* `squares` are those of the forward pass; the sums of `rows` are of products. */
static int norms_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w, const struct rows *rows,
                          const void *squares, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	enum wlb_dtype compute = t->device->compute, master = t->device->master;
	int64_t kv = wlb_kv_width(t), width = p->heads * p->shape.head_dim + kv;
	struct normed list[2];
	list_normed(t, w, rows->n, list);
	for (int i = 0; i < 2; i++)
		ops->group_norm_sums(t->device, wlb_element(master, rows->sums, list[i].sums),
		                     wlb_element(compute, rows->raw_qk, list[i].column), width,
		                     wlb_element(compute, rows->qkv, list[i].column), width + kv,
		                     wlb_weight(p, list[i].tensor), &list[i].groups);
	if (add_sums(t, rows->sums, 2, rows->n, error) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		ops->group_norm_backward(
			t->device, wlb_element(compute, rows->qkv, list[i].column), width + kv,
			wlb_gradient_to_add(p, list[i].tensor), wlb_element(compute, rows->raw_qk, list[i].column),
			width, wlb_element(master, (void *)squares, list[i].sums),
			wlb_element(master, rows->sums, list[i].sums), wlb_weight(p, list[i].tensor), &list[i].groups);
	return 0;
}

int wlb_qkv_vectors(struct wlb_transformer *t, const struct wlb_layer_tensors *w, const struct wlb_layer_activations *a,
                    enum wlb_qkv parts, struct wlb_tp_piece piece, struct wlb_error *error)
{
	const struct rows rows = rows_of(t, a, a->qkv, a->qk_squares, piece);
	add_biases(t, w, parts, rows.qkv, rows.n);
	return w->q_norm < 0 ? 0 : norm_queries_and_keys(t, w, &rows, parts, error);
}

int wlb_qkv_vectors_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                             const struct wlb_layer_activations *a, void *d_qkv, struct wlb_tp_piece piece,
                             struct wlb_error *error)
{
	const struct rows rows = rows_of(t, a, d_qkv, t->scratch.qk_products, piece);
	const void *squares = rows_of(t, a, d_qkv, a->qk_squares, piece).sums;
	if (w->q_norm >= 0 && norms_backward(t, w, &rows, squares, error) < 0)
		return -1;
	biases_backward(t, w, rows.qkv, rows.n);
	return 0;
}
