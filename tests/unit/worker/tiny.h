/* Opens a model small enough to differentiate numerically, on the CPU in float64, in any layout, with documents for it.
 */
#ifndef TESTS_UNIT_WORKER_TINY_H
#define TESTS_UNIT_WORKER_TINY_H

#include "tests/unit/worker/tiny_batch.h"
#include "worker/model/transformer.h"

enum { TINY_VOCAB = 11, TINY_TOKENS = 13 };

/* Where members are 0, degrees are 1, there is one chunk, and nothing is recomputed. */
struct tiny_setup {
	struct wlb_comm *world; /* of tp x cp ranks; NULL: this rank alone */
	int tied;
	enum wlb_family family;
	int layers; /* 0: two */
	int tp;
	int cp;
	int pp; /* the parameters are those of `stage`; no other rank is needed */
	int stage;
	int interleave;
	enum wlb_recompute recompute;
	int recompute_layers;
	int slots;
	int halved_rows; /* of micro-batches that tiny_batch_halve is called for, the least */
	int max_tokens;  /* limit of the buffers; 0: TINY_TOKENS */
};

struct tiny {
	struct wlb_device *device;
	struct wlb_comm *alone; /* where world is NULL */
	struct wlb_groups *groups;
	struct wlb_parameters *parameters;
	struct wlb_transformer *transformer;
	double *loss_sum;
};

extern const struct tiny_document tiny_documents[3]; /* TINY_TOKENS */

/* Grouped queries, heads x head_dim other than hidden_size, four divides the heads and no other size. Ends the test on
 * failure. */
struct tiny tiny_open(const struct tiny_setup *setup);
void tiny_close(struct tiny *tiny);

/* Fills the memory of activations with NaN, in place of uninitialized values. */
void tiny_poison(struct tiny *tiny);

/* Forward, loss and backward pass through the one chunk of a model that is not in stages: this rank's summed loss; adds
 * gradients, times scale. */
double tiny_pass(struct tiny *tiny, const struct wlb_micro_batch *batch, double scale);
/* Does the same with documents in one micro-batch. */
double tiny_pass_documents(struct tiny *tiny, const struct tiny_document *documents, int count, double scale);

/* Returns the index of a tensor by name, -1 where this rank has none. */
int tiny_tensor(const struct wlb_parameters *parameters, const char *name);

/* Returns the difference of value and expected, relative where |expected| is above 1; infinite for NaN. */
double tiny_difference(double value, double expected);

#endif
