/* A model small enough to differentiate by hand, on the CPU in float64, and documents for it. */
#ifndef WLB_TEST_TINY_H
#define WLB_TEST_TINY_H

#include "worker/model/transformer.h"

enum { TINY_VOCAB = 11, TINY_MAX_TOKENS = 16 };

struct tiny {
	struct wlb_device *device;
	struct wlb_parameters *parameters;
	struct wlb_activations *activations;
	struct wlb_micro_batch *batch;
	double *loss_sum;
};

/* Tokens of a document: one more than its inputs. */
struct tiny_document {
	int32_t length; /* inputs */
	int32_t tokens[TINY_MAX_TOKENS];
};

extern const struct tiny_document tiny_documents[3];

/* Grouped queries, heads x head_dim other than hidden_size. Ends the test on failure. */
struct tiny tiny_open(int tied);
void tiny_close(struct tiny *tiny);

/* Summed loss of one pass over these documents in one micro-batch; adds gradients times `scale` where asked. */
double tiny_pass(struct tiny *tiny, const struct tiny_document *documents, int count, double scale, int gradients);

#endif
