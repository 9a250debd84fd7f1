/*
 * Seconds of the operations of a layer, of the head and of the embedding on one GPU: one list of operations for the
 * simulator, the lower bound of the search and the time of a document; internal.
 *
 * `tokens` are the rows of a context-parallel rank. The matrices between two tensor-parallel collectives have all of
 * them; the residual stream and the norms have 1 / tp of them (Korthikanti et al. 2022).
 */
#ifndef LIBWLB_COST_LAYER_H
#define LIBWLB_COST_LAYER_H

#include "libwlb/cost/layer_cost.h"

/* Products and elementwise operations of the mean layer, of which the first may have no experts: without attention and
 * communication. */
struct wlb_seconds wlb_layer_products_s(const struct wlb_layer_cost *cost, double tokens);
/* Parts of a layer that wlb-worker computes beside communication: in the forward pass, the product of the queries and
 * their rotary embedding; in the backward pass, the gradient of the weights of attention's output. */
double wlb_layer_queries_s(const struct wlb_layer_cost *cost, double tokens);
double wlb_layer_output_d_w_s(const struct wlb_layer_cost *cost, double tokens);
struct wlb_seconds wlb_layer_elementwise_s(const struct wlb_layer_cost *cost, double tokens);

/* Seconds in which the rows of a rank's tokens are sent to the ranks of their experts and back, in one direction of the
 * mean layer; 0 where ep is 1. A rank has tokens / tp of the rows and sends num_experts_per_tok copies of each
 * (Megatron-LM's dispatcher "alltoall"), or with rows_by_node one to each node, whose ranks copy it by node_link
 * (DeepEP, csrc/kernels/internode.cu: a row on the network tells which ranks of the node it is for), or with
 * rows_by_rank one to each rank too (DeepEP's branch hybrid-ep: sparse_to_dense_map has a place for each row and rank).
 * The ranks of a group are neighbours but for tp, as Megatron-LM places them. */
double wlb_layer_exchange_s(const struct wlb_layer_cost *cost, double tokens, int crosses_switch);

/* 1 where the exchange runs beside the computation of another micro-batch in the other direction, by the rules of
 * Megatron-LM's --overlap-moe-expert-parallel-comm (core/transformer/transformer_config.py), else 0. The second is the
 * computation that is lost beside an exchange of exchange_s, whose kernels occupy exchange_processors. */
int wlb_layer_hides_exchange(const struct wlb_layer_cost *cost);
double wlb_layer_exchange_lost_s(const struct wlb_layer_cost *cost, double exchange_s);

/* Bytes of an element that tensor-parallel ranks gather: the inputs of products and the gradients of their outputs are
 * cast before, where ranks have shares of the rows (Transformer Engine's Linear; TorchTitan with scales of tensors). */
double wlb_layer_gathered_bytes(const struct wlb_layer_cost *cost);

/* Seconds of the angles of the rotary embeddings, which wlb-worker computes once in a pass through a chunk's layers, in
 * either direction; Megatron-LM keeps them. Tensor parallelism does not divide them. */
double wlb_angles_s(const struct wlb_layer_cost *cost, double tokens);

/* Seconds of the forward operations that the modules of the plan repeat in the backward pass of the mean layer, where
 * it is not recomputed as a whole: without attention, whose time backward has it, and communication. */
double wlb_layer_modules_s(const struct wlb_layer_cost *cost, double tokens);

/* Seconds of the last product of a layer and the sum after it, forward, in the mean layer: of layers alone where no
 * operation of the backward pass reads their results, since experts or a norm after the product do. The second is a
 * lower bound, as those below. */
double wlb_layer_last_s(const struct wlb_layer_cost *cost, double tokens);
double wlb_layer_last_least_s(const struct wlb_layer_cost *cost, double tokens);

/* Attention of the mean layer, of which some may have a window: q_tokens queries of one document, the last of k_tokens
 * keys. Where the plan recomputes it and not the layer, the backward pass has the forward pass once more. */
struct wlb_seconds wlb_layer_attention_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens);

/* The final norm, the product with the vocabulary and the loss; the rows of the embedding. */
struct wlb_seconds wlb_head_s(const struct wlb_layer_cost *cost, double tokens);
struct wlb_seconds wlb_embedding_s(const struct wlb_layer_cost *cost, double tokens);

/* Returns of how many parts of so many tokens wlb-worker has the logits one after the other; 1 with other trainers. */
double wlb_head_parts(const struct wlb_layer_cost *cost, double tokens);

/* Seconds of tensor-parallel communication of wlb-worker's head that nothing hides, where its rows are in so many
 * pieces of these tokens: gather_s and reduce_s are of one, of whose last part the gradient of the matrix is computed
 * beside its sum. Of two, one's calls run beside the other's products (worker/model/head.c). */
struct wlb_seconds wlb_head_waits_s(const struct wlb_layer_cost *cost, double pieces, double tokens, double gather_s,
                                    double reduce_s);

/* Lower bounds of the time of the products and elementwise operations of one layer, and of the head, that hold for
 * every number of micro-batches that the tokens are in. */
struct wlb_seconds wlb_layer_least_s(const struct wlb_layer_cost *cost, double tokens);
struct wlb_seconds wlb_head_least_s(const struct wlb_layer_cost *cost, double tokens);

/* The same for the attention of one layer over `pairs` pairs of a query and a key that it attends to. */
struct wlb_seconds wlb_layer_attention_least_s(const struct wlb_layer_cost *cost, double pairs);

/* Returns by how much the computation of the slowest rank takes longer than the times here, at least 1. */
double wlb_slowest_rank(const struct wlb_layer_cost *cost);

/* Seconds of the optimizer's step, with the parameters that the rank updates and those whose gradients it holds. */
double wlb_optimizer_s(const struct wlb_layer_cost *cost, double updated, double held);

/* Of these, wlb-worker's seconds of the norm of the gradients, before the update of weights. */
double wlb_optimizer_norm_s(const struct wlb_layer_cost *cost, double updated);

#endif
