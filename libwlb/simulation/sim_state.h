/* Declarations that the files of the simulator share; internal. */
#ifndef LIBWLB_SIMULATION_SIM_STATE_H
#define LIBWLB_SIMULATION_SIM_STATE_H

#include "libwlb/cost/layer.h"
#include "libwlb/simulation/sim_pipeline.h"
#include "libwlb/wlb.h"

/* The load of one micro-batch, in seconds: of one layer, of the head and of the embedding. Computation of a layer has
 * two values: the slowest context-parallel rank's, for which the others wait, and the mean of these ranks.
 * Communication is what is not hidden. */
struct wlb_sim_load {
	struct wlb_seconds compute, mean;
	struct wlb_seconds attention; /* in compute */
	struct wlb_seconds tp, cp;
	double recompute_s, recompute_mean_s; /* in the backward pass of a layer that is recomputed */
	double tp_recompute_s, cp_recompute_s;
	struct wlb_seconds ep;            /* as tp: rows on their way to experts and back; recomputed as often */
	double beyond_s, beyond_cp_s;     /* WLB_RECOMPUTE_FULL: the same for a layer beyond recompute_layers */
	struct wlb_seconds head, head_tp; /* of the output head, on the last stage; of a share of it, on every stage */
	struct wlb_seconds embedding, embedding_tp; /* on the first stage */
	struct wlb_seconds ends_tp; /* of rows in halves, in a pass through a chunk with layers: what its first waits
	                               for, and the next chunk for its last */
	double angles_s;   /* of the rotary embeddings, in a pass in either direction through a chunk with layers */
	double send_bytes; /* between stages, one GPU */
	double flops;      /* of the model, one forward pass, all ranks */
	int64_t tokens;
	int32_t per_document;
};

/* The keys and values that a rank gathers before attention, of one layer. */
struct wlb_sim_keys {
	double gather_s, reduce_s; /* to gather them, and to return their gradients */
	double copy_s;             /* in which wlb-worker copies the rank's own to be sent, or their gradients back */
	double bytes;
};

/* One layer of a micro-batch of all replicas, on a rank and on those that exchange keys with it in each layer, which
 * take equally long: the slowest's. */
struct wlb_sim_lane {
	struct wlb_seconds compute, cp;
};

/* Layers of a chunk. */
struct wlb_sim_layers {
	double all;
	double recomputed;
	double beyond; /* that WLB_RECOMPUTE_FULL recomputes as WLB_RECOMPUTE_SELECTIVE does */
	double again;  /* that send rows to experts and back once more */
};

struct wlb_sim {
	struct wlb_model model;
	struct wlb_machine machine;
	struct wlb_sim_options options;
	/* 1 where some group of the kind crosses a leaf switch; number of ranks of a group on one node. */
	int tp_crosses, cp_crosses, pp_crosses, dp_crosses, ep_crosses;
	int tp_on_node, cp_on_node, pp_on_node, dp_on_node;
	int expert_replicas_on_node; /* of the dp x cp / ep ranks that hold the same experts */
	struct wlb_layer_cost cost;  /* points at the members above */
	double kv_token_bytes;       /* keys and values that context parallelism gathers */
	double token_s;              /* see wlb_sim_set_token_s */
	struct wlb_seconds served;   /* see wlb_sim_set_served */
	int32_t replicas;            /* pipelines: those that the step brought; 1 where a micro-batch is of all */
	int32_t ranks;               /* of a micro-batch: cp; with plan.dynamic_cp of all replicas that it brought */
	struct wlb_sim_lane *lanes;  /* [micro_batches x ranks], with plan.dynamic_cp */
	double *slow;                /* [replica x pp + stage], the slowest rank's factor */
	struct wlb_sim_load *loads;  /* of the step's micro-batches */
	struct wlb_sim_pipeline pipeline;
	struct wlb_sim_layers *layers;       /* [chunk x pp + stage], see wlb_sim_set_layers */
	double *chunk_start_s, *chunk_end_s; /* last backward pass of chunks, the latest of all replicas */
	int64_t *tokens;                     /* of one micro-batch's documents */
	size_t tokens_capacity;
	struct wlb_seconds *rank_s; /* of the ranks of a micro-batch: attention, then all computation of a layer */
	double *rank_bytes;         /* that they gather */
	struct wlb_sim_keys *rank_keys;
	struct wlb_load *rank_loads;
	struct wlb_place *places;  /* of one micro-batch's documents */
	struct wlb_placer *placer; /* of the step, with plan.dynamic_cp */
	struct wlb_sim_event *events;
	size_t event_count;
};

/* The load of a micro-batch of `count` documents of sim->tokens[] tokens. */
void wlb_sim_load(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load);

/* -- sim_places.c -- */
/* Places the step's `count` documents of sim->tokens[] tokens on the ranks of plan.micro_batches micro-batches. The
 * placement is valid until the next call. Returns -1 if out of memory. */
int wlb_sim_place_step(struct wlb_sim *sim, size_t count, struct wlb_placement *placement, struct wlb_error *error);

/* Sets the computation of a micro-batch whose documents are on ranks of their own, which with plan.dynamic_cp are
 * sim->places and sim->rank_loads, else are chosen now. *rank_tokens receives the most tokens on a rank. Returns 0,
 * and sets nothing, where ranks are not to be chosen for each document, or the documents do not fit; else 1. With
 * plan.dynamic_cp the keys of each rank are in sim->rank_keys, and its computation in sim->rank_s. */
int wlb_sim_load_places(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load, double *rank_tokens,
                        struct wlb_sim_keys *keys);

/* -- sim_lanes.c -- */
/* Sets the lanes of micro-batch `number`, whose `count` documents are sim->places, after wlb_sim_load_places and
 * wlb_sim_load; the load becomes that of a mean lane. */
void wlb_sim_set_lanes(struct wlb_sim *sim, int32_t number, size_t count, struct wlb_sim_load *load);

/* Returns the load of the micro-batch on a lane. */
struct wlb_sim_load wlb_sim_lane_load(const struct wlb_sim *sim, int32_t number, int32_t lane);

/* -- sim_load.c -- */
/* Seconds of a layer that wlb-worker waits for the keys of a rank of so many tokens, and copies them. */
struct wlb_seconds wlb_sim_worker_keys_s(const struct wlb_sim *sim, double rank_tokens,
                                         const struct wlb_sim_keys *keys);

/* Returns 1 where the backward pass gathers keys again. */
int wlb_sim_recomputes_keys(const struct wlb_sim *sim);

/* -- sim_layer.c -- */
void wlb_sim_add(struct wlb_seconds *sum, struct wlb_seconds more);
void wlb_sim_scale(struct wlb_seconds *seconds, double factor);
double wlb_sim_both(struct wlb_seconds seconds);

/* Seconds of one layer's attention of the queries [from, to) of a document, each of which sees itself and the tokens
 * before it. */
struct wlb_seconds wlb_sim_attention_s(const struct wlb_sim *sim, double from, double to);

/* Seconds of attention on each of `ranks` ranks that share a document, all of which do the same. */
struct wlb_seconds wlb_sim_attention_share_s(const struct wlb_sim *sim, double tokens, int32_t ranks);

/* Seconds of products and elementwise operations of one layer; *products receives those of the products alone. */
struct wlb_seconds wlb_sim_linear_s(const struct wlb_sim *sim, double tokens, struct wlb_seconds *products);

/* Keys of a group of so many ranks of a micro-batch: at most cp, which are of one replica, or of several. */
struct wlb_sim_keys wlb_sim_group_keys(const struct wlb_sim *sim, int32_t ranks, double bytes);

/* Sets what a rank has of the step's attention where attention servers share it. */
void wlb_sim_set_served(struct wlb_sim *sim, const struct wlb_step *step);

/* Sets `layers`, of every chunk. */
void wlb_sim_set_layers(struct wlb_sim *sim);

/* -- sim_buckets.c -- */
/* Returns when the buckets of a stage are reduced. */
double wlb_sim_buckets_reduced_s(const struct wlb_sim *sim, int32_t stage);

/* Seconds that nothing hides of a step's update, on the stage whose first forward pass waits longest for its weights,
 * and of the update and the reductions on a mean GPU, which may wait while others still compute. */
struct wlb_sim_bucket_waits {
	double update_s, mean_s;
};

/* Of the step whose pipelines have run. */
struct wlb_sim_bucket_waits wlb_sim_bucket_waits(const struct wlb_sim *sim);

/* Sets token_s: seconds that a token adds to a layer of a micro-batch, without attention. */
void wlb_sim_set_token_s(struct wlb_sim *sim);

/* The passes of one micro-batch on one chunk. zero_s is the part that waits for the communication of ZeRO-2 and 3, in
 * every micro-batch. */
struct wlb_sim_chunk {
	double forward_s, backward_s, zero_s;
	double head_s; /* a share of the head; on the last stage a part of backward_s too */
};

/* Sets how long the passes take where computation is `slow` times slower. Where `time` is not NULL, adds `share` of
 * their parts to it; with slow 1 the parts and zero_s sum to the passes. */
struct wlb_sim_chunk wlb_sim_time_passes(const struct wlb_sim *sim, const struct wlb_sim_load *load, int32_t stage,
                                         int32_t chunk, double slow, struct wlb_sim_time *time, double share);

/* Returns 1 where replicas gather weights or reduce gradients in every micro-batch. */
int wlb_sim_shards_each_pass(const struct wlb_sim *sim);

/* Seconds to send the output of stage `stage` to the next stage; the last stage sends to the first. */
double wlb_sim_send_s(const struct wlb_sim *sim, int32_t replica, int32_t stage, double bytes);

/* Seconds to reduce the gradients of a chunk over dp x cp, and to gather its weights. */
double wlb_sim_reduce_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk);
/* Seconds to sum the gradient of a shared head over the stages; 0 where the head is not shared. */
double wlb_sim_sum_heads_s(const struct wlb_sim *sim);

double wlb_sim_gather_weights_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk);

/* Returns the seconds that are not hidden of communication that `pieces` layers do one after another beside computation
 * of computation_s: that of the first (or last) layer has nothing to run beside (NeMo: "exposes only one DP
 * communication chunk"). */
double wlb_sim_exposed_s(double communication_s, double computation_s, double pieces);

/* Returns 1 where gradients are reduced, and weights updated and gathered, bucket by bucket beside computation. */
int wlb_sim_hides_update(const struct wlb_sim *sim);

/* Seconds of the optimizer on the stage that has the most parameters; without the update of weights where it runs
 * beside the next step. */
double wlb_sim_optimizer_s(const struct wlb_sim *sim);

#endif
