/* Declarations that the files of the simulator share; internal. */
#ifndef LIBWLB_SIMULATION_SIM_H
#define LIBWLB_SIMULATION_SIM_H

#include "libwlb/simulation/sim_pipeline.h"
#include "libwlb/wlb.h"

/* The load of one micro-batch on each layer, in seconds. Computation has two values: that of the slowest
 * context-parallel rank, for which the others wait, and that of the mean one. */
struct wlb_sim_load {
	double forward_s, backward_s;
	double forward_mean_s, backward_mean_s;
	double tp_forward_s, tp_backward_s;
	double cp_forward_s, cp_backward_s;
	double head_forward_s, head_backward_s; /* of the output head, on the last stage */
	double send_bytes;                      /* between stages, one GPU */
	double flops;                           /* of the model, one forward pass, all ranks */
	int64_t tokens;
	int32_t per_document;
};

struct wlb_sim {
	struct wlb_model model;
	struct wlb_machine machine;
	struct wlb_sim_options options;
	/* 1 where some group of the kind crosses a leaf switch; number of ranks of a group on one node. */
	int tp_crosses, cp_crosses, dp_crosses;
	int tp_on_node, cp_on_node, dp_on_node;
	double layer_token_flops; /* GEMMs of one layer, one token, one tensor-parallel rank, forward */
	double layer_token_bytes; /* memory traffic in addition to the GEMMs */
	double head_token_flops;
	double pair_s;              /* one query against one key, one layer, forward */
	double kv_token_bytes;      /* keys and values that context parallelism gathers */
	int32_t replicas;           /* that the step brought */
	double *slow;               /* [replica x pp + stage], the slowest rank's factor */
	struct wlb_sim_load *loads; /* of the step's micro-batches */
	struct wlb_sim_pipeline pipeline;
	double *chunk_start_s, *chunk_end_s; /* last backward pass of chunks, the latest of all replicas */
	int64_t *tokens;                     /* of one micro-batch's documents */
	size_t tokens_capacity;
	double *rank_s, *rank_tokens, *rank_bytes; /* of the context-parallel ranks, forward */
	struct wlb_load *rank_loads;
	struct wlb_place *places; /* of one micro-batch's documents */
	struct wlb_sim_event *events;
	size_t event_count;
};

/* The load of a micro-batch of `count` documents of sim->tokens[] tokens. */
void wlb_sim_load(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load);

/* Seconds of the forward pass of one layer that is done again where all is recomputed. */
double wlb_sim_recompute_s(const struct wlb_sim *sim, const struct wlb_sim_load *load, double slow);

/* Sets how long the passes of one micro-batch take on one chunk. Returns the part of it that waits for the
 * communication of ZeRO-2 and 3, in every micro-batch. */
double wlb_sim_time_passes(const struct wlb_sim *sim, const struct wlb_sim_load *load, int32_t stage, int32_t chunk,
                           double slow, double *forward_s, double *backward_s);

/* Seconds to send the output of stage `stage` to the next stage; the last stage sends to the first. */
double wlb_sim_send_s(const struct wlb_sim *sim, int32_t replica, int32_t stage, double bytes);

/* Seconds to reduce the gradients of a chunk over dp x cp, and to gather its weights again after. */
double wlb_sim_reduce_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk);
double wlb_sim_gather_weights_s(const struct wlb_sim *sim, int32_t stage, int32_t chunk);

/* Seconds of the optimizer on the stage that has the most parameters. */
double wlb_sim_optimizer_s(const struct wlb_sim *sim);

#endif
