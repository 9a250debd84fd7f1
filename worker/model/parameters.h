/*
 * The parameters of a transformer that one rank holds: its tensors, with Hugging Face's names, its block
 * of each, and the two flat buffers with all weights and all gradients.
 *
 * Tensor parallelism (Shoeybi et al. 2019, Megatron-LM): q, k, v, gate and up are cut by rows (whole heads), o and down
 * by columns, embedding and head by rows of the vocabulary; norms are whole on every rank. Where there are fewer key
 * heads than ranks, tp / kv_heads neighbours hold the same head. Rows that do not divide (vocabulary, intermediate
 * size) are cut as evenly as they can be. A pipeline stage holds the layers of its chunks; the first place holds the
 * embedding, the last the final norm and the head; both hold a tied embedding. Where the plan shares the head all
 * stages hold it, or the tied embedding.
 *
 * The flat buffers are made of buckets, each padded so that it divides evenly among the ranks of the data group.
 *
 * With ZeRO stage 2 (Rajbhandari et al. 2020) the buffer of gradients is smaller: a bucket of matrices is reduced to
 * the ranks that own its parts after each backward pass, so that its memory is needed from its first layer until the
 * bucket after the next one begins. Such buckets lie by turns at the two ends of one piece of memory, as large as two
 * neighbours need. Buckets of all layers together (norms, biases, shared keys and values), and a tied embedding, to
 * which both ends of the model add, are as with stage 1.
 */
#ifndef WORKER_MODEL_PARAMETERS_H
#define WORKER_MODEL_PARAMETERS_H

#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"
#include "worker/model/parameter_table.h"

/* The parameters of the rank with coordinates `coords` under `plan`, which must have passed wlb_plan_check. Allocates
 * both buffers, zeroed. Returns NULL with the reason if out of memory. */
struct wlb_parameters *wlb_parameters_new(const struct wlb_model *shape, const struct wlb_plan *plan,
                                          const struct wlb_coordinates *coords, struct wlb_device *device,
                                          struct wlb_error *error);
/* The table of all tensors of a model, as one rank alone has them, without buckets and buffers. */
struct wlb_parameters *wlb_parameters_of_model(const struct wlb_model *shape, struct wlb_device *device,
                                               struct wlb_error *error);
void wlb_parameters_free(struct wlb_parameters *parameters); /* NULL allowed */

/* Device pointers of one tensor's weights and gradients. */
void *wlb_weight(const struct wlb_parameters *parameters, int tensor);
void *wlb_gradient(const struct wlb_parameters *parameters, int tensor);

/* Sets a tensor's weights from values_host (master), rounded to compute. Returns -1 if out of memory. */
int wlb_weight_set(const struct wlb_parameters *parameters, int tensor, const void *values_host,
                   struct wlb_error *error);
/* The same for a range of its block's elements alone. */
int wlb_weight_set_range(const struct wlb_parameters *parameters, int tensor, struct wlb_element_range elements,
                         const void *values_host, struct wlb_error *error);

/* Receives the values (master, host) of a tensor's block. Returns 0, or -1 with the reason. */
typedef int wlb_tensor_store(void *context, int tensor, const void *values_host, struct wlb_error *error);

/* Draws initial weights, and gives those of each tensor to `store`; NULL: sets the weights alone. Each weight depends
 * only on the seed, the name of the tensor and the index in the global tensor, never on the layout or the device. */
int wlb_parameters_init(struct wlb_parameters *parameters, uint64_t seed, double init_std, wlb_tensor_store *store,
                        void *context, struct wlb_error *error);

#endif
