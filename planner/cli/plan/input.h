/* Reads the input of `wlb plan` and `wlb sim`: the model, the machine, the nodes and the documents' lengths. */
#ifndef PLANNER_CLI_PLAN_INPUT_H
#define PLANNER_CLI_PLAN_INPUT_H

#include <stddef.h>

#include "coordinator/slurm/topology_text.h"
#include "planner/cli/plan/trainer.h"
#include "planner/lengths_file.h"
#include "planner/machine.h"
#include "planner/model_file.h"

struct wlb_plan_request {
	const char *model, *gpu, *lengths, *topology, *down;
	int nodes, gpus_per_node, seq_length, global_batch, zero_stage;
	struct wlb_trainer_request trainer;
	double max_length_ratio;
	int dynamic; /* 1: --packing dynamic of wlb-worker */
};

enum { WLB_PLAN_NODES_MAX = 1 << 20, WLB_PLAN_GPUS_PER_NODE_MAX = 1024, WLB_PLAN_BATCH_MAX = 1 << 20 };

/* Rows of a table of options; the values must begin with a struct wlb_plan_request. `batch_required`: window and batch
 * must be given; `note`: a text about that. */
#define WLB_PLAN_FIELD(name) offsetof(struct wlb_plan_request, name)
#define WLB_PLAN_INPUT_OPTIONS(batch_required, note)                                                                   \
	{WLB_MODEL_OPTION(WLB_PLAN_FIELD(model))},                                                                     \
		{WLB_OPTION(INT, "nodes", WLB_PLAN_FIELD(nodes), "N", "how many nodes, such as 32"), .required = true, \
	         .min = 1, .max = WLB_PLAN_NODES_MAX},                                                                 \
		{WLB_OPTION(INT, "gpus-per-node", WLB_PLAN_FIELD(gpus_per_node), "N",                                  \
	                    "GPUs of each (default: what the kind of GPU comes with)"),                                \
	         .min = 1, .max = WLB_PLAN_GPUS_PER_NODE_MAX},                                                         \
		{WLB_MACHINE_OPTION(WLB_PLAN_FIELD(gpu))},                                                             \
		{WLB_OPTION(INT, "seq-length", WLB_PLAN_FIELD(seq_length), "N",                                        \
	                    "the window, in tokens, such as 131072" note),                                             \
	         .required = (batch_required), .min = 1, .max = 1 << 30},                                              \
		{WLB_OPTION(INT, "global-batch-size", WLB_PLAN_FIELD(global_batch), "N",                               \
	                    "windows in a step, such as 64" note),                                                     \
	         .required = (batch_required), .min = 1, .max = WLB_PLAN_BATCH_MAX},                                   \
		{WLB_LENGTHS_OPTION(WLB_PLAN_FIELD(lengths)) "; it starts over where it ends",                         \
	         .initial = "gen:skewed"},                                                                             \
		{WLB_OPTION(TEXT, "topology", WLB_PLAN_FIELD(topology), "FILE",                                        \
	                    "Slurm's topology.conf; the nodes are the first that it names")},                          \
		{WLB_OPTION(                                                                                           \
			TEXT, "down", WLB_PLAN_FIELD(down), "LIST",                                                    \
			"nodes not to use, by number from 0, or with --topology by name: 3,n[7-8]; 5:6 means that "    \
			"node 5 has 6 usable GPUs")},                                                                  \
		{WLB_OPTION(REAL, "max-length-ratio", WLB_PLAN_FIELD(max_length_ratio), "X",                           \
	                    "a micro-batch holds at most X times its share"),                                          \
	         .min = 1, .max = 64, .initial = "1.25"},                                                              \
		{WLB_OPTION(INT, "zero-stage", WLB_PLAN_FIELD(zero_stage), "N",                                        \
	                    "sharding of optimizer states, gradients and weights; 1 in pipelines"),                    \
	         .max = 3, .initial = "1"},                                                                            \
		WLB_TRAINER_OPTIONS(WLB_PLAN_FIELD(trainer))

/* The row of --recompute; `field` is the offset of a const char *, which wlb_recompute_read reads. */
#define WLB_RECOMPUTE_OPTION(field, text)                                                                              \
	.name = "recompute", .kind = WLB_OPTION_TEXT, .offset = (field), .initial = "auto",                            \
	.choices = "auto|none|selective|full|core_attn|layernorm|act|mla_up_proj|mlp|moe|moe_act|shared_experts",      \
	.open = true, .value = "auto|none|selective|full|MODULES", .help = (text)

/* Reads such a value: *set is enum wlb_recompute, -1 for auto. Returns -1 with the word that is unknown. */
int wlb_recompute_read(const char *text, int *set, struct wlb_error *error);

/* The content of the files that the options name. Starts zeroed; free it in any case. */
struct wlb_plan_input {
	struct wlb_model model;
	struct wlb_machine machine; /* with the GPUs per node asked for, and the rates that the trainer has */
	struct wlb_trainer_file trainer;
	struct wlb_cost_options cost; /* of the trainer on the machine, with what the options say otherwise */
	struct wlb_length_list list;
	struct wlb_length_stream stream;
	struct wlb_topology_file topology;
	int32_t nodes;
	int32_t *gpus_of_node;
	int32_t gpus;  /* usable, all */
	int32_t *leaf; /* the switch of each node that has GPUs, nodes in the topology's order; NULL without one */
};

int wlb_plan_input_read(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_error *error);
void wlb_plan_input_free(struct wlb_plan_input *input);

/* Returns the values with which the search fixes nothing; the embedding and the loss may count as layers. */
struct wlb_search_fixed wlb_plan_nothing_fixed(void);

/* Searches the plan with what is fixed, and keeps `keep` candidates of each kind. Returns NULL with a message; free the
 * result with wlb_search_free. */
struct wlb_search_result *wlb_plan_input_search(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                                                const struct wlb_search_fixed *fixed, int keep,
                                                struct wlb_error *error);

/* Formats the model's description: its name, its number of parameters and where its shape is from. */
void wlb_plan_input_model_words(const struct wlb_plan_request *request, const struct wlb_plan_input *input, char *text,
                                size_t size);

/* Returns the name of a node from the topology, else its number, written to `text`. */
const char *wlb_plan_node_name(const struct wlb_plan_input *input, int32_t node, char *text, size_t size);

#endif
