/* The final norm, the product with the vocabulary and the loss. Logits are computed of a part of the rows at a time: of
 * all rows they would be the largest buffer of the last stage. */
#include "worker/model/activations.h"
#include "worker/model/gathered_weights.h"
#include "worker/model/linear.h"
#include "worker/model/norm.h"
#include "worker/model/tensor_parallel.h"

/* Rows [first, first + count) of a micro-batch. */
struct part {
	int64_t first, count;
};

/* Divides n rows into equal parts of at most logit_rows. Starts with first and count 0; returns 0 after the last. */
static int next_part(const struct wlb_transformer *t, int64_t n, struct part *part)
{
	int64_t parts = (n + t->logit_rows - 1) / t->logit_rows, rows = (n + parts - 1) / parts;
	part->first += part->count;
	part->count = n - part->first < rows ? n - part->first : rows;
	return part->count > 0;
}

/* norm[n / tp, h] = the final norm of this rank's part of n rows. The norm's weights are there afterwards. */
static int final_norm(struct wlb_transformer *t, void *norm, void *rstd, const void *x, int64_t n,
                      struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	if (wlb_weights_await(p, p->final_norm, p->final_norm, error) < 0)
		return -1;
	wlb_norm(t, norm, rstd, NULL, x, NULL, p->final_norm, n);
	return 0;
}

/* scratch.logits[rows, vocabulary of this rank] = x W^T of the head, with the model's soft cap. */
static void make_logits(struct wlb_transformer *t, const void *x, int64_t rows)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	wlb_linear(t->device, t->scratch.logits, p->vocab, x, &head, NULL, rows);
	if (p->shape.final_logit_softcapping > 0.0)
		t->device->ops->softcap(t->device, t->scratch.logits, p->shape.final_logit_softcapping,
		                        rows * p->vocab);
}

/* Replaces scratch.logits of a part by their gradient and adds to the loss. The ranks' slices of the vocabulary are
 * combined through three numbers a row. */
static int cross_entropy(struct wlb_transformer *t, const int32_t *targets, int64_t rows, double *loss_sum,
                         double scale, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	void *logits = t->scratch.logits, *all = t->scratch.statistics;
	int rank = wlb_comm_rank(t->tp);
	void *own = wlb_element(t->device->master, all, rank * rows * 3);

	ops->cross_entropy_statistics(t->device, own, logits, targets, rows, p->vocab_start, p->vocab);
	if (t->tp_size > 1 && wlb_comm_all_gather(t->tp, all, own, (size_t)(rows * 3), t->device->master, error) < 0)
		return -1;
	ops->cross_entropy_gradient(t->device, rank == 0 ? loss_sum : NULL, logits, all, t->tp_size, targets, rows,
	                            p->vocab_start, p->vocab, scale, p->shape.final_logit_softcapping);
	return 0;
}

/* The loss of a part of the rows, x; scratch.logits receives their gradient. */
static int part_loss(struct wlb_transformer *t, const void *x, const int32_t *targets, int64_t rows, double *loss_sum,
                     double scale, struct wlb_error *error)
{
	make_logits(t, x, rows);
	return cross_entropy(t, targets, rows, loss_sum, scale, error);
}

/* Returns those of the rows of each tensor-parallel rank that are in the piece. */
static struct wlb_head_rows rows_in(const struct wlb_transformer *t, struct wlb_head_rows rows,
                                    struct wlb_tp_piece piece)
{
	int64_t first = piece.first / t->tp_size, end = first + piece.count / t->tp_size;
	first = first > rows.first ? first : rows.first;
	end = end < rows.first + rows.count ? end : rows.first + rows.count;
	return (struct wlb_head_rows){first, end > first ? end - first : 0};
}

/* Returns where in the micro-batch a tensor-parallel rank's rows begin, which are in the piece. */
static int64_t begin_of(const struct wlb_transformer *t, struct wlb_head_rows rows, struct wlb_tp_piece piece, int rank)
{
	return piece.first + rank * (piece.count / t->tp_size) + rows.first - piece.first / t->tp_size;
}

/* The rows of a piece in a share of the head. */
struct head_piece {
	struct wlb_tp_piece all;       /* of the micro-batch */
	struct wlb_head_rows of_ranks; /* of each tensor-parallel rank, those of the share */
	struct wlb_tp_piece rows;      /* of all ranks, those of the share, which follow those of the piece before */
	struct wlb_comm_request *gather, *sum;
};

/* What of a share all its pieces have. */
struct head_share {
	void *x, *d_x;     /* this rank's rows, and their gradient */
	void *all, *d_all; /* those of all ranks */
	const int32_t *targets;
	double *loss_sum, scale;
};

/* Of a piece whose rows are under way, starts the sum of d_x, beside which the last gradient of the matrix runs. */
static int piece_loss(struct wlb_transformer *t, const struct head_share *s, struct head_piece *piece,
                      struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_matrix head = wlb_matrix_of(p, p->head, p->head);
	/* The targets of whole shares follow each other, as the rows do. */
	int64_t n = piece->rows.count, blocks = n == piece->all.count ? 1 : t->tp_size, block = n / blocks, done = 0;
	if (wlb_comm_wait(piece->gather, error) < 0)
		return -1;
	for (int b = 0; b < blocks; b++)
		for (struct part part = {0}; next_part(t, block, &part);) {
			const int32_t *targets = s->targets + begin_of(t, piece->of_ranks, piece->all, b) + part.first;
			int64_t at = (piece->rows.first + done) * p->shape.hidden_size;
			void *x = wlb_element(t->device->compute, s->all, at);
			if (part_loss(t, x, targets, part.count, s->loss_sum, s->scale, error) < 0)
				return -1;
			wlb_linear_d_x(t->device, wlb_element(t->device->compute, s->d_all, at), 0, t->scratch.logits,
			               p->vocab, &head, part.count);
			done += part.count;
			if (done == n &&
			    wlb_tp_reduce_scatter_start(t, s->d_x, s->d_all, piece->rows, &piece->sum, error) < 0)
				return -1;
			wlb_linear_d_w(t->device, t->scratch.logits, p->vocab, x, &head, part.count);
		}
	return 0;
}

/* Collectives: the rows of A, B; the statistics of the parts of A; the sum of A; the statistics of those of B; the sum
 * of B. */
int wlb_head_share(struct wlb_transformer *t, struct wlb_head_rows rows, void *x, void *d_x,
                   const struct wlb_micro_batch *batch, double *loss_sum, double scale, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_tp_pieces pieces = wlb_tp_pieces_of(batch);
	const struct head_share s = {x,
	                             d_x,
	                             wlb_tp_rows(t, t->scratch.gathered, x),
	                             wlb_tp_rows(t, t->scratch.addend, d_x),
	                             batch->targets,
	                             loss_sum,
	                             scale};
	struct head_piece list[2] = {0};
	for (int i = 0; i < pieces.count; i++) {
		struct head_piece *piece = &list[i];
		piece->all = pieces.piece[i];
		piece->of_ranks = rows_in(t, rows, piece->all);
		piece->rows = (struct wlb_tp_piece){(piece->of_ranks.first - rows.first) * t->tp_size,
		                                    piece->of_ranks.count * t->tp_size};
		if (piece->rows.count > 0 &&
		    wlb_tp_all_gather_start(t, s.all, x, piece->rows, &piece->gather, error) < 0)
			return -1;
	}
	if (wlb_weights_await(p, p->head, p->head, error) < 0)
		return -1;
	for (int i = 0; i < pieces.count; i++)
		if (list[i].rows.count > 0 && piece_loss(t, &s, &list[i], error) < 0)
			return -1;
	return wlb_comm_wait(list[0].sum, error) < 0 || wlb_comm_wait(list[1].sum, error) < 0 ? -1 : 0;
}

/* Replaces slot->output by the gradient of the loss, from that of the normed rows. The norm's backward pass reads
 * slot->output and adds to its result, which therefore needs other memory. */
static void norm_backward(struct wlb_transformer *t, struct wlb_slot *slot, const void *d_norm, const void *rstd,
                          int64_t n)
{
	size_t bytes = wlb_bytes(t->device->compute, wlb_share_elements(t, n));
	void *d_x = t->scratch.final_norm;
	t->device->ops->zero(t->device, d_x, bytes);
	wlb_norm_backward(t, d_x, d_norm, slot->output, rstd, t->parameters->final_norm, n);
	t->device->ops->copy(t->device, slot->output, d_x, bytes);
}

int wlb_head_loss(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                  double *loss_sum, double scale, const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_head_rows all = {.count = batch->rows / t->tp_size};
	if (final_norm(t, s->final_norm, s->final_rstd, slot->output, batch->rows, error) < 0 ||
	    wlb_head_share(t, all, s->final_norm, s->d_norm, batch, loss_sum, scale, error) < 0)
		return -1;
	norm_backward(t, slot, s->d_norm, s->final_rstd, batch->rows);
	return wlb_layer_done(watch, chunk, t->parameters->chunks[chunk].layers, error);
}

int wlb_head_evaluate(struct wlb_transformer *t, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                      double *loss_sum, struct wlb_error *error)
{
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_tp_pieces pieces = wlb_tp_pieces_of(batch);
	void *all = wlb_tp_rows(t, s->gathered, s->final_norm);
	if (final_norm(t, s->final_norm, s->final_rstd, slot->output, batch->rows, error) < 0 ||
	    wlb_tp_all_gather(t, all, s->final_norm, &pieces, error) < 0 ||
	    wlb_weights_await(t->parameters, t->parameters->head, t->parameters->head, error) < 0)
		return -1;
	for (struct part part = {0}; next_part(t, batch->rows, &part);)
		if (part_loss(t, wlb_element(t->device->compute, all, part.first * t->parameters->shape.hidden_size),
		              batch->targets + part.first, part.count, loss_sum, 1.0, error) < 0)
			return -1;
	return 0;
}

struct wlb_head_rows wlb_head_rows_of(const struct wlb_transformer *t, const struct wlb_micro_batch *batch, int stage)
{
	int64_t share = batch->rows / t->tp_size, stages = t->groups->layout.pp;
	int64_t first = share * stage / stages;
	return (struct wlb_head_rows){.first = first, .count = share * (stage + 1) / stages - first};
}

int64_t wlb_head_tokens(const struct wlb_transformer *t, const struct wlb_micro_batch *batch, struct wlb_head_rows rows)
{
	const struct wlb_tp_pieces pieces = wlb_tp_pieces_of(batch);
	int64_t tokens = 0;
	for (int i = 0; i < pieces.count; i++) {
		const struct wlb_head_rows part = rows_in(t, rows, pieces.piece[i]);
		for (int rank = 0; rank < t->tp_size; rank++) {
			const int32_t *targets = batch->targets_host + begin_of(t, part, pieces.piece[i], rank);
			for (int64_t row = 0; row < part.count; row++)
				tokens += targets[row] >= 0;
		}
	}
	return tokens;
}

int wlb_head_norm(struct wlb_transformer *t, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                  struct wlb_error *error)
{
	return final_norm(t, slot->normed, slot->final_rstd, slot->output, batch->rows, error);
}

int wlb_head_own_share(struct wlb_transformer *t, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                       double *loss_sum, double scale, struct wlb_error *error)
{
	int64_t hidden = t->parameters->shape.hidden_size;
	enum wlb_dtype compute = t->device->compute;
	const struct wlb_head_rows own = wlb_head_rows_of(t, batch, t->groups->coords.pp);
	if (own.count == 0)
		return 0;
	return wlb_head_share(t, own, wlb_element(compute, slot->normed, own.first * hidden),
	                      wlb_element(compute, t->head_buffers.d_rows, own.first * hidden), batch, loss_sum, scale,
	                      error);
}

int wlb_head_norm_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot,
                           const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch,
                           struct wlb_error *error)
{
	norm_backward(t, slot, t->head_buffers.d_rows, slot->final_rstd, batch->rows);
	return wlb_layer_done(watch, chunk, t->parameters->chunks[chunk].layers, error);
}

int wlb_logits(struct wlb_transformer *t, const struct wlb_micro_batch *batch, void *out_host, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	enum wlb_dtype compute = t->device->compute;
	if (wlb_forward(t, 0, &t->slots[0], batch, error) < 0 ||
	    final_norm(t, s->final_norm, s->final_rstd, t->slots[0].output, batch->rows, error) < 0 ||
	    wlb_weights_await(p, p->head, p->head, error) < 0)
		return -1;
	for (struct part part = {0}; next_part(t, batch->rows, &part);) {
		make_logits(t, wlb_element(compute, s->final_norm, part.first * p->shape.hidden_size), part.count);
		t->device->ops->to_host(t->device, wlb_element(compute, out_host, part.first * p->vocab), s->logits,
		                        wlb_bytes(compute, part.count * p->vocab));
	}
	return t->device->ops->synchronize(t->device, error);
}
