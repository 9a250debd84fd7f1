/*
 * The parameters of a Llama-family transformer: which tensors there are, under Hugging Face's names, and the
 * two flat buffers that hold all weights and all gradients.
 */
#ifndef WLB_MODEL_H
#define WLB_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"

enum wlb_init {
	WLB_INIT_ONES,   /* norms */
	WLB_INIT_NORMAL, /* normal, init_std */
	WLB_INIT_OUTPUT, /* normal, init_std / sqrt(2 layers): what adds to the residual stream, as Megatron-LM does */
};

struct wlb_tensor {
	char name[64]; /* "model.layers.0.self_attn.q_proj.weight" */
	int64_t rows;  /* output features; a vector has its length here */
	int64_t cols;  /* input features; a vector has 1 */
	int dimensions;
	size_t offset; /* elements from the start of the flat buffers */
	enum wlb_init init;
};

/* Index into the table of tensors, for each tensor of a layer. */
struct wlb_layer_tensors {
	int input_norm;
	int q;
	int k;
	int v;
	int o;
	int post_norm;
	int gate;
	int up;
	int down;
};

struct wlb_parameters {
	struct wlb_model shape;
	struct wlb_device *device;
	struct wlb_tensor *tensors;
	int count;
	struct wlb_layer_tensors *layers;
	int embedding;
	int final_norm;
	int head;                 /* the embedding's index where the two are tied */
	size_t elements;          /* of each flat buffer, with padding between tensors (always 0) */
	size_t matrices_elements; /* matrices come first: these take weight decay, the vectors after them do not */
	void *weights;
	void *gradients;
};

/* Allocates both buffers, zeroed. NULL with the reason when memory does not suffice. */
struct wlb_parameters *wlb_parameters_new(const struct wlb_model *shape, struct wlb_device *device,
                                          struct wlb_error *error);
void wlb_parameters_free(struct wlb_parameters *parameters); /* NULL allowed */

/* Device pointers of one tensor's weights and gradients. */
void *wlb_weight(const struct wlb_parameters *parameters, int tensor);
void *wlb_gradient(const struct wlb_parameters *parameters, int tensor);

/* Fills the weights. Each is a function of seed, tensor name and element index alone, never of the layout. */
int wlb_parameters_init(struct wlb_parameters *parameters, uint64_t seed, double init_std, struct wlb_error *error);

#endif
